"""From a snapshot and a filter to rows, totals and single entries. Runs in a worker thread."""

import bisect
import contextlib
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, TypeGuard

import msgspec
import numpy as np

from logd.entry import Entry, Seq
from logd.errors import Corruption
from logd.format.directory import ChunkRow
from logd.query.ast import Filter
from logd.query.cursor import filter_digest
from logd.store.chunk_reader import ChunkReader
from logd.store.chunk_scans import Scanner, may_scan
from logd.store.chunk_search import ChunkSearch
from logd.store.index import ProjectIndex
from logd.store.page import Candidates, Check, Page
from logd.store.part_search import LevelCounts, Matches, PartSearch, Position, SearchPart
from logd.store.tail import TailBlock
from logd.store.tail_search import TailSearch

__all__ = ["Found", "Position", "Snapshot", "entry_at", "search"]


class Snapshot(msgspec.Struct, frozen=True):
    """A project's log at one moment. Immutable: what freezes, merges or goes later does not show.

    `chunks` by first sequence number; `blocks` hold what is in no chunk, all below `visible_seq`.
    """

    chunks: tuple[ChunkReader, ...]
    blocks: tuple[TailBlock, ...]
    visible_seq: Seq
    index: ProjectIndex | None
    level_counts: LevelCounts


class Found(msgspec.Struct, frozen=True):
    """Rows newest first; `total` None where it was not asked for; `last`: (ts_ns, seq) of the last
    row if more rows follow, else None; `damage`: what could not be read and is missing here."""

    entries: tuple[Entry, ...]
    total: int | None
    last: tuple[int, Seq] | None
    damage: tuple[Corruption, ...]


def search(
    snapshot: Snapshot,
    filter_: Filter,
    limit: int,
    after: Position | None,
    *,
    with_total: bool,
    scanner: Scanner,
    check: Check,
) -> Found:
    """The newest `limit` matching entries behind `after`, and how many match in all.

    `check()` is called between slices of work and raises to end it.
    """
    pinned = snapshot.visible_seq if after is None else after.pinned_seq
    work = _Listing(snapshot, filter_, limit, after, pinned, with_total, scanner, check)
    parts = _parts(snapshot, filter_, pinned)
    if with_total and filter_.search is not None and may_scan(filter_.search):
        work.prepare([candidate.part for candidate in parts])
    for candidate in parts:
        wanted = work.page.wants(candidate.max_ts_ns)
        if not wanted and not with_total:
            break
        wanted = wanted and (after is None or candidate.min_ts_ns <= after.ts_ns)
        if wanted or with_total:
            work.visit(candidate.part, wanted=wanted)
    entries, last = work.page.finish(limit, work.damage, check)
    return Found(tuple(entries), work.total if with_total else None, last, tuple(work.damage))


