"""From a snapshot and a filter to rows, totals and single entries. Runs in a worker thread."""

import bisect
import contextlib
import heapq
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeGuard

import msgspec
import numpy as np
import numpy.typing as npt

from logd.entry import Entry, LevelCounts, Seq
from logd.errors import Corruption
from logd.format.directory import ChunkRow
from logd.query.ast import Filter
from logd.query.cursor import filter_digest
from logd.store.at_hand import Budget, NotAtHand
from logd.store.chunk_reader import ChunkReader
from logd.store.chunk_scans import Scanner, ScanNothing, may_scan
from logd.store.chunk_search import ChunkSearch
from logd.store.columns import FEW_ROWS
from logd.store.index import ProjectIndex
from logd.store.page import Candidates, Check, Page, runs
from logd.store.part_search import Matches, PartSearch, Position, SearchPart
from logd.store.tail import TailBlock
from logd.store.tail_search import TailAtHand, TailSearch
from logd.store.term_keys import TermKeys

Int64s = npt.NDArray[np.int64]

__all__ = ["Found", "Position", "Snapshot", "entry_at", "search", "search_at_hand"]


class Snapshot(msgspec.Struct, frozen=True):
    """A project's log at one moment. Immutable: what freezes, merges or goes later does not show.

    `chunks` by first sequence number, the same ones by their latest entries, `view_number` of these
    and no others; `blocks` hold what is in no chunk, all below `visible_seq`; `level_counts`: of
    all that.
    """

    view_number: int
    chunks: tuple[ChunkReader, ...]
    latest_first: tuple[ChunkReader, ...]
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
    if with_total and filter_.search is not None and may_scan(filter_.search):
        work.prepare([candidate.part for candidate in _parts(snapshot, filter_, pinned)])
    return work.run()


