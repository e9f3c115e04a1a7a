import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.stats import median, percentile, ratio, spread

FLOATS = st.lists(st.floats(0.001, 1e6), min_size=1)


def test_percentiles_are_nearest_ranks() -> None:
    values = [float(n) for n in range(1, 101)]
    assert percentile(values, 99) == 99
    assert percentile(values, 50) == 50
    assert percentile(values, 100) == 100
    assert percentile(values, 0) == 1
    assert percentile([5.0], 99) == 5


def test_nothing_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 50)


@given(FLOATS, st.floats(0, 100))
def test_so_many_values_are_no_greater_than_the_percentile(
    values: list[float], percent: float
) -> None:
    limit = percentile(values, percent)
    assert limit in values
    assert sum(value <= limit for value in values) >= len(values) * percent / 100


def test_a_ratio_has_the_least_and_the_most_of_its_runs() -> None:
    assert ratio([2.0, 4.0, 3.0], [1.0, 2.0, 1.5]) == (2.0, 1.0, 4.0)


@given(FLOATS, FLOATS)
def test_a_ratio_lies_within_its_range(ours: list[float], theirs: list[float]) -> None:
    middle, low, high = ratio(ours, theirs)
    assert low <= middle <= high
    assert spread(ours)[0] <= median(ours) <= spread(ours)[1]
