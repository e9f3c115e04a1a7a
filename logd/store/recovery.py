"""Opening a project's directory: what the last process left, made whole again.

1. Files of a newer format end it before anything is written.
2. The index is opened; one that cannot be trusted is set aside and rebuilt from the segments. A
   chunk there may be a copy of what another holds, since merges leave their sources behind where
   those share a file: the widest chunk counts.
3. What segments hold beyond that is a half-finished freeze or merge, or a copy: cut off where the
   WAL or another chunk has the entries, taken into the index where not.
4. WAL frames that are in no chunk become the tail again. A torn end is cut off. The last file may
   hold frames that were never synced, or whose sync failed: its frames are written to a new file
   and synced before any of them is shown.

Nothing here gives up because of damage: it is set aside under `damaged/`, counted and reported.
"""

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from logd.entry import ProjectId, Seq
from logd.errors import Corruption, LogdError
from logd.format import wal as wal_codec
from logd.format.body import Batch, decode_body
from logd.format.chunk import BuiltChunk, ChunkHead, IdempotencyRecord
from logd.format.directory import ChunkRow, row_of
from logd.store.cache import PartCache
from logd.store.chunk_search import rebuild_postings, rebuild_vocabulary
from logd.store.files import FileLayer
from logd.store.freeze import slice_batch
from logd.store.index import IndexChange, IndexContent, ProjectIndex
from logd.store.layout import ProjectLayout, parse_wal_name
from logd.store.segments import SegmentName, Segments
from logd.store.tail import TailRun
from logd.store.wal import WalContent, read_wal, refuse_newer

_ADOPT_AT_ONCE: Final = 32

Span = tuple[int, int]
"""Sequence numbers, the second exclusive."""


class RecoveredRun(msgspec.Struct, frozen=True):
    """A WAL file's entries; `path` goes once they are in chunks."""

    path: Path
    run: TailRun


class Recovered(msgspec.Struct, frozen=True):
    index: ProjectIndex
    segments: Segments
    rows: tuple[ChunkRow, ...]
    runs: tuple[RecoveredRun, ...]
    next_seq: Seq
    damage: tuple[Corruption, ...]


def recover(
    files: FileLayer, layout: ProjectLayout, project: ProjectId, cache: PartCache
) -> Recovered:
    """Raises UnsupportedFormat if a newer program wrote a file, OSError if the disk fails."""
    for directory in (layout.wal, layout.segments, layout.index):
        files.make_directory(directory)
    # A process may have died between making a directory and syncing its name.
    files.sync_directory(layout.root)
    files.sync_directory(layout.root.parent)
    work = _Recovery(files, layout, project, Segments(files, layout, project, cache))
    return work.run()


class _Unknown(msgspec.Struct, frozen=True):
    """A chunk that the index does not know."""

    name: SegmentName
    offset: int
    head: ChunkHead


