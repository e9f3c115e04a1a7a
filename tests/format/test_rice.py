"""Rice coding, against the document and against sums."""

from itertools import accumulate

import numpy as np
import pytest
from format_samples import rice_coded, unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format.rice import MOST_LOW_BITS, RiceLists, best_low_bits, rice_sums

LARGEST = 2**MOST_LOW_BITS - 1


def coded(lists: list[list[int]], low_bits: int) -> list[bytes]:
    numbers = np.array([number for each in lists for number in each], np.int64)
    rice = RiceLists(numbers, np.array([len(each) for each in lists], np.int64), low_bits)
    return [b"".join(rice.of_list(index)) for index in range(len(lists))]


@st.composite
def lists_to_code(draw: st.DrawFn) -> tuple[list[list[int]], int]:
    """Lists, some empty, and low bits that leave a rest that is not too long."""
    low_bits = draw(st.integers(0, MOST_LOW_BITS - 6))
    numbers = st.integers(0, (40 << low_bits) - 1)
    return draw(st.lists(st.lists(numbers, max_size=20), max_size=6)), low_bits


@unhurried
@given(lists_to_code())
def test_lists_come_back_as_sums(some: tuple[list[list[int]], int]) -> None:
    lists, low_bits = some
    for raw, each in zip(coded(lists, low_bits), lists, strict=True):
        assert raw == rice_coded(each, low_bits)
        assert rice_sums(raw, len(each), low_bits).tolist() == list(accumulate(each))


@pytest.mark.parametrize("low_bits", [MOST_LOW_BITS - 1, MOST_LOW_BITS])
def test_the_largest_numbers_come_back(low_bits: int) -> None:
    each = [LARGEST, 0, LARGEST, LARGEST - 1, 1]
    (raw,) = coded([each], low_bits)
    assert rice_sums(raw, len(each), low_bits).tolist() == list(accumulate(each))


@pytest.mark.parametrize("number", [0, 1, 2, 7, 8, 255, 256, 65_535, 2**40])
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 1000])
def test_equal_numbers_take_what_they_carry(number: int, count: int) -> None:
    low_bits = best_low_bits(np.full(count, number))
    (raw,) = coded([[number] * count], low_bits)
    assert rice_sums(raw, count, low_bits).tolist() == [number * n for n in range(1, count + 1)]
    assert len(raw) <= (count * (number.bit_length() + 1)) / 8 + 2


def test_no_numbers_have_no_low_bits() -> None:
    assert best_low_bits(np.zeros(0, np.int64)) == 0
    assert coded([], 0) == []
    assert coded([[], []], 3) == [b"", b""]
    assert rice_sums(b"", 0, 0).tolist() == []


@given(st.lists(st.one_of(st.integers(0, 40), st.integers(0, 3000)), min_size=1, max_size=60))
def test_the_number_of_low_bits_is_the_best(numbers: list[int]) -> None:
    def size(low_bits: int) -> int:
        return sum(low_bits + 1 + (number >> low_bits) for number in numbers)

    best = best_low_bits(np.array(numbers))
    assert size(best) == min(map(size, range(16)))


def test_gaps_at_random_take_little_more_than_they_carry() -> None:
    gaps = np.random.default_rng(5).geometric(1 / 200, 20_000)
    (raw,) = coded([gaps.tolist()], best_low_bits(gaps))
    carried = np.log2(200) + np.log2(np.e)  # bits, about
    assert 8 * len(raw) / len(gaps) == pytest.approx(carried, rel=0.01)


@unhurried
@given(
    st.binary(max_size=40),
    st.one_of(st.integers(0, 40), st.just(2**32 - 1)),
    st.one_of(st.integers(0, 9), st.integers(0, 255)),
)
def test_any_bytes_are_sums_or_refused(raw: bytes, count: int, low_bits: int) -> None:
    try:
        sums = rice_sums(raw, count, low_bits)
    except ValueError:
        return
    assert len(sums) == count


@pytest.mark.parametrize(
    ("count", "low_bits"), [(2, 3), (4, 3), (3, 0), (3, 8), (3, 57), (3, 255), (0, 3)]
)
def test_bytes_that_do_not_fit_are_refused(count: int, low_bits: int) -> None:
    raw = rice_coded([5, 12, 80], 3)
    assert rice_sums(raw, 3, 3).tolist() == [5, 17, 97]
    with pytest.raises(ValueError, match="Rice coding"):
        rice_sums(raw, count, low_bits)