class _Listing:
    """A search under way: what was found in the parts visited."""

    def __init__(
        self,
        snapshot: Snapshot,
        filter_: Filter,
        limit: int,
        after: Position | None,
        pinned: Seq,
        with_total: bool,
        scanner: Scanner,
        check: Check,
    ) -> None:
        self._snapshot = snapshot
        self._filter = filter_
        self._limit = limit
        self._after = after
        self._pinned = pinned
        self._with_total = with_total
        self._scanner = scanner
        self._check = check
        self.page = Page(limit + 1)
        self.total = 0
        self.damage: list[Corruption] = []

    @cached_property
    def _key(self) -> tuple[str, bytes]:
        """Of what matches in a chunk."""
        return "matches", filter_digest(Filter(self._filter.level, None, None, self._filter.search))

    def visit(self, part: ChunkReader | TailBlock, *, wanted: bool) -> None:
        """Count the part's matches; `wanted`: it may also hold one of the newest."""
        self._check()
        try:
            if isinstance(part, ChunkReader) and self._visit_whole(part, wanted=wanted):
                return
            with self._open(part) as opened:
                part_search = PartSearch(opened, self._filter, self._pinned)
                if wanted:
                    self.page.add(part_search.newest(self._limit + 1, self._after))
                if self._with_total:
                    self.total += part_search.count()
        except Corruption as error:
            self.damage.append(error)

    def _is_in_window(self, row: ChunkRow) -> bool:
        """All of the chunk is, and is older than the listing."""
        from_ns, to_ns = self._filter.from_ns, self._filter.to_ns
        below = from_ns is None or from_ns <= row.min_ts_ns
        above = to_ns is None or to_ns > row.max_ts_ns
        return below and above and row.next_seq <= self._pinned

    def _visit_whole(self, chunk: ChunkReader, *, wanted: bool) -> bool:
        """A chunk that lies in the window whole; false where it does not, or where that takes a
        look at its rows. It never changes, so what matched is remembered for the next page, and
        for the next such search."""
        if not self._is_in_window(chunk.row):
            return False
        level = self._filter.level
        if self._filter.search is None:
            if not wanted:
                self.total += chunk.count if level is None else chunk.row.level_counts[level]
            return not wanted

        matches = self._matches(chunk)
        if wanted and matches.few is None:
            return False
        if wanted and matches.few is not None and matches.count:
            rows, times = matches.few
            seqs = rows + int(chunk.first_seq)
            if self._after is not None:
                behind = self._after.follows(times, seqs)
                rows, times, seqs = rows[behind], times[behind], seqs[behind]
            self.page.add(Candidates(chunk, rows, times, seqs))
        self.total += matches.count
        return True

    def _matches(self, chunk: ChunkReader) -> Matches:
        def load() -> tuple[Matches, int]:
            with self._open(chunk) as opened:
                found = PartSearch(opened, self._filter, self._pinned).matches()
            return found, found.size_bytes

        return chunk.cached(self._key, load)

    def prepare(self, parts: Sequence[ChunkReader | TailBlock]) -> None:
        """Find what matches in chunks that `visit` will find remembered then, several at a time."""
        chunks = iter([part for part in parts if self._is_unknown(part)])

        def work() -> None:
            for chunk in chunks:  # each goes to one of the threads
                self._check()
                with contextlib.suppress(Corruption):  # `visit` meets it again, and notes it
                    self._matches(chunk)

        self._scanner.share(work)

    def _is_unknown(self, part: ChunkReader | TailBlock) -> TypeGuard[ChunkReader]:
        return (
            isinstance(part, ChunkReader)
            and self._is_in_window(part.row)
            and part.cached_already(self._key) is None
        )

    def _open(self, part: ChunkReader | TailBlock) -> contextlib.AbstractContextManager[SearchPart]:
        if isinstance(part, TailBlock):
            return contextlib.closing(TailSearch(part, self._check))
        if self._snapshot.index is None:
            raise ValueError("a snapshot with chunks has an index")
        return contextlib.closing(
            ChunkSearch(part, self._snapshot.index, self._scanner, self._check)
        )


class _Candidate(NamedTuple):
    """A part that may hold matches. It is open only while it is looked at: its index transaction
    covers one part, so that a long query never holds up the writer."""

    max_ts_ns: int
    first_seq: Seq
    min_ts_ns: int
    part: ChunkReader | TailBlock


def _parts(snapshot: Snapshot, filter_: Filter, pinned: Seq) -> list[_Candidate]:
    """Latest first."""
    found = []
    for chunk in snapshot.chunks:
        row = chunk.row
        if row.first_seq < pinned and _overlaps(filter_, row.min_ts_ns, row.max_ts_ns):
            found.append(_Candidate(row.max_ts_ns, row.first_seq, row.min_ts_ns, chunk))
    found += [
        _Candidate(block.max_ts_ns, block.first_seq, block.min_ts_ns, block)
        for block in snapshot.blocks
        if block.first_seq < pinned and _overlaps(filter_, block.min_ts_ns, block.max_ts_ns)
    ]
    found.sort(reverse=True)  # no two parts share a first sequence number
    return found


def _overlaps(filter_: Filter, min_ts_ns: int, max_ts_ns: int) -> bool:
    return (filter_.from_ns is None or max_ts_ns >= filter_.from_ns) and (
        filter_.to_ns is None or min_ts_ns < filter_.to_ns
    )


def entry_at(snapshot: Snapshot, seq: Seq) -> Entry | None:
    """One entry by its sequence number, None where it is not stored. Raises Corruption."""
    at = bisect.bisect_right(snapshot.chunks, seq, key=lambda chunk: chunk.first_seq) - 1
    if at >= 0 and seq < snapshot.chunks[at].row.next_seq:
        chunk = snapshot.chunks[at]
        return chunk.entries(np.array([seq - chunk.first_seq], np.int64))[0]
    for block in snapshot.blocks:
        if block.first_seq <= seq < block.next_seq:
            part = TailSearch(block, check=_no_check)
            return part.entries(np.array([seq - block.first_seq], np.int64), _no_check)[0]
    return None


def _no_check() -> None:
    """One entry is one slice."""