class _Recovery:
    def __init__(
        self, files: FileLayer, layout: ProjectLayout, project: ProjectId, segments: Segments
    ) -> None:
        self._files = files
        self._layout = layout
        self._project = project
        self._segments = segments
        self._damage: list[Corruption] = []

    def run(self) -> Recovered:
        self._refuse_newer_files()
        index, content = self._open_index()
        contents = self._read_wals()
        rows = self._reconcile(index, content, contents)
        runs, next_seq = self._replay(contents, _frozen(content, rows))
        return Recovered(
            index, self._segments, tuple(rows), tuple(runs), next_seq, tuple(self._damage)
        )

    def _refuse_newer_files(self) -> None:
        self._segments.refuse_newer()
        for name in self._wal_names():
            file = self._files.open(self._layout.wal / name)
            refuse_newer(file)
            file.close()

    # ------------------------------------------------------------ the index

    def _open_index(self) -> tuple[ProjectIndex, IndexContent]:
        """The index and what it says; one that is not complete begins anew and says nothing."""
        index: ProjectIndex | None = None
        try:
            index = ProjectIndex(self._layout.index)
            content = index.content()
            if content.watermark is not None or not content.rows:
                return index, content
            index.close()
            self._files.remove_tree(self._layout.index)
        except Corruption as error:
            self._damage.append(error)
            if index is not None:
                index.close()
            self.set_aside(self._layout.index)
        self._files.make_directory(self._layout.index)
        index = ProjectIndex(self._layout.index)
        return index, index.content()

    def set_aside(self, path: Path) -> None:
        """Keep what is damaged where nothing reads it."""
        self._files.make_directory(self._layout.damaged)
        self._files.rename(path, self._aside(path.name))
        self._files.sync_directory(self._layout.damaged)
        self._files.sync_directory(path.parent)

    def _aside(self, name: str) -> Path:
        taken = set(self._files.list_directory(self._layout.damaged))
        number = next(n for n in range(len(taken) + 1) if f"{name}.{n}" not in taken)
        return self._layout.damaged / f"{name}.{number}"

    # ------------------------------------------------------------ the segments

    def _reconcile(
        self, index: ProjectIndex, content: IndexContent, wals: Sequence[WalContent]
    ) -> list[ChunkRow]:
        """The rows of all chunks there are; the index and the files agree when this returns."""
        names = self._segments.names()
        there = set(names)
        rows = [row for row in content.rows if _name_of(row) in there]
        for row in content.rows:
            if _name_of(row) not in there:
                path = self._segments.path(_name_of(row))
                self._damage.append(Corruption(path, row.offset, "the segment file is missing"))
        ends = _ends(rows)
        beyond = [n for n in names if n not in ends or self._segments.size(n) > ends[n]]
        unknown, damaged = self._scan(beyond, ends)
        in_wal = [(f.first_seq, f.first_seq + f.count) for wal in wals for f in wal.frames]
        below = [(0, content.watermark)] if content.watermark else []
        adopted, unreadable = self._adopt(index, unknown, _joined([*in_wal, *below]))
        ends |= _ends(adopted)
        for name in beyond:
            # Where the index is complete, what it does not know was never acknowledged by it: a
            # torn end is no damage. Where it was rebuilt, nobody can tell, so all of it is kept.
            keep = content.watermark is None and name in damaged
            self._cut(name, ends.get(name), keep=keep or name in unreadable)
            if content.watermark is None:
                self._damage += damaged.get(name, ())
        if content.watermark is None:
            index.apply(IndexChange(watermark=Seq(max((r.next_seq for r in adopted), default=0))))
        return sorted([*rows, *adopted], key=lambda row: row.first_seq)

    def _scan(
        self, names: Sequence[SegmentName], ends: dict[SegmentName, int]
    ) -> tuple[list[_Unknown], dict[SegmentName, list[Corruption]]]:
        """What the files hold behind their known ends: chunks, and damage."""
        chunks: list[_Unknown] = []
        damaged: dict[SegmentName, list[Corruption]] = {}
        for name in names:
            for found in self._segments.scan(name):
                if isinstance(found, Corruption):
                    if found.offset >= ends.get(name, 0):
                        damaged.setdefault(name, []).append(found)
                elif found[0] >= ends.get(name, 0):
                    chunks.append(_Unknown(name, *found))
        return chunks, damaged

    def _adopt(
        self, index: ProjectIndex, unknown: Sequence[_Unknown], elsewhere: Sequence[Span]
    ) -> tuple[list[ChunkRow], set[SegmentName]]:
        """Index the chunks whose entries are nowhere else, the widest first: the rows, and the
        files of which a chunk could not be read."""
        rows: list[ChunkRow] = []
        unreadable: set[SegmentName] = set()
        waiting: list[tuple[ChunkRow, BuiltChunk]] = []
        end = 0
        for chunk in sorted(unknown, key=lambda c: (c.head.first_seq, -c.head.count)):
            head = chunk.head
            if head.next_seq <= end or not _outside((head.first_seq, head.next_seq), elsewhere):
                continue
            try:
                if head.first_seq < end:
                    path = self._segments.path(chunk.name)
                    raise Corruption(path, chunk.offset, "the chunk overlaps another")
                waiting.append(self._indexed(chunk))
            except Corruption as error:
                self._damage.append(error)
                unreadable.add(chunk.name)
                continue
            rows.append(waiting[-1][0])
            end = head.next_seq
            if len(waiting) == _ADOPT_AT_ONCE:
                index.apply(IndexChange(added=waiting))
                waiting = []
        index.apply(IndexChange(added=waiting))
        return rows, unreadable

    def _indexed(self, chunk: _Unknown) -> tuple[ChunkRow, BuiltChunk]:
        """What the index stores of a chunk, from its columns. Raises Corruption."""
        reader = self._segments.reader(row_of(chunk.head, (), *chunk.name, chunk.offset))
        records = tuple(reader.idempotency_records())
        vocabulary, postings = rebuild_vocabulary(reader), rebuild_postings(reader)
        row = row_of(chunk.head, records, *chunk.name, chunk.offset)
        return row, BuiltChunk(chunk.head, records, b"", vocabulary, postings)

    def _cut(self, name: SegmentName, end: int | None, *, keep: bool) -> None:
        """Leave of a segment file what stands before `end`, nothing where that is None; `keep`: a
        copy of the rest goes aside."""
        path = self._segments.path(name)
        if end is None and keep:
            self._segments.forget(name)
            self.set_aside(path)
        elif end is None:
            self._segments.remove(name)
        elif self._segments.size(name) > end:
            if keep:
                self._keep_copy(path, end)
            self._segments.truncate(name, end)

    # ------------------------------------------------------------ the WAL

    def _wal_names(self) -> list[str]:
        """In order of sequence."""
        names = self._files.list_directory(self._layout.wal)
        return [name for name in names if parse_wal_name(name) is not None]

    def _read_wals(self) -> list[WalContent]:
        """WAL files in order of sequence."""
        for name in self._files.list_directory(self._layout.wal):
            if parse_wal_name(name) is None:
                self._files.unlink(self._layout.wal / name)  # a rewrite that was not finished
        contents = []
        for name in self._wal_names():
            file = self._files.open(self._layout.wal / name)
            contents.append(read_wal(file, self._project))
            file.close()
            self._damage += contents[-1].damage
        return contents

    def _replay(
        self, contents: Sequence[WalContent], frozen: Sequence[Span]
    ) -> tuple[list[RecoveredRun], Seq]:
        """(the runs of what is not frozen yet, the next sequence number)."""
        runs = []
        next_seq = Seq(frozen[-1][1] if frozen else 0)
        for position, content in enumerate(contents):
            run, frames, undecodable = self._to_run(content, frozen)
            if content.damage or undecodable:
                self._keep_copy(content.path, 0)
            elif content.torn_bytes and content.end:
                self._keep_copy(content.path, content.end)
            if run is None:
                self._files.unlink(content.path)
                self._files.sync_directory(self._layout.wal)
            else:
                whole = not (content.damage or undecodable or content.torn_bytes)
                if position == len(contents) - 1 or not whole:
                    self._rewrite(content.path, frames)
                runs.append(RecoveredRun(content.path, run))
                next_seq = max(next_seq, run.next_seq)
            # Numbers that torn frames may have had are not given out again.
            next_seq = Seq(next_seq + content.torn_bytes)
        return runs, next_seq

    def _to_run(
        self, content: WalContent, frozen: Sequence[Span]
    ) -> tuple[TailRun | None, list[wal_codec.Frame], bool]:
        """(what of the file is not frozen, its frames, whether one of them cannot be decoded)."""
        run: TailRun | None = None
        frames: list[wal_codec.Frame] = []
        undecodable = False
        for frame in content.frames:
            spans = _outside((frame.first_seq, frame.first_seq + frame.count), frozen)
            if not spans:
                continue
            batch = self._decode(content.path, frame)
            if batch is None:
                undecodable = True
                continue
            run = TailRun(Seq(spans[0][0])) if run is None else run
            frames.append(frame)
            for start, stop in spans:
                offset = start - frame.first_seq
                run.extend(Seq(start), slice_batch(batch, offset, stop - frame.first_seq))
            if frame.idempotency is not None:
                run.records.append(
                    IdempotencyRecord(
                        frame.idempotency, frame.first_seq, frame.count, frame.received_ns
                    )
                )
        return run, frames, undecodable

    def _decode(self, path: Path, frame: wal_codec.Frame) -> Batch | None:
        """Frames were validated before they were written: one that no longer decodes is damage."""
        try:
            batch = decode_body(frame.body, self._project, frame.received_ns, ndjson=frame.ndjson)
        except LogdError as error:
            self._damage.append(Corruption(path, 0, f"frame {frame.first_seq}: {error}"))
            return None
        if batch.count != frame.count:
            reason = f"frame {frame.first_seq} holds {batch.count} entries, not {frame.count}"
            self._damage.append(Corruption(path, 0, reason))
            return None
        return batch

    def _keep_copy(self, path: Path, start: int) -> None:
        """Of the file's bytes from `start` on; zeros are nothing to keep."""
        file = self._files.open(path)
        data = file.read(start, file.size() - start)
        file.close()
        if not data.strip(b"\0"):
            return
        self._files.make_directory(self._layout.damaged)
        copy = self._files.create(self._aside(path.name))
        copy.append([data])
        copy.sync()
        copy.close()
        self._files.sync_directory(self._layout.damaged)

    def _rewrite(self, path: Path, frames: Sequence[wal_codec.Frame]) -> None:
        """The frames in a new, synced file of the same name."""
        fresh = path.with_name(path.name + ".new")
        file = self._files.create(fresh)
        buffers = [wal_codec.encode_header(self._project, frames[0].first_seq)]
        for frame in frames:
            buffers += wal_codec.encode_frame(frame)
        file.append(buffers)
        file.sync()
        file.close()
        self._files.rename(fresh, path)
        self._files.sync_directory(self._layout.wal)


