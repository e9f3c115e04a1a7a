"""Where the variables of single entries of a block lie, which are stored in slot order
(`slot_order.py`), and to which entries single variables belong.

As in `slot_layout.py`, but no slot is put in order: for a few entries it is quicker to add up what
the slots before theirs hold.
"""

from bisect import bisect_right
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from logd.format.block_variables import ClassSizes

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.integer[Any]]


class EntryPlaces:
    """`codes`: the template codes of a block's entries; `slots`: int64[templates], variables of
    each; `classes`: uint8[k], those of the slots of the first templates; `of`: the block's, None
    where they have to be counted. Raises IndexError where an entry has no template.
    """

    def __init__(
        self, codes: Codes, slots: Int64s, classes: Bytes, of: ClassSizes | None = None
    ) -> None:
        self.codes = codes
        self._slots = slots
        self._classes = classes
        self._entries = np.bincount(codes, minlength=len(slots))
        if len(self._entries) > len(slots):
            raise IndexError("a code without a template")
        if of is None:
            sizes = self._held_before(len(classes)).astype(np.int64)
            of = ClassSizes(np.arange(len(sizes), dtype=np.uint8), sizes)
        self._classed = int(np.add.reduce(of.sizes))
        begins = (np.cumsum(of.sizes) - of.sizes).tolist()
        self._class_begins: dict[int, int] = dict(zip(of.classes.tolist(), begins, strict=True))
        self._begins: dict[int, list[int]] = {}
        self._of_class: dict[int, tuple[Int64s, Floats]] = {}

    def positions_of(self, row: int) -> list[int]:
        """The places of all variables of one entry. Raises IndexError where one has a class that
        the block has no variables of."""
        code = self.codes.item(row)
        begins = self._begins.get(code)
        if begins is None:
            begins = self._begins[code] = self._begins_of(code)
        rank = int(np.count_nonzero(self.codes[:row] == code))
        return [begin + rank for begin in begins]

    def row_at(self, place: int) -> int:
        """The entry that the variable at a place belongs to. Raises IndexError where there is
        none."""
        code, rank = self._plain_at(place) if place >= self._classed else self._classed_at(place)
        return np.flatnonzero(self.codes == code).item(rank)

    # ------------------------------------------------------------ all slots of the templates

    @cached_property
    def _slot_ends(self) -> Int64s:
        """int64[templates]: where the slots of each end, counted through all templates."""
        ends: Int64s = np.cumsum(self._slots)
        return ends

    @cached_property
    def _per_slot(self) -> Floats:
        """float64[slots]: the variables of each, as `bincount` weighs; exact below 2^53."""
        return np.repeat(self._entries.astype(np.float64), self._slots)

    def _held_before(self, slot: int) -> Floats:
        """By class: the variables of all slots before one that has a class."""
        held = np.bincount(self._classes[:slot], self._per_slot[:slot])
        return held.astype(np.float64, copy=False)

    @cached_property
    def _covered(self) -> int:
        """How many templates are not plain."""
        return int(self._slot_ends.searchsorted(len(self._classes), side="right"))

    def _begins_of(self, code: int) -> list[int]:
        """Where the variables of each slot of one template begin."""
        slots, entries = self._slots.item(code), self._entries.item(code)
        first = self._slot_ends.item(code) - slots
        classes = self._classes[first : first + slots].tolist()
        if not classes:  # it has no variables, or is plain
            before = slice(self._covered, code)
            begin = self._classed + int(np.dot(self._entries[before], self._slots[before]))
            return [begin + number * entries for number in range(slots)]
        if len(classes) < slots:
            raise IndexError("the classes end within a template")
        held = self._held_before(first)
        ends: dict[int, int] = {}  # of a class the template's slots are neighbours
        out = []
        for kind in classes:
            if kind not in self._class_begins:
                raise IndexError("a class that the block has no variables of")
            if kind not in ends:
                before_it = int(held.item(kind)) if kind < len(held) else 0
                ends[kind] = self._class_begins[kind] + before_it
            out.append(ends[kind])
            ends[kind] += entries
        return out

    def _classed_at(self, place: int) -> tuple[int, int]:
        """(the template, the rank among the entries of it) of a variable that has a class."""
        begins = list(self._class_begins.values())
        which = bisect_right(begins, place) - 1
        kind, within = list(self._class_begins)[which], place - begins[which]
        if kind not in self._of_class:
            slots = np.flatnonzero(self._classes == kind)
            self._of_class[kind] = slots, np.cumsum(self._per_slot.take(slots))
        slots, ends = self._of_class[kind]
        at = int(ends.searchsorted(within, side="right"))
        code = int(self._slot_ends.searchsorted(slots.item(at), side="right"))
        return code, within - int(ends.item(at)) + self._entries.item(code)

    def _plain_at(self, place: int) -> tuple[int, int]:
        """The same of one of a plain template."""
        entries = self._entries[self._covered :]
        ends = np.cumsum(entries * self._slots[self._covered :])
        within = place - self._classed
        at = int(ends.searchsorted(within, side="right"))
        return self._covered + at, (within - ends.item(at)) % entries.item(at)
