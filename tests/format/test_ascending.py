import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logd.format.ascending import (
    among,
    common,
    distinct,
    distinct_by_digits,
    sort_by_digits,
)

NUMBERS = st.lists(st.integers(-5, 9) | st.integers(-(2**62), 2**62), max_size=20)


def array(values: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(values, np.int64)


@given(NUMBERS, NUMBERS)
def test_they_are_sets(some: list[int], others: list[int]) -> None:
    first, second = distinct(array(some)), distinct(array(others))
    assert first.tolist() == sorted(set(some))
    assert common(first, second).tolist() == sorted(set(some) & set(others))
    assert among(array(some), second).tolist() == [value in others for value in some]


@given(st.data(), st.sampled_from([1, 8, 9, 16, 24, 40, 63, 64]))
def test_digits_sort_as_numbers_do(data: st.DataObject, bits: int) -> None:
    values = data.draw(st.lists(st.integers(0, 2**bits - 1) | st.integers(0, 1), max_size=40))
    keys = np.array(values, np.uint64)
    items, numbers = distinct_by_digits(keys, bits)
    assert items.tolist() == sorted(set(values))
    assert items[numbers].tolist() == values
    assert keys.tolist() == values
    sort_by_digits(keys, bits)
    assert keys.tolist() == sorted(values)
