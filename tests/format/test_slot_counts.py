"""How many variables templates have and where they are first, against a list of blocks."""

import itertools

import numpy as np
import pytest
from format_samples import unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format.slot_counts import decode_slot_counts, encode_slot_counts

SLOTS = st.one_of(st.integers(0, 9), st.sampled_from([255, 256, 65_535, 65_536, 2**32 - 1]))
BLOCKS = st.lists(st.lists(SLOTS, max_size=6), max_size=8).map(lambda more: [[0], *more])
"""Of each block the templates that come with it; the first has one at least."""


def known(blocks: list[list[int]]) -> list[int]:
    return list(itertools.accumulate(len(block) for block in blocks))


def bytes_of(blocks: list[list[int]]) -> bytes:
    slots = np.array([count for block in blocks for count in block], np.int64)
    return b"".join(encode_slot_counts(known(blocks), slots))


@unhurried
@given(BLOCKS)
def test_what_was_stored_is_read(blocks: list[list[int]]) -> None:
    found = decode_slot_counts(bytes_of(blocks), len(blocks))
    assert found.slots.tolist() == [count for block in blocks for count in block]
    first = [number for number, block in enumerate(blocks) for _ in block]
    assert [found.first_block(code) for code in range(len(first))] == first


def test_bytes_are_as_they_are_said_to_be() -> None:
    raw = bytes_of([[1, 300], [], [2]])
    assert raw == bytes([2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]) + bytes([1, 44, 2]) + bytes([0, 1, 0])


@unhurried
@given(BLOCKS)
def test_bytes_that_are_cut_short_are_refused(blocks: list[list[int]]) -> None:
    """But where no more than whole planes are missing: these take as many bytes as there are, and
    how many that is the table of the parts says."""
    raw, templates = bytes_of(blocks), known(blocks)[-1]
    begin = 4 * len(blocks)
    for size in range(len(raw)):
        if size > begin and (size - begin) % templates == 0:
            continue
        with pytest.raises(ValueError, match="bytes for"):
            decode_slot_counts(raw[:size], len(blocks))


@unhurried
@given(BLOCKS, st.binary(min_size=1, max_size=60))
def test_bytes_behind_the_end_are_refused(blocks: list[list[int]], more: bytes) -> None:
    raw, templates = bytes_of(blocks) + more, known(blocks)[-1]
    width, rest = divmod(len(raw) - 4 * len(blocks), templates)
    if rest or width > 8:
        with pytest.raises(ValueError, match="bytes for"):
            decode_slot_counts(raw, len(blocks))


def test_bytes_for_other_templates_are_refused() -> None:
    """Of none, of more than there are, and of blocks that the chunk does not have."""
    for count in (0, 4, 2**32 - 1):
        raw = count.to_bytes(4, "little") + bytes([1, 2, 3])
        with pytest.raises(ValueError, match="planes"):
            decode_slot_counts(raw, 1)
    with pytest.raises(ValueError, match="planes"):
        decode_slot_counts(b"x", 0)
    with pytest.raises(ValueError, match="blocks"):
        decode_slot_counts(bytes_of([[1], [2]]), 3)
