"""Which entries the variables of a block belong to: from places in slot order (`templates.py`) back
to template, slot and entry."""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]

SLOT_BITS: Final = 32


class Places(NamedTuple):
    """Of each variable, int64[k]: the entry within the block, its template's code, and which of the
    template's variables it is."""

    rows: Int64s
    codes: Int64s
    slots: Int64s


def slot_keys(numbers: Int64s, slots: Int64s) -> Int64s:
    """int64[k]: a template or an entry, and a slot, as one number."""
    return (numbers << SLOT_BITS) | slots


class SlotRows:
    """`codes`: the template codes of a block's entries; `slots`: int64[templates], variables per
    template. Raises IndexError where they do not fit together."""

    def __init__(self, codes: Codes, slots: Int64s) -> None:
        self._entries = np.bincount(codes, minlength=len(slots))
        if len(self._entries) > len(slots):
            raise IndexError("a code without a template")
        self._codes = codes
        self._ends = np.cumsum(self._entries * slots)
        self._slots = slots
        self._by_code: Codes | None = None

    def stretches(self, codes: Int64s, slots: Int64s) -> tuple[Int64s, Int64s]:
        """(places in slot order of these slots of these templates, of all entries; how far behind
        each the entry's next variable lies). Ascending if the slots are, by template."""
        entries = self._entries[codes]
        starts = self._ends[codes] - entries * (self._slots[codes] - slots)
        before = np.cumsum(entries) - entries
        places = np.repeat(starts - before, entries) + np.arange(int(entries.sum()))
        return places, np.repeat(entries, entries)

    def locate(self, positions: Int64s) -> Places:
        """Where the variables at these places in slot order belong to."""
        codes = np.searchsorted(self._ends, positions, side="right")
        entries = self._entries[codes]
        within = positions - (self._ends[codes] - entries * self._slots[codes])
        slots = within // entries
        if self._by_code is None:
            self._by_code = np.argsort(self._codes.astype(np.uint16), kind="stable")
            self._first = np.cumsum(self._entries) - self._entries
        rows = self._by_code[self._first[codes] + within - slots * entries]
        return Places(rows.astype(np.int64), codes, slots)
