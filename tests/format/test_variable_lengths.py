"""Lengths of variables as they are stored."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.format.block_variables import ClassSizes
from logd.format.variable_lengths import (
    decode_class_sizes,
    decode_lengths,
    encode_lengths,
)

SIZES = st.lists(
    st.one_of(st.integers(1, 16), st.integers(1, 300), st.integers(1, 1 << 24)), max_size=40
)
"""With such that take pairs alone, and one plane or more."""


def classes_of(sizes: list[int]) -> ClassSizes:
    return ClassSizes(np.arange(7, 7 + len(sizes), dtype=np.uint8), np.array(sizes, np.int64))


def encoded(sizes: list[int], of: ClassSizes, cuts: list[int], coded: list[bool]) -> bytes:
    edges = [0, *cuts, len(sizes)]
    are_coded = np.array(coded, np.bool_)
    return b"".join(encode_lengths(np.array(sizes, np.int32), of, are_coded, edges))


@given(SIZES, st.data())
def test_lengths_come_back(sizes: list[int], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(sizes)), max_size=9)))
    of = classes_of([high - low for low, high in pairwise(cuts)])
    coded = data.draw(st.lists(st.booleans(), min_size=len(of.sizes), max_size=len(of.sizes)))
    raw = encoded(sizes, of, cuts, coded)
    assert decode_lengths(raw, len(sizes)).tolist() == sizes
    stored, are_coded = decode_class_sizes(raw)
    assert are_coded.tolist() == (coded if raw else [])
    assert stored.classes.tolist() == of.classes.tolist()
    assert stored.sizes.tolist() == of.sizes.tolist()
    if sizes and max(sizes) <= 16:
        assert len(raw) == 1 + 5 * len(of.classes) + (len(sizes) + 1) // 2


@given(SIZES.filter(bool))
def test_other_numbers_of_lengths_are_noticed(sizes: list[int]) -> None:
    raw = encoded(sizes, classes_of([len(sizes)]), [], [False])
    for count in (-1, 0, 2 * len(raw) + 1):
        with pytest.raises(ValueError, match=r"lengths|planes"):
            decode_lengths(raw, count)
    with pytest.raises(ValueError, match=r"lengths|planes"):
        decode_lengths(raw + bytes(len(sizes) * 9 + 1), len(sizes))
    for size in range(1, 6):
        with pytest.raises(ValueError, match="classes"):
            decode_class_sizes(raw[:size])
