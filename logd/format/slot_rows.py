"""Which entries the variables of a block belong to: from places in slot order (`templates.py`) back
to template, slot and entry."""

from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]

SLOT_BITS: Final = 32
_FEW_TEMPLATES: Final = 8
_FEW_PLACES: Final = 4


class Places(NamedTuple):
    """Of each variable, int64[k]: the entry within the block, its template's code, and which of the
    template's variables it is."""

    rows: Int64s
    codes: Int64s
    slots: Int64s


def slot_keys(numbers: Int64s, slots: Int64s) -> Int64s:
    """int64[k]: a template or an entry, and a slot, as one number."""
    return (numbers << SLOT_BITS) | slots


class Stretches(NamedTuple):
    """Variables of some slots of some templates, int64[k] each: their places in slot order, how far
    behind each the entry's next variable lies, and the entries within the block."""

    places: Int64s
    steps: Int64s
    rows: Int64s


class SlotRows:
    """`codes`: the template codes of a block's entries; `slots`: int64[templates], variables per
    template. Raises IndexError where they do not fit together."""

    def __init__(self, codes: Codes, slots: Int64s) -> None:
        self._entries = np.bincount(codes, minlength=len(slots))
        if len(self._entries) > len(slots):
            raise IndexError("a code without a template")
        self._codes = codes
        self._slots = slots
        self._by_code: Codes | None = None

    @cached_property
    def _ends(self) -> Int64s:
        ends: Int64s = np.cumsum(self._entries * self._slots)
        return ends

    def _begins(self, codes: Int64s) -> Int64s:
        """Where the variables of templates begin."""
        if len(codes) > _FEW_TEMPLATES:
            begins: Int64s = self._ends[codes] - self._entries[codes] * self._slots[codes]
            return begins
        before = [np.dot(self._entries[:code], self._slots[:code]) for code in codes.tolist()]
        return np.array(before, np.int64)

    def stretches(self, codes: Int64s, slots: Int64s) -> Stretches:
        """The variables at these slots of these templates, of all entries. `codes`: ascending;
        where the slots of each are too, so are the places."""
        entries = self._entries[codes]
        starts = self._begins(codes) + entries * slots
        before = np.cumsum(entries) - entries
        within = np.arange(int(entries.sum()))
        rows = self._rows_of(codes)
        first = np.searchsorted(self._codes[rows], codes)
        return Stretches(
            np.repeat(starts - before, entries) + within,
            np.repeat(entries, entries),
            rows[np.repeat(first - before, entries) + within],
        )

    def _rows_of(self, codes: Int64s) -> Int64s:
        """The entries of templates, by template and then as they stand."""
        if len(codes) == 1:
            return np.flatnonzero(self._codes == codes.astype(self._codes.dtype))
        wanted = np.zeros(len(self._slots), np.bool_)
        wanted[codes] = True
        rows = np.flatnonzero(wanted.take(self._codes))
        return rows[np.argsort(self._codes[rows], kind="stable")]

    def locate(self, positions: Int64s) -> Places:
        """Where the variables at these places in slot order belong to."""
        codes = np.searchsorted(self._ends, positions, side="right")
        entries = self._entries[codes]
        within = positions - (self._ends[codes] - entries * self._slots[codes])
        slots = within // entries
        if len(positions) <= _FEW_PLACES:
            ranks = within - slots * entries
            few = [
                np.flatnonzero(self._codes == code)[rank]
                for code, rank in zip(codes.tolist(), ranks.tolist(), strict=True)
            ]
            return Places(np.array(few, np.int64), codes, slots)
        if self._by_code is None:
            self._by_code = np.argsort(self._codes.astype(np.uint16), kind="stable")
            self._first = np.cumsum(self._entries) - self._entries
        rows = self._by_code[self._first[codes] + within - slots * entries]
        return Places(rows.astype(np.int64), codes, slots)
