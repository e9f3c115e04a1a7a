"""Where variables lie, against sorting them all by what their order is said to be."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.format.slot_layout import SlotLayout
from logd.format.slot_order import SlotOrder

Variable = tuple[int, int, int]
"""(row, code, number of the slot)."""


class Block(NamedTuple):
    slots: list[int]
    classes: list[int]
    codes: list[int]

    def layout(self) -> SlotLayout:
        order = SlotOrder(np.array(self.slots, np.int64), np.array(self.classes, np.uint8))
        return SlotLayout(np.array(self.codes, np.uint8), order)

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


@given(blocks())
def test_each_variable_lies_where_the_order_says(block: Block) -> None:
    layout, expected = block.layout(), block.in_order()
    assert layout.variables == len(expected)
    rows, numbers = ints([v[0] for v in expected]), ints([v[2] for v in expected])
    assert layout.positions(rows, numbers).tolist() == list(range(len(expected)))
    assert layout.rows().tolist() == rows.tolist()
    for row in range(len(block.codes)):
        assert layout.positions_of(row) == [
            place for _, place in sorted((v[2], at) for at, v in enumerate(expected) if v[0] == row)
        ]


@given(blocks())
def test_what_lies_at_places_is_found(block: Block) -> None:
    layout, expected = block.layout(), block.in_order()
    every = list(range(len(expected)))
    for some in (every, every[::2], every[-4:], every[-5:], every[::-1], *[[p] for p in every], []):
        found = layout.locate(ints(some))
        located = zip(
            found.rows.tolist(), found.codes.tolist(), found.numbers.tolist(), strict=True
        )
        assert list(located) == [expected[place] for place in some]
        assert layout.rows_at(ints(some)).tolist() == [expected[place][0] for place in some]


@given(blocks(), st.data())
def test_sequences_lead_from_slot_to_slot_of_each_entry(block: Block, data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 3))
    every = [
        (code, number)
        for code, count in enumerate(block.slots)
        for number in range(count - length + 1)
    ]
    asked = [pair for pair in every if data.draw(st.booleans())]
    places, rows = block.layout().sequences(
        ints([code for code, _ in asked]), ints([number for _, number in asked]), length
    )
    wanted = [
        (row, code, number)
        for code, number in asked
        for row, its in enumerate(block.codes)
        if its == code
    ]
    assert rows.tolist() == [row for row, _, _ in wanted]
    order = block.in_order()
    for step, of_step in enumerate(places):
        behind = [(row, code, number + step) for row, code, number in wanted]
        assert [order[place] for place in of_step.tolist()] == behind
    assert len(places) == length


@given(blocks())
def test_variables_of_one_class_lie_between_edges(block: Block) -> None:
    edges = block.layout().class_edges().tolist()
    classes = [block.class_of(code, number) for _, code, number in block.in_order()]
    assert (edges[0], edges[-1]) == (0, len(classes))
    assert edges == sorted(edges)
    changes = {at for at in range(1, len(classes)) if classes[at] != classes[at - 1]}
    assert changes <= set(edges) | {classes.index(-1) if -1 in classes else -1}
    for low, high in itertools.pairwise(edges):
        assert len({kind for kind in classes[low:high] if kind >= 0}) <= 1


def test_a_code_without_a_template_is_noticed() -> None:
    with pytest.raises(IndexError):
        Block([1, 1], [], [0, 2]).layout()


@pytest.mark.parametrize("classes", [1, 3, 6])
def test_classes_that_end_within_a_template_or_behind_all_are_noticed(classes: int) -> None:
    with pytest.raises(ValueError, match="do not end"):
        Block([2, 0, 3], [0] * classes, [0]).layout()
