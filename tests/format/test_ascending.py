import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logd.format.ascending import among, common, distinct

NUMBERS = st.lists(st.integers(-5, 9) | st.integers(-(2**62), 2**62), max_size=20)


def array(values: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(values, np.int64)


@given(NUMBERS, NUMBERS)
def test_they_are_sets(some: list[int], others: list[int]) -> None:
    first, second = distinct(array(some)), distinct(array(others))
    assert first.tolist() == sorted(set(some))
    assert common(first, second).tolist() == sorted(set(some) & set(others))
    assert among(array(some), second).tolist() == [value in others for value in some]
