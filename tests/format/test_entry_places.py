"""Where the variables of single entries lie, against sorting all by what their order is said to
be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slot_blocks import Block, blocks

from logd.format.block_variables import ClassSizes
from logd.format.entry_places import EntryPlaces
from logd.format.slot_order import ClassedSlots


def places(block: Block, of: ClassSizes | None = None) -> EntryPlaces:
    codes, slots = np.array(block.codes, np.uint8), np.array(block.slots, np.int64)
    return EntryPlaces(codes, ClassedSlots(slots, np.array(block.classes, np.uint8)), of)


def sizes(block: Block) -> ClassSizes:
    """Of the classes that the block has variables of."""
    classes = [block.class_of(code, number) for _, code, number in block.in_order()]
    kinds, counts = np.unique([kind for kind in classes if kind >= 0], return_counts=True)
    return ClassSizes(kinds.astype(np.uint8), counts.astype(np.int64))


@given(blocks(), st.booleans())
def test_the_variables_of_an_entry_lie_where_the_order_says(block: Block, with_sizes: bool) -> None:
    found, expected = places(block, sizes(block) if with_sizes else None), block.in_order()
    for row in range(len(block.codes)):
        mine = sorted((v[2], at) for at, v in enumerate(expected) if v[0] == row)
        assert found.positions_of(row) == [place for _, place in mine]


@given(blocks(), st.booleans())
def test_a_variable_belongs_to_the_entry_that_the_order_says(
    block: Block, with_sizes: bool
) -> None:
    found, expected = places(block, sizes(block) if with_sizes else None), block.in_order()
    rows = [row for row, _, _ in expected]
    assert [found.row_at(place) for place in range(len(expected))] == rows
    assert [found.locate(place) for place in range(len(expected))] == list(expected)
    with pytest.raises(IndexError):
        found.row_at(len(expected))


@given(blocks())
def test_the_class_of_a_slot_is_known_and_that_of_a_plain_one_is_none(block: Block) -> None:
    slots = ClassedSlots(np.array(block.slots, np.int64), np.array(block.classes, np.uint8))
    for code, count in enumerate(block.slots):
        for number in range(count):
            kind = slots.class_of(code, number)
            assert (-1 if kind is None else kind) == block.class_of(code, number)


def test_a_code_without_a_template_is_noticed() -> None:
    with pytest.raises(IndexError):
        places(Block([1, 1], [], [0, 2]))


def test_classes_that_end_within_a_template_are_noticed() -> None:
    with pytest.raises(IndexError):
        places(Block([2, 0, 3], [7, 7, 7], [2])).positions_of(0)


def test_a_class_that_the_block_is_said_to_lack_is_noticed() -> None:
    of = ClassSizes(np.array([3], np.uint8), np.array([1], np.int64))
    with pytest.raises(IndexError):
        places(Block([1], [5], [0]), of).positions_of(0)
