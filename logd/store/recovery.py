"""Opening a project's directory: what the last process left, made whole again.

1. Files of a newer format end it before anything is written.
2. The index is opened; one that cannot be trusted is set aside and rebuilt from the segments. A
   chunk there may be a copy of what another holds, since merges leave their sources behind where
   those share a file: the widest chunk counts.
3. What segments hold beyond that is a half-finished freeze or merge, or a copy: cut off where the
   WAL or another chunk has the entries, taken into the index where not.
4. WAL frames that are in no chunk become the tail again (`replay.py`).

Nothing here gives up because of damage: it is set aside (`damaged.py`).
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from logd.entry import ProjectId, Seq
from logd.errors import Corruption, Unreadable
from logd.format.chunk import MAX_ENTRIES, BuiltChunk, ChunkHead
from logd.format.directory import ChunkRow, row_of
from logd.format.segment import HEADER_BYTES
from logd.store.cache import PartCache
from logd.store.chunk_index import rebuild_postings, rebuild_vocabulary
from logd.store.damaged import Damaged
from logd.store.files import FileLayer
from logd.store.index import IndexChange, IndexContent, ProjectIndex
from logd.store.layout import ProjectLayout
from logd.store.replay import RecoveredRun, Replay
from logd.store.segments import SegmentName, Segments
from logd.store.spans import Span, joined, outside
from logd.store.wal import WalContent

_ADOPT_AT_ONCE: Final = 32


class Recovered(msgspec.Struct, frozen=True):
    index: ProjectIndex
    segments: Segments
    rows: tuple[ChunkRow, ...]
    runs: tuple[RecoveredRun, ...]
    visible_seq: Seq
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
        self._segments = segments
        self._damaged = Damaged(files, layout)
        self._replay = Replay(files, layout, project, self._damaged)
        self._lost_end = Seq(0)  # entries that are lost had numbers below it

    def run(self) -> Recovered:
        self._segments.refuse_newer()
        self._replay.refuse_newer()
        index, content = self._open_index()
        try:
            contents = self._replay.read()
            rows, watermark = self._reconcile(index, content, contents)
            runs, end, next_seq = self._replay.replay(contents, _frozen(watermark, rows))
        except BaseException:
            index.close()  # LMDB opens nothing twice: the next try would take it for damaged
            raise
        return Recovered(
            index=index,
            segments=self._segments,
            rows=tuple(rows),
            runs=tuple(runs),
            visible_seq=end,
            next_seq=next_seq,
            damage=tuple(self._damaged.found),
        )

    # ------------------------------------------------------------ the index

    def _open_index(self) -> tuple[ProjectIndex, IndexContent]:
        """The index and what it says; one that cannot be trusted begins anew and says nothing."""
        index: ProjectIndex | None = None
        try:
            index = ProjectIndex(self._layout.index)
            content = index.content()
            if self._is_trusted(content):
                return index, content
            self._lost_end = _known_end(content)
            index.close()
            self._files.remove_tree(self._layout.index)
        except Corruption as error:
            self._damaged.found.append(error)
            if index is not None:
                index.close()
            self._damaged.set_aside(self._layout.index)
        self._files.make_directory(self._layout.index)
        index = ProjectIndex(self._layout.index)
        return index, index.content()

    def _is_trusted(self, content: IndexContent) -> bool:
        """It is complete, or empty, and the segment files that it names are there: where they are
        not, it may be an older state of the index, and what it does not know no leftover."""
        there = set(self._segments.names())
        missing = [row for row in content.rows if _name_of(row) not in there]
        for row in missing:
            path = self._segments.path(_name_of(row))
            self._damaged.found.append(Corruption(path, row.offset, "the segment file is missing"))
        return not missing and (content.watermark is not None or not content.rows)

    # ------------------------------------------------------------ the segments

    def _reconcile(
        self, index: ProjectIndex, content: IndexContent, wals: Sequence[WalContent]
    ) -> tuple[list[ChunkRow], Seq]:
        """(the rows of all chunks there are, the watermark); the index and the files agree when
        this returns."""
        names, rows = self._segments.names(), list(content.rows)
        ends = _ends(rows)
        beyond = [n for n in names if n not in ends or self._segments.size(n) > ends[n]]
        unknown, damaged = self._scan(beyond, ends)
        in_wal = [span for wal in wals for span in wal.spans]
        elsewhere = joined([*in_wal, *_frozen(content.watermark, rows)])
        adopted, unreadable = self._adopt(index, unknown, elsewhere)
        ends |= _ends(adopted)
        for name in beyond:
            # Where the index is complete, what it does not know was never acknowledged by it: a
            # torn end is no damage. Where it was rebuilt, nobody can tell, so all of it is kept.
            keep = content.watermark is None and name in damaged
            self._cut(name, ends.get(name), keep=keep or name in unreadable)
            if content.watermark is None:
                self._damaged.found += damaged.get(name, ())
        watermark = content.watermark
        if watermark is None:
            self._note_lost(unknown, damaged)
            watermark = _watermark(adopted, in_wal, self._lost_end)
            index.apply(IndexChange(watermark=watermark))
        return sorted([*rows, *adopted], key=lambda row: row.first_seq), watermark

    def _note_lost(
        self, chunks: Sequence[_Unknown], damaged: dict[SegmentName, list[Corruption]]
    ) -> None:
        """Numbers of chunks that cannot be read are not given out again: somebody may know them."""
        faults = [fault for of_file in damaged.values() for fault in of_file]
        lost = sum(fault.offset >= HEADER_BYTES for fault in faults)  # as a rule a chunk each
        end = max([self._lost_end, *(chunk.head.next_seq for chunk in chunks)])
        self._lost_end = Seq(end + lost * MAX_ENTRIES)

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
            if head.next_seq <= end or not outside((head.first_seq, head.next_seq), elsewhere):
                continue
            try:
                if head.first_seq < end:
                    path = self._segments.path(chunk.name)
                    raise Corruption(path, chunk.offset, "the chunk overlaps another")
                waiting.append(self._indexed(chunk))
            except Unreadable as error:  # by another try it may be there: nothing is set aside
                raise error.error from None
            except Corruption as error:
                self._damaged.found.append(error)
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
            self._damaged.set_aside(path)
        elif end is None:
            self._segments.remove(name)
        elif self._segments.size(name) > end:
            if keep:
                self._damaged.keep_copy(path, end)
            self._segments.truncate(name, end)


def _name_of(row: ChunkRow) -> SegmentName:
    return row.segment_seq, row.segment_number


def _known_end(content: IndexContent) -> Seq:
    return max([content.watermark or Seq(0), *(row.next_seq for row in content.rows)])


def _ends(rows: Sequence[ChunkRow]) -> dict[SegmentName, int]:
    """Where the last of the chunks ends in each segment file."""
    ends: dict[SegmentName, int] = {}
    for row in rows:
        ends[_name_of(row)] = max(ends.get(_name_of(row), 0), row.end)
    return ends


def _watermark(rows: Sequence[ChunkRow], in_wal: Sequence[Span], lost_end: Seq) -> Seq:
    """Of a rebuilt index: below it nothing waits in the WAL."""
    frozen = joined((row.first_seq, row.next_seq) for row in rows)
    waiting = [start for span in in_wal for start, _ in outside(span, frozen)]
    return Seq(min([*waiting, max([lost_end, *(stop for _, stop in frozen)])]))


def _frozen(watermark: Seq | None, rows: Sequence[ChunkRow]) -> list[Span]:
    """What is in chunks, or was: all that the index ever knew, and what was adopted."""
    below = [(0, int(watermark))] if watermark else []
    return joined([*below, *((int(row.first_seq), int(row.next_seq)) for row in rows)])