def search_at_hand(
    snapshot: Snapshot,
    filter_: Filter,
    limit: int,
    after: Position | None,
    *,
    with_total: bool,
    seconds: float,
) -> Found | None:
    """The same, if what is in memory suffices, and so many seconds; None if not. Reads no file."""
    pinned = snapshot.visible_seq if after is None else after.pinned_seq
    check = Budget(seconds).check
    work = _ListingAtHand(snapshot, filter_, limit, after, pinned, with_total, ScanNothing(), check)
    try:
        return work.run()
    except NotAtHand:
        return None


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
        self._term_keys = TermKeys()
        self._page = Page(limit + 1)
        self._total = 0
        self._damage: list[Corruption] = []

    @cached_property
    def _key(self) -> tuple[str, bytes]:
        """Of what matches in a chunk."""
        return "matches", filter_digest(Filter(self._filter.level, None, None, self._filter.search))

    def run(self) -> Found:
        counted = self._counted_already()
        if self._asks_all_chunks():
            self._visit_all_chunks()
            self._visit_each(_blocks(self._snapshot, self._filter, self._pinned), counted)
        else:
            self._visit_each(_parts(self._snapshot, self._filter, self._pinned), counted)
        total = self._total if counted is None or self._damage else counted
        entries, last = self._page.finish(self._limit, self._damage, self._check)
        return Found(tuple(entries), total if self._with_total else None, last, tuple(self._damage))

    def _visit_each(self, candidates: Iterable["_Candidate"], counted: int | None) -> None:
        """`candidates`: latest first; `counted`: how many match in all, where that is known."""
        for candidate in candidates:
            wanted = self._page.wants(candidate.max_ts_ns)
            counting = self._with_total and (counted is None or bool(self._damage))
            if not wanted and not counting:
                break
            wanted = wanted and (self._after is None or candidate.min_ts_ns <= self._after.ts_ns)
            if wanted or self._with_total:
                self._visit(candidate.part, wanted=wanted)

    def _asks_all_chunks(self) -> bool:
        """It is the first page of what matches in the whole log."""
        is_first = self._with_total and self._after is None
        has_chunks = bool(self._snapshot.chunks)
        return is_first and has_chunks and self._is_windowless and self._filter.search is not None

    @property
    def _is_windowless(self) -> bool:
        return self._filter.from_ns is None and self._filter.to_ns is None

    def _visit_all_chunks(self) -> None:
        """What is found in all chunks together is remembered as long as they are the same ones:
        of a thousand chunks, one look instead of a thousand."""
        snapshot = self._snapshot
        latest = snapshot.latest_first[0]
        key = ("all chunks", snapshot.view_number, self._limit, *self._key)
        known = latest.cached_already(key)
        if known is None:
            self._visit_each(_chunks(snapshot, self._filter, self._pinned), None)
            if not self._damage:
                latest.cached(key, self._of_all_chunks)
            return
        assert isinstance(known, _OfAllChunks)
        self._total = known.total
        stretches = list(runs(known.owners))
        together = len(stretches) * FEW_ROWS > len(known.rows)
        if together and self._add_remembered(known):
            return
        for start, stop in stretches:
            chunk = self._reach(snapshot.chunks[known.owners.item(start)])
            mine = slice(start, stop)
            self._page.add(Candidates(chunk, known.rows[mine], known.times[mine], known.seqs[mine]))

    def _add_remembered(self, known: "_OfAllChunks") -> bool:
        """Add all rows to the page at once; false where not all entries are remembered that it may
        show."""
        shown = np.lexsort((known.seqs, known.times))[-self._limit :]
        owners = [self._snapshot.chunks[at] for at in known.owners.take(shown).tolist()]
        rows = zip(owners, known.rows.take(shown).tolist(), strict=True)
        latest = self._snapshot.latest_first[0]
        entries = latest.entries_already([chunk.entry_key(row) for chunk, row in rows])
        if entries is None:
            return False
        places = np.full(len(known.rows), len(entries))
        places[shown] = np.arange(len(entries))
        self._page.add(Candidates(_Remembered(entries), places, known.times, known.seqs))
        return True

    def _of_all_chunks(self) -> tuple["_OfAllChunks", int]:
        """What was found so far, and its bytes."""
        found = self._page.found()
        owners = [_place_of(self._snapshot, some.seqs.item(0)) for some in found]
        counts = [len(some.rows) for some in found]
        nothing = np.zeros(0, np.int64)
        of_all = _OfAllChunks(
            self._total,
            np.repeat(np.array(owners, np.int64), counts),
            np.concatenate([nothing, *(some.rows for some in found)]),
            np.concatenate([nothing, *(some.times for some in found)]),
            np.concatenate([nothing, *(some.seqs for some in found)]),
        )
        return of_all, 500 + 4 * of_all.rows.nbytes

    def _counted_already(self) -> int | None:
        """How many match, where that is known of the log as a whole."""
        filter_, snapshot = self._filter, self._snapshot
        is_older = self._pinned != snapshot.visible_seq
        if filter_.search is not None or is_older or not self._is_windowless:
            return None
        return _of_level(snapshot.level_counts, filter_.level)

    def _visit(self, part: ChunkReader | TailBlock, *, wanted: bool) -> None:
        """Count the part's matches; `wanted`: it may also hold one of the newest."""
        self._check()
        try:
            if isinstance(part, ChunkReader) and self._is_in_window(part.row):
                self._visit_whole(part, wanted=wanted)
                return
            with self._open(part) as opened:
                part_search = PartSearch(opened, self._filter, self._pinned)
                if wanted:
                    self._page.add(part_search.newest(self._limit + 1, self._after))
                if self._with_total:
                    self._total += part_search.count()
        except Corruption as error:
            self._damage.append(error)

    def _is_in_window(self, row: ChunkRow) -> bool:
        """All of the chunk is, and is older than the listing."""
        from_ns, to_ns = self._filter.from_ns, self._filter.to_ns
        below = from_ns is None or from_ns <= row.min_ts_ns
        above = to_ns is None or to_ns > row.max_ts_ns
        return below and above and row.next_seq <= self._pinned

    def _visit_whole(self, chunk: ChunkReader, *, wanted: bool) -> None:
        """A chunk that lies in the window whole. It never changes, so what matches is remembered
        for the next page, and for the next such search."""
        few = None
        if self._filter.search is None:
            count = _of_level(chunk.row.level_counts, self._filter.level)
        else:
            matches = self._matches(chunk)
            count, few = matches.count, matches.few
        if wanted and count:
            rows, times = self._newest(chunk) if few is None else self._behind(chunk, *few)
            seqs = rows + int(chunk.first_seq)
            self._page.add(Candidates(self._reach(chunk), rows, times, seqs))
        self._total += count

    def _behind(self, chunk: ChunkReader, rows: Int64s, times: Int64s) -> tuple[Int64s, Int64s]:
        """Those of them behind the last page."""
        if self._after is None:
            return rows, times
        chosen = self._after.follows(times, rows + int(chunk.first_seq))
        return rows[chosen], times[chosen]

    def _newest(self, chunk: ChunkReader) -> tuple[Int64s, Int64s]:
        """(rows, their times) of the newest matches behind the last page."""

        def load() -> tuple[tuple[Int64s, Int64s], int]:
            with self._open(chunk) as opened:
                search_of_part = PartSearch(opened, self._filter, self._pinned)
                found = search_of_part.newest(self._limit + 1, self._after)
            return (found.rows, found.times), found.rows.nbytes + found.times.nbytes

        if self._after is not None:  # the next page begins elsewhere
            return load()[0]
        return self._reach(chunk).cached(("newest", self._limit, *self._key), load)

    def _matches(self, chunk: ChunkReader) -> Matches:
        def load() -> tuple[Matches, int]:
            with self._open(chunk) as opened:
                found = PartSearch(opened, self._filter, self._pinned).matches()
            return found, found.size_bytes

        return self._reach(chunk).cached(self._key, load)

    def _reach(self, chunk: ChunkReader) -> ChunkReader:
        """What is asked about the chunk."""
        return chunk

    def prepare(self, parts: Sequence[ChunkReader | TailBlock]) -> None:
        """Find what matches in chunks that `visit` will find remembered then, several at a time."""
        unknown = [part for part in parts if self._is_unknown(part)]
        chunks = iter(unknown)

        def work() -> None:
            for chunk in chunks:  # each goes to one of the threads
                self._check()
                with contextlib.suppress(Corruption):  # `visit` meets it again, and notes it
                    self._matches(chunk)

        self._scanner.share(work, len(unknown))

    def _is_unknown(self, part: ChunkReader | TailBlock) -> TypeGuard[ChunkReader]:
        return (
            isinstance(part, ChunkReader)
            and self._is_in_window(part.row)
            and part.cached_already(self._key) is None
        )

    def _open(self, part: ChunkReader | TailBlock) -> contextlib.AbstractContextManager[SearchPart]:
        if isinstance(part, TailBlock):
            return contextlib.closing(TailSearch(part, self._check, self._term_keys))
        index, reader = self._snapshot.index, self._reach(part)
        if index is None:
            raise ValueError("a snapshot with chunks has an index")
        return contextlib.closing(
            ChunkSearch(reader, index, self._scanner, self._check, self._term_keys)
        )


