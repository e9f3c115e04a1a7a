"""Segment files of one project: chunks are appended to one, and read from all."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from logd.entry import LevelCounts, ProjectId, Seq
from logd.errors import Corruption, StorageFailed, StorageFull, UnsupportedFormat
from logd.format import segment as codec
from logd.format.chunk import MARKER, BuiltChunk, ChunkHead
from logd.format.directory import ChunkRow, row_of
from logd.store.cache import PartCache
from logd.store.chunk_reader import ChunkReader, read_head
from logd.store.files import NO_SPACE, File, FileLayer
from logd.store.layout import ProjectLayout, parse_segment_name

_SCAN_BYTES: Final = 1 << 20

SegmentName = tuple[Seq, int]
"""(first sequence number, number): what a segment file's name says."""


_file_numbers: Final = itertools.count()
"""What the cache knows an open file by: a name may come again, a number does not."""


class Segments:
    """The segment files. One thread at a time appends; readers may come from any."""

    def __init__(
        self, files: FileLayer, layout: ProjectLayout, project: ProjectId, cache: PartCache
    ) -> None:
        self._files = files
        self._layout = layout
        self._project = project
        self._cache = cache
        self._open: dict[SegmentName, tuple[int, File]] = {}

    def names(self) -> list[SegmentName]:
        """The segment files there are, sorted."""
        found = map(parse_segment_name, self._files.list_directory(self._layout.segments))
        return sorted(name for name in found if name is not None)

    def path(self, name: SegmentName) -> Path:
        return self._layout.segment_file(*name)

    def _file(self, name: SegmentName) -> File:
        return self._numbered(name)[1]

    def _numbered(self, name: SegmentName) -> tuple[int, File]:
        found = self._open.get(name)
        if found is None:
            file = self._files.open(self.path(name))
            found = self._open.setdefault(name, (next(_file_numbers), file))
        return found

    def reader(self, row: ChunkRow) -> ChunkReader:
        """Raises Corruption if the segment file is gone."""
        name = (row.segment_seq, row.segment_number)
        try:
            number, file = self._numbered(name)
            return ChunkReader(file, number, row, self._cache)
        except FileNotFoundError:
            raise Corruption(self.path(name), row.offset, "the segment file is missing") from None

    def size(self, name: SegmentName) -> int:
        return self._file(name).size()

    def created_ns(self, name: SegmentName) -> int | None:
        """When the file was begun; None where its header is damaged or cannot be read, or of an
        older version: such a file gets no chunks of this one, which an older program would take for
        damage."""
        try:
            header = self._header(name)
        except (OSError, ValueError):
            return None
        return header.created_ns if header.version == codec.VERSION else None

    def _header(self, name: SegmentName) -> codec.SegmentHeader:
        """Raises ValueError where it is damaged."""
        return codec.decode_header(self._file(name).read(0, codec.HEADER_BYTES))

    def refuse_newer(self) -> None:
        """Raises UnsupportedFormat if a newer program wrote one of the files."""
        for name in self.names():
            with contextlib.suppress(OSError, ValueError):  # such a header says nothing
                self._refuse_newer(name, self._header(name))

    def _refuse_newer(self, name: SegmentName, header: codec.SegmentHeader) -> None:
        if header.version > codec.VERSION:
            reason = f"{self.path(name)} has segment format {header.version}: too new"
            raise UnsupportedFormat(reason)

    def create(self, first_seq: Seq, now_ns: int) -> SegmentName:
        """A new segment file, durable with its name. Raises StorageFull or StorageFailed."""
        number = 1 + max((n for seq, n in self.names() if seq == first_seq), default=0)
        name = (first_seq, number)
        try:
            file = self._files.create(self.path(name))
        except OSError as error:
            raise _storage_error(error) from error
        self._open[name] = (next(_file_numbers), file)
        try:
            file.append([codec.encode_header(self._project, first_seq, now_ns)])
            file.sync()
            self._files.sync_directory(self._layout.segments)
        except OSError as error:
            self.take_back(name, codec.HEADER_BYTES)
            raise _storage_error(error) from error
        return name

    def append(self, name: SegmentName, chunks: Sequence[BuiltChunk]) -> list[ChunkRow]:
        """Append chunks; they are durable when this returns. Raises StorageFull or StorageFailed,
        after which nothing more should go into the file."""
        file = self._file(name)
        offset = file.size()
        try:
            file.append([chunk.data for chunk in chunks])
            file.sync()
        except OSError as error:
            self.take_back(name, offset)
            raise _storage_error(error) from error
        rows = []
        for chunk in chunks:
            rows.append(row_of(chunk.head, chunk.records, *name, offset))
            offset += len(chunk.data)
        return rows

    def take_back(self, name: SegmentName, size: int) -> None:
        """Give back the space of what was not finished: the file's bytes from `size` on, or all of
        it where no chunk stands before. Where that fails too, recovery does it."""
        with contextlib.suppress(OSError):
            if size > codec.HEADER_BYTES:
                self._file(name).truncate(size)
            else:
                self._open.pop(name, None)
                self._files.unlink(self.path(name))

    def truncate(self, name: SegmentName, size: int) -> None:
        """Cut off what no directory row names."""
        file = self._file(name)
        file.truncate(size)
        file.sync()

    def remove(self, name: SegmentName) -> None:
        """Snapshots that hold the file go on reading it."""
        self._open.pop(name, None)
        self._files.unlink(self.path(name))
        self._files.sync_directory(self._layout.segments)

    def forget(self, name: SegmentName) -> None:
        """The file was moved away."""
        self._open.pop(name, None)

    def scan(self, name: SegmentName) -> Iterator[tuple[int, ChunkHead] | Corruption]:
        """(offset, head) of each chunk of a file, and what is damaged. Raises UnsupportedFormat."""
        file = self._file(name)
        size = file.size()
        try:
            header = self._header(name)
            self._refuse_newer(name, header)
            if header.project != self._project:
                yield Corruption(file.path, 16, "the file belongs to another project")
                return
        except ValueError as error:
            yield Corruption(file.path, 0, str(error))
        offset = codec.HEADER_BYTES
        while offset < size:
            try:
                head = read_head(file, offset)
                if offset + head.chunk_bytes > size:
                    raise ValueError("the chunk ends behind the file")
            except ValueError as error:
                yield Corruption(file.path, offset, str(error))
                offset = _next_marker(file, offset + 1, size)
                continue
            yield offset, head
            offset += head.chunk_bytes

    def close(self) -> None:
        for _, file in self._open.values():
            file.close()
        self._open.clear()


