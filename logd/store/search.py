"""From a snapshot and a filter to rows, totals and single entries. Runs in a worker thread."""

import bisect
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from logd.entry import Entry, Seq
from logd.errors import Corruption
from logd.query.ast import And, Filter, Node, Not, Or, Term
from logd.store.chunk_reader import ChunkReader
from logd.store.chunk_search import ChunkSearch
from logd.store.index import ProjectIndex
from logd.store.selection import (
    ALL,
    NONE,
    Bools,
    ByText,
    Counted,
    Everything,
    Nothing,
    Rows,
    Selection,
    both,
    either,
    inverse,
)
from logd.store.tail import TailBlock
from logd.store.tail_search import TailSearch

_SLICE: Final = 4096

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]
Check = Callable[[], None]
LevelCounts = tuple[int, int, int, int]


class Snapshot(msgspec.Struct, frozen=True):
    """A project's log at one moment. Immutable: what freezes, merges or goes later does not show.

    `chunks` by first sequence number; `blocks` hold what is in no chunk, all below `visible_seq`.
    """

    chunks: tuple[ChunkReader, ...]
    blocks: tuple[TailBlock, ...]
    visible_seq: Seq
    index: ProjectIndex | None
    level_counts: LevelCounts


class Position(msgspec.Struct, frozen=True):
    """Where a page ended: behind the entry (`ts_ns`, `seq`), newest first; only entries below
    `pinned_seq` belong to the pages."""

    pinned_seq: Seq
    ts_ns: int
    seq: Seq


class Found(msgspec.Struct, frozen=True):
    """Rows newest first; `total` None where it was not asked for; `last`: (ts_ns, seq) of the last
    row if more rows follow, else None; `damage`: what could not be read and is missing here."""

    entries: tuple[Entry, ...]
    total: int | None
    last: tuple[int, Seq] | None
    damage: tuple[Corruption, ...]


class SearchPart(Protocol):
    """A stretch of the log; row i is the entry of sequence number first_seq + i.

    `place(ts_ns, row)`: how many of its rows are earlier, or of that time and before `row`.
    """

    first_seq: Seq
    count: int
    min_ts_ns: int
    max_ts_ns: int

    @property
    def level_counts(self) -> LevelCounts: ...
    def place(self, ts_ns: int, row: int) -> int: ...
    def times_at(self, rows: Codes) -> Int64s: ...
    def time_order(self) -> Codes | None: ...
    def levels(self) -> Codes: ...
    def entries(self, rows: Int64s) -> list[Entry]: ...
    def term(self, term: Term) -> Selection: ...
    def expand(self, selection: ByText) -> Bools: ...
    def text_counts(self, kind: int, level: int | None) -> Codes: ...
    def close(self) -> None: ...


class _Candidates(msgspec.Struct, frozen=True):
    """Rows of one part, ascending, with their order keys."""

    part: SearchPart
    rows: Int64s
    times: Int64s
    seqs: Int64s


def search(
    snapshot: Snapshot,
    filter_: Filter,
    limit: int,
    after: Position | None,
    *,
    with_total: bool,
    check: Check,
) -> Found:
    """The newest `limit` matching entries behind `after`, and how many match in all.

    `check()` is called between slices of work and raises to end it.
    """
    pinned = snapshot.visible_seq if after is None else after.pinned_seq
    page = _Page(limit + 1)
    total = 0
    damage: list[Corruption] = []
    for candidate in _parts(snapshot, filter_, pinned):
        wanted = page.wants(candidate.max_ts_ns)
        if not wanted and not with_total:
            break
        wanted = wanted and (after is None or candidate.min_ts_ns <= after.ts_ns)
        if not wanted and not with_total:
            continue
        check()
        if not wanted:
            count = _count_unopened(candidate.part, filter_, pinned)
            if count is not None:
                total += count
                continue
        part = _open(snapshot, candidate.part, check)
        try:
            part_search = _PartSearch(part, filter_, pinned)
            if wanted:
                page.add(part_search.newest(limit + 1, after))
            if with_total:
                total += part_search.count()
        except Corruption as error:
            damage.append(error)
        finally:
            part.close()
    entries, last = page.finish(limit, damage)
    return Found(tuple(entries), total if with_total else None, last, tuple(damage))


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


