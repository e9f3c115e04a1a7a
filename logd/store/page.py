"""The newest rows of a listing, gathered from part after part."""

from collections.abc import Callable
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
        self._oldest: int | None = None

    def wants(self, max_ts_ns: int) -> bool:
        """Whether a part that ends at `max_ts_ns` may still hold one of the newest rows."""
        return self._oldest is None or max_ts_ns >= self._oldest

    def add(self, candidates: Candidates) -> None:
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
                    Candidates(
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
        self, limit: int, damage: list[Corruption], check: Check
    ) -> tuple[list[Entry], tuple[int, Seq] | None]:
        """(the newest `limit` entries, newest first; the last one's order key if rows follow).

        A part whose rows cannot be read is added to `damage` and left out. `check()` is called
        between slices of work and raises to end it.
        """
        if not self._found:
            return [], None
        owner, order = self._order()
        keep = order[:limit]
        chosen = np.zeros(len(owner), np.bool_)
        chosen[keep] = True
        by_key: dict[tuple[int, int], Entry] = {}
        are_all = len(keep) == len(order)
        for number, candidates in enumerate(self._found):
            rows = candidates.rows if are_all else candidates.rows[chosen[owner == number]]
            rows = np.sort(rows)
            try:
                entries = _read(candidates.part, rows, check)
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


def _read(part: Readable, rows: Int64s, check: Check) -> list[Entry]:
    """The entries of ascending rows."""
    entries: list[Entry] = []
    for start in range(0, len(rows), _SLICE_ROWS):
        check()
        entries += part.entries(rows[start : start + _SLICE_ROWS], check)
    return entries
