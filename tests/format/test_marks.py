"""Flags by the bit: where they are, and how many stand between edges."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logd.format.marks import counts_between, places_of

SIZES = st.integers(0, 200) | st.sampled_from([65_535, 65_536, 70_001])


@given(SIZES, st.lists(st.integers(0, 70_000), max_size=40))
def test_places_are_those_of_the_flags(size: int, marked: list[int]) -> None:
    flags = np.zeros(size, np.bool_)
    expected = sorted({place for place in marked if place < size})
    flags[expected] = True
    assert places_of(flags).tolist() == expected


def test_places_in_one_octet_and_far_apart() -> None:
    for expected in ([0, 7, 8, 69_999], [3, 65_535], [], [69_999], list(range(0, 70_000, 3))):
        flags = np.zeros(70_000, np.bool_)
        flags[expected] = True
        assert places_of(flags).tolist() == expected


@given(st.lists(st.booleans(), max_size=300), st.lists(st.integers(0, 300), min_size=1))
def test_counts_are_those_of_the_flags_between_edges(flags: list[bool], edges: list[int]) -> None:
    ascending = sorted(min(edge, len(flags)) for edge in edges)
    found = counts_between(np.array(flags, np.bool_), np.array(ascending, np.uint32))
    pairs = itertools.pairwise(ascending)
    assert found.tolist() == [sum(flags[start:stop]) for start, stop in pairs]
