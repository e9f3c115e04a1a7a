"""A selection is the same when it is remembered and recalled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.store.selection import ALL, NONE, Bools, ByText, Counted, Rows, recall, remember


def mask_of(bits: list[bool]) -> Bools:
    return np.array(bits, np.bool_)


@given(st.lists(st.booleans(), min_size=1, max_size=300))
def test_rows_come_back(bits: list[bool]) -> None:
    remembered, size = remember(Rows(mask_of(bits)))
    found = recall(remembered, len(bits), lambda: mask_of([]))
    assert isinstance(found, Rows)
    assert found.mask.tolist() == bits
    assert size > 0


@pytest.mark.parametrize("row", [0, 65_535, 70_000])
def test_a_single_row_of_many_comes_back(row: int) -> None:
    mask = np.zeros(70_001, np.bool_)
    mask[row] = True
    remembered, size = remember(Rows(mask))
    found = recall(remembered, len(mask), lambda: mask)
    assert isinstance(found, Rows)
    assert np.flatnonzero(found.mask).tolist() == [row]
    assert size < 1000


def test_texts_all_and_none_come_back() -> None:
    for selection in (ALL, NONE, ByText(1, mask_of([True, False]))):
        assert recall(remember(selection)[0], 9, lambda: mask_of([])) is selection


def test_what_was_only_counted_is_looked_for_again() -> None:
    rows = mask_of([True, False, True])
    remembered, _ = remember(Counted(2, lambda: mask_of([])))
    found = recall(remembered, 3, lambda: rows)
    assert isinstance(found, Counted)
    assert (found.count, found.find().tolist()) == (2, rows.tolist())
