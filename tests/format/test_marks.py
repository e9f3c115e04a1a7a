"""Bytes of one kind by the bit: where they are, and how many stand between edges."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logd.format.marks import counts_between, marks_of, places_of

SIZES = st.integers(0, 200) | st.sampled_from([65_535, 65_536, 65_537, 140_001])


def text_with(size: int, places: list[int]) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    text = np.full(size, 0xFF, np.uint8)
    text[places] = 0xFE
    return text


@given(SIZES, st.lists(st.integers(0, 140_000), max_size=40))
def test_places_are_those_of_the_byte(size: int, marked: list[int]) -> None:
    expected = sorted({place for place in marked if place < size})
    assert places_of(marks_of(text_with(size, expected), 0xFE)).tolist() == expected


def test_places_side_by_side_and_far_apart() -> None:
    for expected in ([0, 15, 16, 139_999], [3, 65_535], [], [139_999], list(range(0, 140_000, 3))):
        assert places_of(marks_of(text_with(140_000, expected), 0xFE)).tolist() == expected


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), min_size=1))
def test_counts_are_those_of_the_byte_between_edges(text: bytes, edges: list[int]) -> None:
    byte = max(text, default=0)
    ascending = sorted(min(edge, len(text)) for edge in edges)
    marks = marks_of(np.frombuffer(text, np.uint8), byte)
    found = counts_between(marks, np.array(ascending, np.uint32))
    pairs = itertools.pairwise(ascending)
    assert found.tolist() == [text[start:stop].count(byte) for start, stop in pairs]
