"""The frames of a column that is kept as templates and variables."""

from functools import partial

import pytest
from format_samples import messages, unhurried
from hypothesis import given
from hypothesis import strategies as st
from zstd_blocks import count_blocks

from logd.format.chunk import VERSION, StoredVariables, decode_kept, decode_variables
from logd.format.coded_values import decode_codes
from logd.format.columns import decompress
from logd.format.separated import join_texts
from logd.format.split_column import Frame, SplitColumn, Texts


def stored_variables(lengths: Frame, data: Frame, count: int) -> StoredVariables:
    """So many of a block without codes."""
    sizes = decompress(lengths.stored, lengths.raw_bytes)
    raw = decompress(data.stored, data.raw_bytes)
    return StoredVariables(
        sizes,
        lambda coded: decode_kept(VERSION, sizes, raw, count - coded),
        [],
        partial(decode_codes, b""),
    )


@unhurried
@given(st.lists(messages, min_size=1, max_size=12), st.sampled_from([1, 300]))
def test_frames_hold_the_variables_as_they_were_split(texts: list[str], times: int) -> None:
    column = SplitColumn()
    split = column.add(Texts(join_texts(texts * times), len(texts) * times).block(0, len(texts)))
    (data,), (lengths,) = column.data, column.lengths
    assert column.values() == (None, [])
    found = decode_variables(VERSION, stored_variables(lengths, data, len(split.lengths))).joined()
    assert found.data == split.data
    assert found.lengths.tolist() == split.lengths.tolist()


@pytest.mark.parametrize(
    ("texts", "blocks"),
    [
        (["no number"] * 10, 1),
        (["1 2 3"] * 200, 1),
        (["11111111"] * 256, 1),
        (["11111111 2222222"] * 63, 1),
        (["11111111 222222222"] * 64, 2),
        (["1111 222222222"] * 64, 1),  # short ones stay with the next
        (["11111111 222222222 a333333333"] * 100, 3),
        (["11111111 22222222 33333333"] * 300, 1),  # of one class
        (["a 11111111"] * 300 + ["b 22222222"] * 300, 1),
        (["a 11111111"] * 300 + ["b 222222222"] * 300, 2),
    ],
)
def test_classes_of_many_bytes_are_blocks_of_their_own(texts: list[str], blocks: int) -> None:
    column = SplitColumn()
    column.add(Texts(join_texts(texts), len(texts)).block(0, len(texts)))
    assert count_blocks(column.data[0].stored) == blocks


@pytest.mark.parametrize("count", [0, 1, 3, 5, 9])
def test_lengths_of_other_templates_are_noticed(count: int) -> None:
    column = SplitColumn()
    column.add(b"a 1 2 3 4")
    (data,), (lengths,) = column.data, column.lengths
    stored = stored_variables(lengths, data, 4)
    assert decode_variables(VERSION, stored).joined().data == b"1234"
    with pytest.raises(ValueError, match=r"lengths|planes"):
        decode_variables(VERSION, stored_variables(lengths, data, count)).joined()