def _open(snapshot: Snapshot, part: ChunkReader | TailBlock, check: Check) -> SearchPart:
    if isinstance(part, TailBlock):
        return TailSearch(part, check)
    if snapshot.index is None:
        raise ValueError("a snapshot with chunks has an index")
    return ChunkSearch(part, snapshot.index, check)


def _count_unopened(part: ChunkReader | TailBlock, filter_: Filter, pinned: Seq) -> int | None:
    """How many match, where the chunk's directory row tells: without a search, with all of the
    chunk in the window."""
    if filter_.search is not None or isinstance(part, TailBlock):
        return None
    row = part.row
    below = filter_.from_ns is None or filter_.from_ns <= row.min_ts_ns
    above = filter_.to_ns is None or filter_.to_ns > row.max_ts_ns
    if not (below and above and row.next_seq <= pinned):
        return None
    return row.count if filter_.level is None else row.level_counts[filter_.level]


def _overlaps(filter_: Filter, min_ts_ns: int, max_ts_ns: int) -> bool:
    return (filter_.from_ns is None or max_ts_ns >= filter_.from_ns) and (
        filter_.to_ns is None or min_ts_ns < filter_.to_ns
    )


class _PartSearch:
    """A filter on one part: how many rows match, and which are the newest.

    *Places* are positions in the order of (time, sequence number): a time window is a range of
    them.
    """

    def __init__(self, part: SearchPart, filter_: Filter, pinned: Seq) -> None:
        self._part = part
        self._level = filter_.level
        self._from_ns, self._to_ns = filter_.from_ns, filter_.to_ns
        self._low, self._high = _time_window(part, filter_)
        self._pinned_rows = min(part.count, pinned - part.first_seq)
        self._mask: Bools | None = None
        empty = self._low >= self._high
        if empty or (self._level is not None and not part.level_counts[self._level]):
            self._selection: Selection = NONE
        else:
            self._selection = ALL if filter_.search is None else _evaluate(filter_.search, part)

    @property
    def _is_pinned_whole(self) -> bool:
        return self._pinned_rows == self._part.count

    @property
    def _needs_mask(self) -> bool:
        """Not every row of the time window matches."""
        everything = isinstance(self._selection, Everything)
        return not (everything and self._level is None and self._is_pinned_whole)

    def count(self) -> int:
        """Matching rows; from counts alone wherever they suffice."""
        part, selection = self._part, self._selection
        whole = self._low == 0 and self._high == part.count and self._is_pinned_whole
        if isinstance(selection, Nothing):
            return 0
        if not self._needs_mask:
            return self._high - self._low
        if whole and isinstance(selection, Everything) and self._level is not None:
            return part.level_counts[self._level]
        if whole and isinstance(selection, ByText):
            counts = part.text_counts(selection.kind, self._level)
            return int(counts[selection.texts].sum())
        if whole and isinstance(selection, Counted) and self._level is None:
            return selection.count
        if self._high - self._low == part.count:
            return int(np.count_nonzero(self._matching()))
        rows = np.flatnonzero(self._matching())
        return int(np.count_nonzero(self._in_window(part.times_at(rows))))

    def newest(self, limit: int, after: Position | None) -> _Candidates:
        """The newest `limit` matching rows behind `after`, by time."""
        high = self._high if after is None else min(self._high, self._places_before(after))
        if isinstance(self._selection, Nothing):
            rows = np.zeros(0, np.int64)
        elif not self._needs_mask:
            rows = self._rows_at(max(self._low, high - limit), high)
        else:
            rows = self._newest_matching(limit, high, after)
        times = self._part.times_at(rows) if len(rows) else rows
        return _Candidates(self._part, rows, times, rows + int(self._part.first_seq))

    def _newest_matching(self, limit: int, high: int, after: Position | None) -> Int64s:
        """Backwards in slices: where much matches, little is looked at."""
        mask = self._matching()
        if np.count_nonzero(mask) <= max(_SLICE, 4 * limit):
            return self._newest_of(np.flatnonzero(mask), limit, after)
        found: list[Int64s] = []
        missing = limit
        while high > self._low and missing > 0:
            low = max(self._low, high - max(_SLICE, 4 * missing))
            rows = self._rows_at(low, high)
            hits = rows[mask[rows]][-missing:]
            found.append(hits)
            missing -= len(hits)
            high = low
        return np.concatenate(found[::-1]) if found else np.zeros(0, np.int64)

    def _newest_of(self, rows: Int64s, limit: int, after: Position | None) -> Int64s:
        """The same of a few rows: they alone are put in order."""
        times = self._part.times_at(rows)
        chosen = self._in_window(times)
        if after is not None:
            earlier = rows < after.seq - self._part.first_seq
            chosen &= (times < after.ts_ns) | ((times == after.ts_ns) & earlier)
        rows, times = rows[chosen], times[chosen]
        return rows[np.argsort(times, kind="stable")][-limit:]

    def _in_window(self, times: Int64s) -> Bools:
        inside = np.ones(len(times), np.bool_)
        if self._from_ns is not None:
            inside &= times >= self._from_ns
        if self._to_ns is not None:
            inside &= times < self._to_ns
        return inside

    def _rows_at(self, low: int, high: int) -> Int64s:
        """int64[high - low]: the rows at places low to high."""
        order = self._part.time_order()
        return np.arange(low, high) if order is None else order[low:high].astype(np.int64)

    def _matching(self) -> Bools:
        """bool[count]: the rows that match, the time window apart."""
        if self._mask is None:
            mask = _to_mask(self._selection, self._part)
            if self._level is not None:
                mask = mask & (self._part.levels() == self._level)
            if not self._is_pinned_whole:
                mask = mask.copy()
                mask[self._pinned_rows :] = False
            self._mask = mask
        return self._mask

    def _places_before(self, after: Position) -> int:
        """Rows in front of (after.ts_ns, after.seq), by time."""
        return self._part.place(after.ts_ns, after.seq - self._part.first_seq)