class _ListingAtHand(_Listing):
    """NotAtHand is raised where what is in memory does not suffice."""

    def _reach(self, chunk: ChunkReader) -> ChunkReader:
        return chunk.at_hand(self._check)

    def _open(self, part: ChunkReader | TailBlock) -> contextlib.AbstractContextManager[SearchPart]:
        if isinstance(part, TailBlock):
            return contextlib.closing(TailAtHand(part, self._check, self._term_keys))
        return super()._open(part)


class _OfAllChunks(NamedTuple):
    """How many rows match in all chunks of a view, and at least the newest of them, chunk by chunk,
    int64[n] each: the chunk's place in the view, the row, its order key."""

    total: int
    owners: Int64s
    rows: Int64s
    times: Int64s
    seqs: Int64s


class _Remembered(NamedTuple):
    """Entries of several chunks, as a part of the log that need not be read."""

    by_row: list[Entry]

    def entries(self, rows: Int64s, _check: Check) -> list[Entry]:
        return [self.by_row[row] for row in rows.tolist()]


class _Candidate(NamedTuple):
    """A part that may hold matches. It is open only while it is looked at: its index transaction
    covers one part, so that a long query never holds up the writer."""

    max_ts_ns: int
    first_seq: Seq
    min_ts_ns: int
    part: ChunkReader | TailBlock


def _parts(snapshot: Snapshot, filter_: Filter, pinned: Seq) -> Iterator[_Candidate]:
    """Latest first. Of many chunks no more are looked at than are asked for."""
    blocks = _blocks(snapshot, filter_, pinned)
    return heapq.merge(_chunks(snapshot, filter_, pinned), blocks, reverse=True)


def _blocks(snapshot: Snapshot, filter_: Filter, pinned: Seq) -> list[_Candidate]:
    """Latest first."""
    blocks = [
        _Candidate(block.max_ts_ns, block.first_seq, block.min_ts_ns, block)
        for block in snapshot.blocks
        if block.first_seq < pinned and _overlaps(filter_, block.min_ts_ns, block.max_ts_ns)
    ]
    blocks.sort(reverse=True)  # no two parts share a first sequence number
    return blocks


def _chunks(snapshot: Snapshot, filter_: Filter, pinned: Seq) -> Iterator[_Candidate]:
    for chunk in snapshot.latest_first:
        row = chunk.row
        if row.first_seq < pinned and _overlaps(filter_, row.min_ts_ns, row.max_ts_ns):
            yield _Candidate(row.max_ts_ns, row.first_seq, row.min_ts_ns, chunk)


def _of_level(counts: LevelCounts, level: int | None) -> int:
    return sum(counts) if level is None else counts[level]


def _overlaps(filter_: Filter, min_ts_ns: int, max_ts_ns: int) -> bool:
    return (filter_.from_ns is None or max_ts_ns >= filter_.from_ns) and (
        filter_.to_ns is None or min_ts_ns < filter_.to_ns
    )


def _place_of(snapshot: Snapshot, seq: int) -> int:
    """Of the last chunk that begins at or before `seq`; -1 where there is none."""
    return bisect.bisect_right(snapshot.chunks, seq, key=lambda chunk: chunk.first_seq) - 1


def entry_at(snapshot: Snapshot, seq: Seq) -> Entry | None:
    """One entry by its sequence number, None where it is not stored. Raises Corruption."""
    at = _place_of(snapshot, seq)
    if at >= 0 and seq < snapshot.chunks[at].row.next_seq:
        chunk = snapshot.chunks[at]
        return chunk.entries(np.array([seq - chunk.first_seq], np.int64))[0]
    for block in snapshot.blocks:
        if block.first_seq <= seq < block.next_seq:
            part = TailSearch(block, _no_check, TermKeys())
            return part.entries(np.array([seq - block.first_seq], np.int64), _no_check)[0]
    return None


def _no_check() -> None:
    """One entry is one slice."""
