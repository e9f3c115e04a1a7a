"""Verifying a data directory, and rebuilding its indexes: for a daemon that is not running."""

import hashlib
from collections.abc import Generator, Iterator, Sequence

import msgspec
import numpy as np

from logd.entry import Clock, ProjectId
from logd.errors import Corruption
from logd.format.chunk import ChunkHead
from logd.format.directory import ChunkRow, row_of
from logd.format.part_table import Part
from logd.store.cache import PartCache
from logd.store.chunk_index import rebuild_postings, rebuild_vocabulary
from logd.store.chunk_reader import ChunkReader
from logd.store.files import FileLayer
from logd.store.index import ProjectIndex
from logd.store.layout import DataLayout, parse_wal_name
from logd.store.limits import StoreLimits
from logd.store.project import Project
from logd.store.segments import SegmentName, Segments
from logd.store.spans import Span, joined, outside
from logd.store.wal import read_wal


class CheckReport(msgspec.Struct, frozen=True):
    """`problems`: one line each, empty if all is well."""

    problems: tuple[str, ...]
    projects: int
    chunks: int
    entries: int
    wal_frames: int
    wal_entries: int


class _Counts:
    def __init__(self) -> None:
        self.chunks = 0
        self.entries = 0
        self.wal_frames = 0
        self.wal_entries = 0


def check_store(files: FileLayer, layout: DataLayout, projects: list[ProjectId]) -> CheckReport:
    """Read every byte: each checksum, each chunk back into entries, and the index against what the
    segments hold. Writes nothing."""
    counts = _Counts()
    problems = [
        f"project {project}: {problem}"
        for project in projects
        for problem in _check_project(files, layout, project, counts)
    ]
    return CheckReport(
        tuple(problems),
        len(projects),
        counts.chunks,
        counts.entries,
        counts.wal_frames,
        counts.wal_entries,
    )


def _check_project(
    files: FileLayer, layout: DataLayout, project: ProjectId, counts: _Counts
) -> Iterator[str]:
    paths = layout.project(project)
    for name in files.list_directory(paths.damaged):
        yield f"{paths.damaged / name} was set aside"
    in_wal: list[Span] = []
    for name in files.list_directory(paths.wal):
        if parse_wal_name(name) is not None:
            in_wal += yield from _check_wal(files, layout, project, name, counts)
    segments = Segments(files, paths, project, PartCache(0))
    try:
        indexed = yield from _check_index(layout, project, segments)
        yield from _check_segments(segments, indexed, in_wal, counts)
    finally:
        segments.close()


def _check_wal(
    files: FileLayer, layout: DataLayout, project: ProjectId, name: str, counts: _Counts
) -> Generator[str, None, list[Span]]:
    """Yields problems; returns what the file holds."""
    file = files.open(layout.project(project).wal / name)
    content = read_wal(file, project)
    file.close()
    counts.wal_frames += len(content.frames)
    counts.wal_entries += sum(frame.count for frame in content.frames)
    for damage in content.damage:
        yield str(damage)
    if content.torn_bytes:
        yield f"{file.path} ends in {content.torn_bytes} bytes of an unfinished frame"
    return list(content.spans)


class _Indexed(msgspec.Struct, frozen=True):
    """Of what the index stores of a chunk besides the row, digests: of all chunks the values would
    take gigabytes."""

    row: ChunkRow
    vocabulary: bytes | None
    postings: bytes | None


def _digest(value: bytes | memoryview) -> bytes:
    return hashlib.blake2b(value, digest_size=16).digest()


def _check_index(
    layout: DataLayout, project: ProjectId, segments: Segments
) -> Generator[str, None, dict[tuple[SegmentName, int], _Indexed]]:
    """Yields problems; returns what the index says of each chunk, by segment and offset."""
    paths = layout.project(project)
    if not (paths.index / "data.mdb").exists():
        if segments.names():
            yield f"{paths.index} is missing"
        return {}
    try:
        index = ProjectIndex(paths.index, read_only=True)
    except Corruption as error:
        yield str(error)
        return {}
    found = {}
    try:
        content = index.content()
        if content.watermark is None and segments.names():
            yield f"{paths.index} is not complete"
        for row in content.rows:
            with index.reader() as reader:
                vocabulary = reader.vocabulary(row.first_seq)
                postings = reader.postings(row.first_seq)
                found[(row.segment_seq, row.segment_number), row.offset] = _Indexed(
                    row,
                    None if vocabulary is None else _digest(vocabulary),
                    None if postings is None else _digest(postings),
                )
    except Corruption as error:
        yield str(error)
    finally:
        index.close()
    return found


def _check_segments(
    segments: Segments,
    indexed: dict[tuple[SegmentName, int], _Indexed],
    in_wal: Sequence[Span],
    counts: _Counts,
) -> Iterator[str]:
    """A chunk that the index does not name is a problem only where nothing else has its entries:
    merges leave their sources behind where those share a file, a crash leaves what it cut short."""
    in_index = [(one.row.first_seq, one.row.next_seq) for one in indexed.values()]
    elsewhere = joined([*in_index, *in_wal])
    seen = set()
    for name in segments.names():
        for found in segments.scan(name):
            if isinstance(found, Corruption):
                yield str(found)
                continue
            offset, head = found
            seen.add((name, offset))
            of_index = indexed.get((name, offset))
            if of_index is None and not outside((head.first_seq, head.next_seq), elsewhere):
                continue
            yield from _check_chunk(segments, name, offset, head, of_index)
            counts.chunks += 1
            counts.entries += head.count
    for name, offset in indexed:
        if (name, offset) not in seen:
            yield f"{segments.path(name)}: the index names a chunk at byte {offset}, none is there"


def _check_chunk(
    segments: Segments, name: SegmentName, offset: int, head: ChunkHead, indexed: _Indexed | None
) -> Iterator[str]:
    reader = segments.reader(row_of(head, (), *name, offset))
    try:
        _read_everything(reader)
    except Corruption as error:
        yield str(error)
        return
    where = f"{segments.path(name)} at byte {offset}"
    if indexed is None:
        yield f"{where}: the chunk is not in the index"
        return
    records = reader.idempotency_records()
    if indexed.row != row_of(head, records, *name, offset):
        yield f"{where}: the index row differs from the chunk"
    if indexed.vocabulary != _digest(rebuild_vocabulary(reader)):
        yield f"{where}: the vocabulary in the index differs from the chunk"
    if indexed.postings != _digest(rebuild_postings(reader)):
        yield f"{where}: the postings in the index differ from the chunk"


def _read_everything(reader: ChunkReader) -> None:
    for kind, block in reader.head().parts:
        reader.raw_part(Part(kind), block)
    for block in range(reader.blocks()):
        rows = reader.block_rows(block)
        reader.entries(np.arange(rows.start, rows.stop))


def reindex_store(
    files: FileLayer,
    layout: DataLayout,
    projects: list[ProjectId],
    limits: StoreLimits,
    clock: Clock,
) -> int:
    """Remove every index and build it anew from the segments; how many chunks were indexed."""
    chunks = 0
    for project in projects:
        paths = layout.project(project)
        if paths.index.exists():
            files.remove_tree(paths.index)
        opened = Project(files, paths, project, limits, PartCache(limits.cache_bytes), clock)
        chunks += len(opened.snapshot().chunks)
        opened.close()
    return chunks