def _name_of(row: ChunkRow) -> SegmentName:
    return row.segment_seq, row.segment_number


def _ends(rows: Sequence[ChunkRow]) -> dict[SegmentName, int]:
    """Where the last of the chunks ends in each segment file."""
    ends: dict[SegmentName, int] = {}
    for row in rows:
        ends[_name_of(row)] = max(ends.get(_name_of(row), 0), row.end)
    return ends


def _frozen(content: IndexContent, rows: Sequence[ChunkRow]) -> list[Span]:
    """What is in chunks, or was: all that the index ever knew, and what was adopted."""
    below = [(0, int(content.watermark))] if content.watermark else []
    return _joined([*below, *((int(row.first_seq), int(row.next_seq)) for row in rows)])


def _joined(spans: Sequence[Span]) -> list[Span]:
    """Sorted, and without gaps of nothing between them."""
    out: list[Span] = []
    for start, stop in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], stop))
        else:
            out.append((start, stop))
    return out


def _outside(span: Span, spans: Sequence[Span]) -> list[Span]:
    """What of a span lies in none of the joined spans."""
    out: list[Span] = []
    start, stop = span
    at = max(0, bisect_right(spans, (start, start)) - 1)
    while start < stop and at < len(spans) and spans[at][0] < stop:
        if start < spans[at][0]:
            out.append((start, spans[at][0]))
        start = max(start, spans[at][1])
        at += 1
    if start < stop:
        out.append((start, stop))
    return out
