"""Where the variables of a block lie, which are stored in slot order (`slot_order.py`).

Computed, not stored; of single entries by `entry_places.py`. Where the block has n entries of a
template, and r of these come before an entry, the entry's variable of the slot s of the template
lies at

    begin of the slot + r
    begin of the template + s * n + r   in a plain one
"""

from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from logd.format.slot_order import SlotOrder

SLOT_BITS: Final = 32
_FEW_PLACES: Final = 4
_FEW_CLASSES: Final = 4

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Codes = npt.NDArray[np.integer[Any]]


class Places(NamedTuple):
    """Of each variable, int64[k]: the entry within the block, its template's code, and which of the
    template's variables it is."""

    rows: Int64s
    codes: Int64s
    numbers: Int64s


class Members(NamedTuple):
    """Entries of some templates, int64[k] each: which of these templates, the rank among the
    block's entries of it, and the entry within the block."""

    which: Int64s
    ranks: Int64s
    rows: Int64s


def slot_keys(codes: Int64s, numbers: Int64s) -> Int64s:
    """int64[k]: a template, and one of its slots, as one number."""
    return (codes << SLOT_BITS) | numbers


class SlotLayout:
    """`codes`: the template codes of a block's entries; `sizes`: int64[c], where it is known, how
    many variables it has of each of the order's classes. Raises IndexError where an entry has no
    template. `variables`: how many there are in all.
    """

    def __init__(self, codes: Codes, order: SlotOrder, sizes: Int64s | None = None) -> None:
        self.codes = codes
        self._order = order
        self._entries = np.bincount(codes, minlength=len(order.slots))
        if len(self._entries) > len(order.slots):
            raise IndexError("a code without a template")
        self.variables = int(np.dot(self._entries, order.slots))
        self._sizes = sizes
        self._ends: dict[int, Int64s] = {}

    def class_sizes(self) -> Int64s:
        """int64[c]: the variables of each class."""
        if self._sizes is None:
            ends = np.concatenate([[0], self._all_ends])
            self._sizes = np.diff(ends.take(self._order.class_edges))
        return self._sizes

    @cached_property
    def _class_ends(self) -> Int64s:
        """int64[c]: where the variables of each class end."""
        ends: Int64s = np.cumsum(self.class_sizes())
        return ends

    @cached_property
    def _all_ends(self) -> Int64s:
        """int64[k]: where, in slot order, the variables of each slot that has a class end."""
        ends: Int64s = np.cumsum(self._entries.take(self._order.templates_in_order))
        return ends

    def _ends_in(self, which: int) -> Int64s:
        """int64[slots of that class]: where, in slot order, the variables of each end. Raises
        IndexError where they are not as many as is known."""
        ends = self._ends.get(which)
        if ends is None:
            low, high = self._order.class_edges[which : which + 2].tolist()
            ends = np.cumsum(self._entries.take(self._order.templates_in_order[low:high]))
            end = self._class_ends.item(which)
            ends += end - self.class_sizes().item(which)
            if ends.item(-1) != end:
                raise IndexError("variables of a class are not as many as is said")
            self._ends[which] = ends
        return ends

    def variables_of(self, rows: Int64s) -> Int64s:
        """int64[rows]: the variables of each of these entries."""
        return self._order.slots.take(self.codes.take(rows))

    @cached_property
    def _by_code(self) -> Int64s:
        return np.argsort(self.codes.astype(np.uint16), kind="stable")

    @cached_property
    def _first(self) -> Int64s:
        """Where the entries of each template begin in that order."""
        first: Int64s = np.cumsum(self._entries) - self._entries
        return first

    @cached_property
    def _ranks(self) -> Int64s:
        ranks = np.empty(len(self.codes), np.int64)
        order = self._by_code
        ranks[order] = np.arange(len(order)) - self._first.take(self.codes.take(order))
        return ranks

    # ------------------------------------------------------------ from entries to places

    def begins(self, codes: Codes, numbers: Codes) -> Int64s:
        """int64[k]: where the variables of these slots of these templates begin."""
        order = self._order
        entries = self._entries.take(codes)
        slots = order.first.take(codes) + numbers
        if not order.has_plain:
            return self._classed_ends(slots) - entries
        begins = self._plain_begins.take(codes) + entries * numbers
        some = np.flatnonzero(codes < order.covered)
        begins[some] = self._classed_ends(slots[some]) - entries[some]
        return begins

    def _classed_ends(self, slots: Int64s) -> Int64s:
        """int64[k]: where the variables of slots that have a class end."""
        places = self._order.places_of(slots)
        which = self._order.class_edges.searchsorted(places, side="right") - 1
        return self._ends_at(places, which)

    def _ends_at(self, places: Int64s, which: Int64s) -> Int64s:
        """int64[k]: where the variables of the slots at these places in slot order end; `which`:
        the class of each. Only these classes are looked at, where they are few."""
        classes = np.flatnonzero(np.bincount(which)).tolist()
        if len(classes) > _FEW_CLASSES:
            return self._all_ends.take(places)
        ends = np.empty(len(places), np.int64)
        for one in classes:
            mine = which == one
            first = self._order.class_edges.item(one)
            ends[mine] = self._ends_in(one).take(places[mine] - first)
        return ends

    def positions(self, rows: Int64s, numbers: Int64s) -> Int64s:
        """int64[k]: the place of variable `numbers[i]` of entry `rows[i]`."""
        return self.begins(self.codes.take(rows), numbers) + self._ranks.take(rows)

    def members(self, codes: Int64s) -> Members:
        """All entries of these ascending templates, which may come more than once: so often do
        their entries. The variable of a member lies at `begins(...)[which] + rank`."""
        entries = self._entries.take(codes)
        which = np.repeat(np.arange(len(codes)), entries)
        before = np.cumsum(entries) - entries
        ranks = np.arange(len(which)) - before.take(which)
        rows = self._rows_of(codes)
        first = np.searchsorted(self.codes[rows], codes)
        return Members(which, ranks, rows[first.take(which) + ranks])

    def _rows_of(self, codes: Int64s) -> Int64s:
        """The entries of templates, by template and then as they stand."""
        if len(codes) == 1:
            return np.flatnonzero(self.codes == codes.astype(self.codes.dtype))
        wanted = np.zeros(len(self._entries), np.bool_)
        wanted[codes] = True
        rows = np.flatnonzero(wanted.take(self.codes))
        return rows[np.argsort(self.codes[rows], kind="stable")]

    def places(self, per_entry: Int64s) -> Int32s:
        """int32[variables]: the place of each variable in entry order; `per_entry`: int64[entries],
        the variables of each. For all of a block at once: what it takes on the way counts."""
        codes, ranks = self.codes, self._ranks.astype(np.int32)
        order, before = self._order, (np.cumsum(per_entry) - per_entry).astype(np.int32)
        out = np.arange(self.variables, dtype=np.int32)
        if not order.has_plain:
            out += np.repeat(order.first.take(codes) - before, per_entry)
            out = self._slot_begins().take(out)
        else:
            out -= np.repeat(before, per_entry)
            classed = np.flatnonzero(np.repeat(codes < order.covered, per_entry))
            slots = out[classed] + np.repeat(order.first.take(codes), per_entry)[classed]
            out *= np.repeat(self._entries.astype(np.int32).take(codes), per_entry)
            out += np.repeat(self._plain_begins.take(codes), per_entry)
            out[classed] = self._slot_begins().take(slots)
        out += np.repeat(ranks, per_entry)
        return out

    def _slot_begins(self) -> Int32s:
        """int32[k]: where the variables of each slot that has a class begin, the slots counted
        through all templates."""
        slots = self._order.slots_in_order.astype(np.int64)
        begins = np.zeros(len(slots), np.int32)
        begins[slots[1:]] = self._all_ends[:-1]
        return begins

    @cached_property
    def _plain_variables(self) -> int:
        covered = self._order.covered
        return int(np.dot(self._entries[covered:], self._order.slots[covered:]))

    @cached_property
    def _plain_ends(self) -> Int64s:
        """int64[plain templates]: where the variables of each end."""
        covered = self._order.covered
        ends = np.cumsum(self._entries[covered:] * self._order.slots[covered:])
        ends += self.variables - self._plain_variables
        return ends

    @cached_property
    def _plain_begins(self) -> Int32s:
        """int32[templates]: where the variables of each plain one begin."""
        begins = np.zeros(len(self._entries), np.int32)
        covered = self._order.covered
        begins[covered:] = self._plain_ends - self._entries[covered:] * self._order.slots[covered:]
        return begins

    # ------------------------------------------------------------ from places to entries

    def rows(self) -> Int32s:
        """int32[variables]: the entry that each variable, in slot order, belongs to."""
        per_entry = self._order.slots.take(self.codes)
        rows = np.empty(self.variables, np.int32)
        rows[self.places(per_entry)] = np.repeat(
            np.arange(len(self.codes), dtype=np.int32), per_entry
        )
        return rows

    def rows_at(self, positions: Int64s) -> Int64s:
        """int64[k]: the entries that the variables at these places belong to."""
        _, codes, ranks = self._in_slots(positions)
        return self._rows_of_rank(codes, ranks)

    def locate(self, positions: Int64s) -> Places:
        """What the variables at these places are."""
        numbers, codes, ranks = self._in_slots(positions)
        return Places(self._rows_of_rank(codes, ranks), codes, numbers)

    def _rows_of_rank(self, codes: Int64s, ranks: Int64s) -> Int64s:
        """Of the entries of each template the one of this rank."""
        if len(codes) > _FEW_PLACES:
            return self._by_code.take(self._first.take(codes) + ranks)
        few = [
            np.flatnonzero(self.codes == code)[rank]
            for code, rank in zip(codes.tolist(), ranks.tolist(), strict=True)
        ]
        return np.array(few, np.int64)

    def _in_slots(self, positions: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """(which of its template's slots, the template, the rank among the entries of it), int64[k]
        each."""
        order = self._order
        if not order.has_plain:
            return self._in_classed(positions)
        numbers, codes, ranks = (np.empty(len(positions), np.int64) for _ in range(3))
        is_plain = positions >= self.variables - self._plain_variables
        some = np.flatnonzero(~is_plain)
        numbers[some], codes[some], ranks[some] = self._in_classed(positions[some])
        some = np.flatnonzero(is_plain)
        places = positions[some]
        codes[some] = np.searchsorted(self._plain_ends, places, side="right") + order.covered
        within = places - self._plain_begins.take(codes[some])
        numbers[some], ranks[some] = np.divmod(within, self._entries.take(codes[some]))
        return numbers, codes, ranks

    def _in_classed(self, positions: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """The same of variables in slots that have a class."""
        order = self._order
        places, ends = self._slots_holding(positions)
        codes = order.templates_in_order.take(places).astype(np.int64)
        numbers = order.slots_in_order.take(places) - order.first.take(codes)
        return numbers, codes, positions - ends + self._entries.take(codes)

    def _slots_holding(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """(which slots, in slot order; where the variables of each end), int64[k] each. Only their
        classes are looked at, where these are few."""
        which = self._class_ends.searchsorted(positions, side="right")
        classes = np.flatnonzero(np.bincount(which)).tolist()
        if len(classes) > _FEW_CLASSES:
            places = self._all_ends.searchsorted(positions, side="right")
            return places, self._all_ends.take(places)
        places, ends = np.empty(len(positions), np.int64), np.empty(len(positions), np.int64)
        for one in classes:
            mine, of_class = which == one, self._ends_in(one)
            at = of_class.searchsorted(positions[mine], side="right")
            places[mine] = at + self._order.class_edges.item(one)
            ends[mine] = of_class.take(at)
        return places, ends