def _next_marker(file: File, offset: int, size: int) -> int:
    """Where the next chunk may begin; the size of the file if nowhere."""
    while offset < size:
        data = file.read(offset, _SCAN_BYTES)
        at = data.find(MARKER)
        if at >= 0:
            return offset + at
        if len(data) <= len(MARKER):
            break
        offset += len(data) - len(MARKER) + 1
    return size


def _storage_error(error: OSError) -> StorageFull | StorageFailed:
    if error.errno in NO_SPACE:
        return StorageFull("no space is left on the device")
    return StorageFailed(f"a segment could not be written: {error.strerror}")


_view_numbers: Final = itertools.count()


class DirectoryView(msgspec.Struct, frozen=True):
    """The chunks of a project at one moment, by first sequence number and by the latest time of
    each, and their level totals. `number`: no other view of the process has it."""

    number: int
    chunks: tuple[ChunkReader, ...]
    latest_first: tuple[ChunkReader, ...]
    level_counts: LevelCounts


def view_of(chunks: Sequence[ChunkReader]) -> DirectoryView:
    ordered = sorted(chunks, key=lambda chunk: chunk.first_seq)
    debug = info = warn = error = 0
    for chunk in ordered:
        counts = chunk.row.level_counts
        debug += counts[0]
        info += counts[1]
        warn += counts[2]
        error += counts[3]
    latest_first = sorted(
        ordered, key=lambda chunk: (chunk.row.max_ts_ns, chunk.first_seq), reverse=True
    )
    return DirectoryView(
        next(_view_numbers), tuple(ordered), tuple(latest_first), (debug, info, warn, error)
    )
