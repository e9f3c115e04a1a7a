"""Where the variables of a block lie, which are stored in slot order (`slot_order.py`).

Computed, not stored. Where the block has n entries of a template, and r of these come before an
entry, the entry's variable of the slot s of the template lies at

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

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Codes = npt.NDArray[np.integer[Any]]


class Places(NamedTuple):
    """Of each variable, int64[k]: the entry within the block, its template's code, and which of the
    template's variables it is."""

    rows: Int64s
    codes: Int64s
    numbers: Int64s


class Sequences(NamedTuple):
    """Variables side by side in an entry. `places`: for each number of a variable in such a
    sequence int64[k], the places in slot order; `rows`: int64[k], the entries."""

    places: list[Int64s]
    rows: Int64s


def slot_keys(codes: Int64s, numbers: Int64s) -> Int64s:
    """int64[k]: a template, and one of its slots, as one number."""
    return (codes << SLOT_BITS) | numbers


class SlotLayout:
    """`codes`: the template codes of a block's entries. Raises IndexError where one has no
    template. `variables`: how many the block has."""

    def __init__(self, codes: Codes, order: SlotOrder) -> None:
        self.codes = codes
        self._order = order
        self._entries = np.bincount(codes, minlength=len(order.slots))
        if len(self._entries) > len(order.slots):
            raise IndexError("a code without a template")
        self.variables = int(np.dot(self._entries, order.slots))

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about, when all of it is known."""
        of_slots, of_templates = 8 * len(self._order.slots_in_order), 16 * len(self._entries)
        return 500 + 24 * len(self.codes) + of_templates + of_slots

    def class_edges(self) -> Int32s:
        """int32[k + 1]: where variables of another class begin, 0 and `variables` among them."""
        heads = self._order.class_heads()
        edges = np.zeros(len(heads) + 2, np.int32)
        edges[1:-1] = self._slot_ends.take(heads - 1)
        edges[-1] = self.variables
        return edges

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
        slots = order.first.take(codes) + numbers
        if not order.has_plain:
            return self._slot_begins.take(slots).astype(np.int64)
        begins = self._plain_begins.take(codes) + self._entries.take(codes) * numbers
        classed = np.flatnonzero(codes < order.covered)
        begins[classed] = self._slot_begins.take(slots[classed])
        return begins

    def positions(self, rows: Int64s, numbers: Int64s) -> Int64s:
        """int64[k]: the place of variable `numbers[i]` of entry `rows[i]`."""
        return self.begins(self.codes.take(rows), numbers) + self._ranks.take(rows)

    def positions_of(self, row: int) -> list[int]:
        """The places of all variables of one entry."""
        code = self.codes.item(row)
        numbers = np.arange(self._order.slots.item(code))
        begins = self.begins(np.full(len(numbers), code), numbers)
        begins += int(np.count_nonzero(self.codes[:row] == code))
        return begins.tolist()  # type: ignore[no-any-return]

    def sequences(self, codes: Int64s, numbers: Int64s, length: int) -> Sequences:
        """Of all entries of these ascending templates, `length` variables from these slots on."""
        entries = self._entries.take(codes)
        before = np.cumsum(entries) - entries
        within = np.arange(int(entries.sum()))
        in_slot = within - np.repeat(before, entries)
        rows = self._rows_of(codes)
        first = np.searchsorted(self.codes[rows], codes)
        places = [
            np.repeat(self.begins(codes, numbers + step), entries) + in_slot
            for step in range(length)
        ]
        return Sequences(places, rows[np.repeat(first, entries) + in_slot])

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
        first = np.cumsum(per_entry) - per_entry
        out = np.arange(self.variables, dtype=np.int32)
        out -= np.repeat(first.astype(np.int32), per_entry)
        is_plain = codes >= self._order.covered
        if not self._order.has_plain:
            out += np.repeat(self._order.first.astype(np.int32).take(codes), per_entry)
            out = self._slot_begins.take(out)
        else:
            of_plain = np.repeat(is_plain, per_entry)
            slots = out[~of_plain] + np.repeat(self._order.first.take(codes), per_entry)[~of_plain]
            out *= np.repeat(self._entries.astype(np.int32).take(codes), per_entry)
            out += np.repeat(self._plain_begins.take(codes), per_entry)
            out[~of_plain] = self._slot_begins.take(slots)
        out += np.repeat(ranks, per_entry)
        return out

    @cached_property
    def _slot_ends(self) -> Int32s:
        """int32[k]: where the variables of each slot that has a class end, in slot order."""
        sizes = self._entries.astype(np.int32).take(self._order.templates_in_order)
        ends: Int32s = np.cumsum(sizes, dtype=np.int32)
        return ends

    @cached_property
    def _slot_begins(self) -> Int32s:
        """int32[k]: where they begin, the slots counted through all templates."""
        begins = np.empty(len(self._slot_ends), np.int32)
        begins[self._order.slots_in_order[1:]] = self._slot_ends[:-1]
        begins[self._order.slots_in_order[:1]] = 0
        return begins

    @cached_property
    def _plain_ends(self) -> Int64s:
        """int64[plain templates]: where the variables of each end."""
        covered = self._order.covered
        ends = np.cumsum(self._entries[covered:] * self._order.slots[covered:])
        ends += self.variables - ends[-1:]
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
        at = np.searchsorted(self._slot_ends, positions, side="right")
        if not order.has_plain:
            return self._in_classed(positions, at)
        codes = np.searchsorted(self._plain_ends, positions, side="right") + order.covered
        classed = np.flatnonzero(at < len(self._slot_ends))
        codes[classed] = order.covered  # until they are known, any
        numbers, ranks = np.divmod(
            positions - self._plain_begins.take(codes), np.maximum(self._entries.take(codes), 1)
        )
        found = self._in_classed(positions[classed], at[classed])
        for of_all, of_classed in zip((numbers, codes, ranks), found, strict=True):
            of_all[classed] = of_classed
        return numbers, codes, ranks

    def _in_classed(self, positions: Int64s, at: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """The same of variables in slots that have a class: `at` which, in slot order."""
        order = self._order
        codes = order.templates_in_order.take(at).astype(np.int64)
        numbers = order.slots_in_order.take(at) - order.first.take(codes)
        ranks = positions - (self._slot_ends.take(at) - self._entries.take(codes))
        return numbers, codes, ranks
