"""Where variables lie, against sorting them all by what their order is said to be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slot_blocks import Block, blocks, ints

from logd.format.slot_layout import SlotLayout


@given(blocks(), st.booleans())
def test_each_variable_lies_where_the_order_says(block: Block, with_sizes: bool) -> None:
    layout, expected = block.layout(with_sizes=with_sizes), block.in_order()
    assert layout.variables == len(expected)
    rows, numbers = ints([v[0] for v in expected]), ints([v[2] for v in expected])
    assert layout.positions(rows, numbers).tolist() == list(range(len(expected)))
    assert layout.rows().tolist() == rows.tolist()


@given(blocks(), st.booleans())
def test_what_lies_at_places_is_found(block: Block, with_sizes: bool) -> None:
    layout, expected = block.layout(with_sizes=with_sizes), block.in_order()
    every = list(range(len(expected)))
    for some in (every, every[::2], every[-4:], every[-5:], every[::-1], *[[p] for p in every], []):
        found = layout.locate(ints(some))
        located = zip(
            found.rows.tolist(), found.codes.tolist(), found.numbers.tolist(), strict=True
        )
        assert list(located) == [expected[place] for place in some]
        assert layout.rows_at(ints(some)).tolist() == [expected[place][0] for place in some]


@given(blocks(), st.data())
def test_members_of_templates_lead_to_their_variables(block: Block, data: st.DataObject) -> None:
    every = [(code, number) for code, count in enumerate(block.slots) for number in range(count)]
    asked = [pair for pair in every if data.draw(st.booleans())]
    codes, numbers = ints([code for code, _ in asked]), ints([number for _, number in asked])
    layout = block.layout(with_sizes=data.draw(st.booleans()))
    which, ranks, rows = layout.members(codes)
    wanted = [
        (row, code, number)
        for code, number in asked
        for row, its in enumerate(block.codes)
        if its == code
    ]
    assert rows.tolist() == [row for row, _, _ in wanted]
    places = layout.begins(codes, numbers).take(which) + ranks
    order = block.in_order()
    assert [order[place] for place in places.tolist()] == wanted


@given(blocks())
def test_the_sizes_of_classes_are_counted(block: Block) -> None:
    order = block.order()
    classes = [block.class_of(code, number) for _, code, number in block.in_order()]
    sizes = block.layout().class_sizes().tolist()
    assert dict(zip(order.class_codes.tolist(), sizes, strict=True)) == {
        kind: classes.count(kind) for kind in set(block.classes)
    }


def test_sizes_that_are_not_those_of_the_block_are_noticed() -> None:
    block = Block([1, 1], [3, 5], [0, 0, 1])
    layout = SlotLayout(np.array(block.codes, np.uint8), block.order(), ints([1, 2]))
    with pytest.raises(IndexError):
        layout.rows_at(ints([0]))


def test_sizes_of_classes_that_no_slot_has_are_noticed() -> None:
    order = Block([1, 1], [3, 5], [0]).order()
    assert order.sizes_by_class(np.array([5], np.uint8), ints([7])).tolist() == [0, 7]
    for classes in ([4], [6], [3, 4]):
        with pytest.raises(IndexError):
            order.sizes_by_class(np.array(classes, np.uint8), ints([1] * len(classes)))


def test_a_code_without_a_template_is_noticed() -> None:
    with pytest.raises(IndexError):
        Block([1, 1], [], [0, 2]).layout()


@pytest.mark.parametrize("classes", [1, 3, 6])
def test_classes_that_end_within_a_template_or_behind_all_are_noticed(classes: int) -> None:
    with pytest.raises(ValueError, match="do not end"):
        Block([2, 0, 3], [0] * classes, [0]).layout()
