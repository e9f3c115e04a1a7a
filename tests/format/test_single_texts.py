"""A few texts of a block, against the texts that were split."""

import numpy as np
import pytest
from format_samples import messages
from hypothesis import given
from hypothesis import strategies as st
from split_texts import Split, split

from logd.format.single_texts import join_few_texts
from logd.format.variable_lengths import Lengths

TEXTS = st.lists(messages, min_size=1, max_size=12)


def few(split: Split, rows: list[int], *, narrow: bool = True, more: bytes = b"") -> list[bytes]:
    items = split.block.lengths
    lengths = Lengths(items.astype(np.uint8) if narrow else items)
    data = split.block.data + more
    return join_few_texts(rows, split.layout, split.templates_of(rows), data, lengths)


@given(TEXTS, st.data())
def test_a_few_texts_are_those_that_were_split(texts: list[str], data: st.DataObject) -> None:
    some = split(texts)
    rows = data.draw(st.lists(st.sampled_from(range(len(texts))), min_size=1, unique=True))
    rows.sort()
    found = few(some, rows, narrow=max(some.block.lengths, default=0) < 256)
    assert found == [texts[row].encode() for row in rows]


@pytest.mark.parametrize("text", ["1", "a 1 b 2", "1 2 3 a1 b2", "none"])
def test_all_texts_of_one_template(text: str) -> None:
    some = split([text, text.replace("1", "10"), text])
    expected = [text.encode(), text.replace("1", "10").encode(), text.encode()]
    assert few(some, [0, 1, 2]) == expected


def test_data_that_the_lengths_do_not_add_up_to_is_noticed() -> None:
    with pytest.raises(ValueError, match="add up"):
        few(split(["a 1", "b"]), [0], more=b"2")


def test_data_where_there_are_no_variables_is_noticed() -> None:
    with pytest.raises(ValueError, match="add up"):
        few(split(["a", "b"]), [0], more=b"2")


def test_lengths_of_other_templates_are_noticed() -> None:
    one, other = split(["a 1", "b"]), split(["a", "b"])
    with pytest.raises(ValueError, match="not those"):
        few(Split(one.block, other.known), [0])


@pytest.mark.parametrize("row", [0, 1, 1023, 1024, 1600, 2999])
@pytest.mark.parametrize("every", [1, 3])
def test_a_text_among_many_of_a_few_templates(row: int, every: int) -> None:
    texts = [f"{'abc'[n % every]} {n} from {n * 7919} of {10 ** (n % 9)}" for n in range(3000)]
    assert few(split(texts), [row]) == [texts[row].encode()]
