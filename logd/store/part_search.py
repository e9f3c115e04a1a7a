"""A filter on one part of the log: how many of its rows match, and which are the newest."""

from typing import Any, Final, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from logd.entry import Entry, LevelCounts, Seq
from logd.query.ast import And, Filter, Node, Not, Or, Term
from logd.store.page import Candidates, Check
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

_SLICE: Final = 4096
_FEW_MATCHES: Final = 256

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]


class Position(msgspec.Struct, frozen=True):
    """Where a page ended: behind the entry (`ts_ns`, `seq`), newest first; only entries below
    `pinned_seq` belong to the pages."""

    pinned_seq: Seq
    ts_ns: int
    seq: Seq

    def follows(self, times: Int64s, seqs: Int64s) -> Bools:
        """bool[n]: which entries come behind it."""
        behind: Bools = (times < self.ts_ns) | ((times == self.ts_ns) & (seqs < self.seq))
        return behind


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
    def entries(self, rows: Int64s, check: Check) -> list[Entry]: ...
    def term(self, term: Term) -> Selection: ...
    def expand(self, selection: ByText) -> Bools: ...
    def text_counts(self, kind: int, level: int | None) -> Codes: ...
    def close(self) -> None: ...


class Matches(msgspec.Struct, frozen=True):
    """How many rows of a part match; where they are few, the rows by (time, sequence number) and
    their times, int64[count] each, else None."""

    count: int
    few: tuple[Int64s, Int64s] | None

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about."""
        return 200 if self.few is None else 500 + 16 * self.count


class PartSearch:
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

    def matches(self) -> Matches:
        """For a part in the window whole."""
        count = self.count()
        if count > _FEW_MATCHES:
            return Matches(count, None)
        rows = np.flatnonzero(self._matching()) if count else np.zeros(0, np.int64)
        times = self._part.times_at(rows) if count else rows
        if count < 2:
            return Matches(count, (rows, times))
        order = np.argsort(times, kind="stable")
        return Matches(count, (rows[order], times[order]))

    def newest(self, limit: int, after: Position | None) -> Candidates:
        """The newest `limit` matching rows behind `after`, by time."""
        high = self._high if after is None else min(self._high, self._places_before(after))
        if isinstance(self._selection, Nothing):
            rows = np.zeros(0, np.int64)
        elif not self._needs_mask:
            rows = self._rows_at(max(self._low, high - limit), high)
        else:
            rows = self._newest_matching(limit, high, after)
        times = self._part.times_at(rows) if len(rows) else rows
        return Candidates(self._part, rows, times, rows + int(self._part.first_seq))

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
            chosen &= after.follows(times, rows + int(self._part.first_seq))
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
