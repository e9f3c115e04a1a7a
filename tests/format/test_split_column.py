"""The frames of a column that is kept as templates and variables."""

import numpy as np
import pytest
from format_samples import messages, unhurried
from hypothesis import given
from hypothesis import strategies as st
from zstd_blocks import count_blocks

from logd.format.columns import decompress, from_planes
from logd.format.separated import join_texts
from logd.format.split_column import SplitColumn, Texts


@unhurried
@given(st.lists(messages, min_size=1, max_size=12), st.sampled_from([1, 300]))
def test_frames_hold_the_variables_as_they_were_split(texts: list[str], times: int) -> None:
    column = SplitColumn()
    split = column.add(Texts(join_texts(texts * times), len(texts) * times).block(0, len(texts)))
    (data,), (lengths,) = column.data, column.lengths
    assert decompress(data.stored, data.raw_bytes) == split.data
    planes = decompress(lengths.stored, lengths.raw_bytes)
    assert from_planes(planes, len(split.lengths), np.uint32).tolist() == split.lengths.tolist()


@pytest.mark.parametrize(
    ("texts", "blocks"),
    [
        (["no number"] * 10, 1),
        (["1 2 3"] * 200, 1),
        (["11111111"] * 255, 1),
        (["11111111"] * 256, 1),
        (["11111111 22222222"] * 255, 1),
        (["11111111 22222222"] * 256, 2),
        (["11111111 22222222 33333333"] * 300, 3),
        (["11111111 2 33333333"] * 300, 2),  # those between are short and stay with the next
        (["11111111 22 33333333"] * 300, 3),
        (["a 11111111"] * 300 + ["b 22222222"] * 300, 2),
        (["a 11111111"] * 300 + ["b 2 2"] * 300 + ["c 3 3"] * 300, 2),
        (["a 1"] * 30 + ["b 22222222"] * 300 + ["c 3"] * 30, 2),
    ],
)
def test_slots_of_many_bytes_are_blocks_of_their_own(texts: list[str], blocks: int) -> None:
    column = SplitColumn()
    column.add(Texts(join_texts(texts), len(texts)).block(0, len(texts)))
    assert count_blocks(column.data[0].stored) == blocks