def _time_window(part: SearchPart, filter_: Filter) -> tuple[int, int]:
    """Places low to high lie within the filter's times."""
    low, high = 0, part.count
    if filter_.from_ns is not None and filter_.from_ns > part.min_ts_ns:
        low = part.place(filter_.from_ns, 0)
    if filter_.to_ns is not None and filter_.to_ns <= part.max_ts_ns:
        high = part.place(filter_.to_ns, 0)
    return low, high


def _to_mask(selection: Selection, part: SearchPart) -> Bools:
    if isinstance(selection, Rows):
        return selection.mask
    if isinstance(selection, ByText):
        return part.expand(selection)
    if isinstance(selection, Counted):
        return selection.find()
    return np.full(part.count, isinstance(selection, Everything), np.bool_)


def _evaluate(node: Node, part: SearchPart) -> Selection:
    if isinstance(node, Term):
        return part.term(node)
    if isinstance(node, Not):
        return inverse(_evaluate(node.child, part))
    if isinstance(node, And):
        found: Selection = ALL
        for child in sorted(node.children, key=_cost):
            found = both(found, _evaluate(child, part), part.expand)
            if isinstance(found, Nothing):
                break
        return found
    if isinstance(node, Or):
        found = NONE
        for child in node.children:
            found = either(found, _evaluate(child, part), part.expand)
        return found
    raise TypeError(f"not a search node: {node!r}")


