"""The newest rows of a listing, gathered from part after part."""

import itertools
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from logd.entry import Entry, Seq
from logd.errors import Corruption

Int64s = npt.NDArray[np.int64]
Check = Callable[[], None]

_SLICE_ROWS: Final = 32


class Readable(Protocol):
    """Where the entries of candidates are read."""

    def entries(self, rows: Int64s, check: Check) -> list[Entry]: ...


class Candidates(msgspec.Struct, frozen=True):
    """Rows of one part, ascending or by time, with their order keys."""

    part: Readable
    rows: Int64s
    times: Int64s
    seqs: Int64s


class Page:
    """The newest rows found so far, over all parts."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: list[Candidates] = []
        self._count = 0
        self._oldest: int | None = None

    def wants(self, max_ts_ns: int) -> bool:
        """Whether a part that ends at `max_ts_ns` may still hold one of the newest rows."""
        return self._oldest is None or max_ts_ns >= self._oldest

    def add(self, candidates: Candidates) -> None:
        if not len(candidates.rows):
            return
        self._found.append(candidates)
        self._count += len(candidates.rows)
        if self._count >= self._limit:
            self._keep_newest()

    def found(self) -> list[Candidates]:
        """At least the newest so far, part by part."""
        return list(self._found)

    def _keep_newest(self) -> None:
        """Drop what is not among the newest, so that the page never holds much more."""
        if self._count == self._limit:
            self._oldest = min(int(c.times.min()) for c in self._found)
            return
        newest = self._newest(self._limit)
        self._oldest = int(newest.times[-1])
        self._found = [
            Candidates(part, newest.rows[mine], newest.times[mine], newest.seqs[mine])
            for part, mine in self._by_part(newest)
        ]
        self._count = self._limit

    def _newest(self, count: int) -> "_Newest":
        """The newest `count` of what was found."""
        found = self._found
        if len(found) == 1:
            alone = found[0]
            order = np.lexsort((alone.seqs, alone.times))[: -count - 1 : -1]
            owners = np.zeros(len(order), np.int64)
            return _Newest(owners, alone.rows[order], alone.times[order], alone.seqs[order])
        rows = np.concatenate([c.rows for c in found])
        times = np.concatenate([c.times for c in found])
        seqs = np.concatenate([c.seqs for c in found])
        owners = np.repeat(np.arange(len(found)), [len(c.rows) for c in found])
        order = np.lexsort((seqs, times))[: -count - 1 : -1]
        return _Newest(owners[order], rows[order], times[order], seqs[order])

    def _by_part(self, newest: "_Newest") -> Iterator[tuple[Readable, Int64s]]:
        """Each part, and where its rows are in `newest`, by ascending row."""
        if len(self._found) == 1:
            yield self._found[0].part, np.argsort(newest.rows)
            return
        order = np.lexsort((newest.rows, newest.owners))
        owners = newest.owners[order]
        for start, stop in runs(owners):
            yield self._found[owners[start]].part, order[start:stop]

    def finish(
        self, limit: int, damage: list[Corruption], check: Check
    ) -> tuple[list[Entry], tuple[int, Seq] | None]:
        """(the newest `limit` entries, newest first; the last one's order key if rows follow).

        A part whose rows cannot be read is added to `damage` and left out. `check()` is called
        between slices of work and raises to end it.
        """
        if not self._found:
            return [], None
        newest = self._newest(limit)
        entries: list[Entry | None] = [None] * len(newest.rows)
        for part, mine in self._by_part(newest):
            try:
                read = _read(part, newest.rows[mine], check)
            except Corruption as error:
                damage.append(error)
                continue
            for place, entry in zip(mine.tolist(), read, strict=True):
                entries[place] = entry
        newest_first = [entry for entry in entries if entry is not None]
        if self._count <= limit:
            return newest_first, None
        return newest_first, (int(newest.times[-1]), Seq(int(newest.seqs[-1])))


class _Newest(msgspec.Struct, frozen=True):
    """Rows, newest first: the number of the part that each is of, its order key. Int64[n] each."""

    owners: Int64s
    rows: Int64s
    times: Int64s
    seqs: Int64s


def runs(numbers: Int64s) -> Iterator[tuple[int, int]]:
    """(start, stop) of each stretch of equal numbers."""
    if len(numbers):
        inner = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        yield from itertools.pairwise([0, *inner.tolist(), len(numbers)])


def _read(part: Readable, rows: Int64s, check: Check) -> list[Entry]:
    """The entries of ascending rows."""
    entries: list[Entry] = []
    for start in range(0, len(rows), _SLICE_ROWS):
        check()
        entries += part.entries(rows[start : start + _SLICE_ROWS], check)
    return entries
