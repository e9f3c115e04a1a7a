"""Where the variables of single entries of a block lie, which are stored in slot order
(`slot_order.py`), and to which entries single variables belong.

As in `slot_layout.py`, but no slot is put in order: for a few entries it is quicker to add up what
the slots before theirs hold.
"""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from logd.format.block_variables import ClassSizes
from logd.format.slot_order import ClassedSlots

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]


class EntryPlaces:
    """`codes`: the template codes of a block's entries; `of`: the block's classes, None where their
    variables have to be counted. Raises IndexError where an entry has no template, or the classes
    end within one.
    """

    def __init__(self, codes: Codes, slots: ClassedSlots, of: ClassSizes | None = None) -> None:
        if not slots.are_whole:
            raise IndexError("the classes end within a template")
        self.codes = codes
        self._slots = slots
        self._entries = np.bincount(codes, minlength=len(slots.counts))
        if len(self._entries) > len(slots.counts):
            raise IndexError("a code without a template")
        if of is None:
            counts = np.bincount(slots.classes, self._entries.take(slots.templates))
            of = ClassSizes(np.arange(len(counts), dtype=np.uint8), counts.astype(np.int64))
        self._sizes: dict[int, int] = dict(zip(of.classes.tolist(), of.sizes.tolist(), strict=True))
        *begins, self._classed = accumulate(self._sizes.values(), initial=0)
        self._class_begins: dict[int, int] = dict(zip(self._sizes, begins, strict=True))
        self._weights = self._entries.astype(np.float64)  # as `bincount` adds
        self._begins: dict[int, list[int]] = {}
        self._ends: dict[int, Int64s] = {}

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
        return self.locate(place)[0]

    def locate(self, place: int) -> tuple[int, int, int]:
        """(the entry, its template, which of the template's variables) that a place is of. Raises
        IndexError where there is none."""
        of = self._plain_at(place) if place >= self._classed else self._classed_at(place)
        code, number, rank = of
        return np.flatnonzero(self.codes == code).item(rank), code, number

    def _begins_of(self, code: int) -> list[int]:
        """Where the variables of each slot of one template begin."""
        slots = self._slots
        count, entries = slots.counts.item(code), self._entries.item(code)
        if code >= slots.covered:  # it is plain
            before = slice(slots.covered, code)
            begin = self._classed + int(
                np.dot(self._entries[before], slots.counts[before].astype(np.int64))
            )
            return [begin + number * entries for number in range(count)]
        end = slots.ends.item(code)
        mine = slots.classes[end - count : end].tolist()
        if any(kind not in self._class_begins for kind in mine):
            raise IndexError("a class that the block has no variables of")
        ends = self._begins_in_classes(code, end - count, mine) if mine else {}
        out = []
        for kind in mine:  # of a class the template's slots are neighbours
            out.append(ends[kind])
            ends[kind] += entries
        return out

    def _begins_in_classes(self, code: int, slots: int, kinds: Iterable[int]) -> dict[int, int]:
        """Where, in each of these classes, the variables of a template begin, before which there
        are so many slots. What it has on the shorter side is added up: templates that few entries
        have are mostly among the last."""
        of = self._slots
        if 2 * slots <= len(of.classes):
            held = self._held(slice(0, code), slice(0, slots))
            before = {kind: held.get(kind, 0) for kind in kinds}
        else:
            held = self._held(slice(code, of.covered), slice(slots, None))
            before = {kind: self._sizes[kind] - held.get(kind, 0) for kind in kinds}
        if min(before.values()) < 0:
            raise IndexError("a class with fewer variables than its slots have")
        return {kind: self._class_begins[kind] + size for kind, size in before.items()}

    def _held(self, templates: slice, slots: slice) -> dict[int, int]:
        """By class, the variables of some templates, which have these slots."""
        per_slot = np.repeat(self._weights[templates], self._slots.counts[templates])
        held = np.bincount(self._slots.classes[slots], per_slot)
        return dict(enumerate(map(int, held.tolist())))

    def _classed_at(self, place: int) -> tuple[int, int, int]:
        """(the template, which of its variables, the rank among its entries) of a variable that has
        a class."""
        begins = list(self._class_begins.values())
        which = bisect_right(begins, place) - 1
        kind, within = list(self._class_begins)[which], place - begins[which]
        templates = self._slots.templates_of(kind)
        ends = self._ends.get(kind)
        if ends is None:
            ends = self._ends[kind] = np.cumsum(self._entries.take(templates))
        at = int(ends.searchsorted(within, side="right"))
        code = templates.item(at)
        number = self._slots.slots_of(kind).item(at) - self._slots.first_slot(code)
        return code, number, within - ends.item(at) + self._entries.item(code)

    def _plain_at(self, place: int) -> tuple[int, int, int]:
        """The same of one of a plain template."""
        covered = self._slots.covered
        entries = self._entries[covered:]
        ends = np.cumsum(entries * self._slots.counts[covered:].astype(np.int64))
        within = place - self._classed
        at = int(ends.searchsorted(within, side="right"))
        code, count = covered + at, entries.item(at)
        before = ends.item(at) - count * self._slots.counts.item(code)
        number, rank = divmod(within - before, count)
        return code, number, rank