def _cost(node: Node) -> int:
    """What is cheap to decide comes first: it may spare the rest."""
    if isinstance(node, Term):
        return 2 if node.meta_path is not None else len(node.words) > 1
    if isinstance(node, Not):
        return _cost(node.child)
    return max(_cost(child) for child in node.children)


class _Page:
    """The newest rows found so far, over all parts."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: list[_Candidates] = []
        self._oldest: int | None = None

    def wants(self, max_ts_ns: int) -> bool:
        """Whether a part that ends at `max_ts_ns` may still hold one of the newest rows."""
        return self._oldest is None or max_ts_ns >= self._oldest

    def add(self, candidates: _Candidates) -> None:
        if not len(candidates.rows):
            return
        self._found.append(candidates)
        if sum(len(c.rows) for c in self._found) >= self._limit:
            self._keep_newest()

    def _keep_newest(self) -> None:
        """Drop what is not among the newest, so that the page never holds much more."""
        owner, order = self._order()
        keep = order[: self._limit]
        times = np.concatenate([c.times for c in self._found])
        self._oldest = int(times[keep[-1]])
        chosen = np.zeros(len(owner), np.bool_)
        chosen[keep] = True
        kept = []
        for number, candidates in enumerate(self._found):
            mine = chosen[owner == number]
            if mine.any():
                kept.append(
                    _Candidates(
                        candidates.part,
                        candidates.rows[mine],
                        candidates.times[mine],
                        candidates.seqs[mine],
                    )
                )
        self._found = kept

    def _order(self) -> tuple[Int64s, Int64s]:
        """(which part each candidate is of, positions newest first)."""
        owner = np.repeat(np.arange(len(self._found)), [len(c.rows) for c in self._found])
        times = np.concatenate([c.times for c in self._found])
        seqs = np.concatenate([c.seqs for c in self._found])
        return owner, np.lexsort((seqs, times))[::-1]

    def finish(
        self, limit: int, damage: list[Corruption]
    ) -> tuple[list[Entry], tuple[int, Seq] | None]:
        """(the newest `limit` entries, newest first; the last one's order key if rows follow).

        A part whose rows cannot be read is added to `damage` and left out.
        """
        if not self._found:
            return [], None
        owner, order = self._order()
        keep = order[:limit]
        chosen = np.zeros(len(owner), np.bool_)
        chosen[keep] = True
        by_key: dict[tuple[int, int], Entry] = {}
        for number, candidates in enumerate(self._found):
            rows = np.sort(candidates.rows[chosen[owner == number]])
            try:
                entries = candidates.part.entries(rows) if len(rows) else []
            except Corruption as error:
                damage.append(error)
                continue
            by_key.update({(entry.ts_ns, entry.seq): entry for entry in entries})
        newest_first = [by_key[key] for key in sorted(by_key, reverse=True)]
        if len(order) <= limit:
            return newest_first, None
        times = np.concatenate([c.times for c in self._found])
        seqs = np.concatenate([c.seqs for c in self._found])
        return newest_first, (int(times[keep[-1]]), Seq(int(seqs[keep[-1]])))


def entry_at(snapshot: Snapshot, seq: Seq) -> Entry | None:
    """One entry by its sequence number, None where it is not stored. Raises Corruption."""
    at = bisect.bisect_right(snapshot.chunks, seq, key=lambda chunk: chunk.first_seq) - 1
    if at >= 0 and seq < snapshot.chunks[at].row.next_seq:
        chunk = snapshot.chunks[at]
        return chunk.entries(np.array([seq - chunk.first_seq], np.int64))[0]
    for block in snapshot.blocks:
        if block.first_seq <= seq < block.next_seq:
            part = TailSearch(block, check=_no_check)
            return part.entries(np.array([seq - block.first_seq], np.int64))[0]
    return None


def _no_check() -> None:
    """One entry is one slice."""
