"""Blocks of entries whose templates have slots, and the order of their variables as it is said."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from logd.format.slot_layout import SlotLayout
from logd.format.slot_order import SlotOrder

Variable = tuple[int, int, int]
"""(row, code, number of the slot)."""


class Block(NamedTuple):
    slots: list[int]
    classes: list[int]
    codes: list[int]

    def order(self) -> SlotOrder:
        return SlotOrder(np.array(self.slots, np.int64), np.array(self.classes, np.uint8))

    def layout(self, *, with_sizes: bool = False) -> SlotLayout:
        codes = np.array(self.codes, np.uint8)
        plain = SlotLayout(codes, self.order())
        return SlotLayout(codes, self.order(), plain.class_sizes()) if with_sizes else plain

    def class_of(self, code: int, number: int) -> int:
        """-1 where the template is plain."""
        at = sum(self.slots[:code]) + number
        return self.classes[at] if at < len(self.classes) else -1

    def in_order(self) -> list[Variable]:
        every = [
            (row, code, number)
            for row, code in enumerate(self.codes)
            for number in range(self.slots[code])
        ]
        return sorted(every, key=self._rank)

    def _rank(self, variable: Variable) -> tuple[int, int, int, int]:
        row, code, number = variable
        kind = self.class_of(code, number)
        return (256 if kind < 0 else kind), code, number, row


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    slots = draw(st.lists(st.integers(0, 4), min_size=1, max_size=8))
    covered = sum(slots[: draw(st.integers(0, len(slots)))])
    classes = draw(st.lists(st.sampled_from([0, 1, 255]), min_size=covered, max_size=covered))
    codes = draw(st.lists(st.integers(0, len(slots) - 1), min_size=1, max_size=12))
    return Block(slots, classes, codes)


def ints(values: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(values, np.int64)
