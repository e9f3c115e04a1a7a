"""A few texts of a block, against the texts that were split."""

import numpy as np
import pytest
from format_samples import messages
from hypothesis import given
from hypothesis import strategies as st

from logd.format.separated import edges, join_texts
from logd.format.single_texts import Lengths, join_few_texts, starts_of
from logd.format.templates import PLACEHOLDER, TemplateCodes, VariableBlock, split_block

TEXTS = st.lists(messages, min_size=1, max_size=12)


def split(texts: list[str]) -> tuple[VariableBlock, list[bytes]]:
    known = TemplateCodes()
    blob = join_texts(texts)
    block = split_block(blob, edges(blob, len(texts))[1:-1] - 1, known)
    return block, known.texts()


def few(
    block: VariableBlock,
    templates: list[bytes],
    rows: list[int],
    *,
    narrow: bool = True,
    more: bytes = b"",
) -> list[bytes]:
    slots = np.array([template.count(PLACEHOLDER) for template in templates], np.int64)
    return join_few_texts(
        rows,
        block.codes.astype(np.uint16),
        [templates[block.codes[row]] for row in rows],
        slots.take(block.codes),
        block.data + more,
        Lengths(block.lengths.astype(np.uint8 if narrow else np.uint32)),
    )


@given(TEXTS, st.data())
def test_a_few_texts_are_those_that_were_split(texts: list[str], data: st.DataObject) -> None:
    block, templates = split(texts)
    rows = data.draw(st.lists(st.sampled_from(range(len(texts))), min_size=1, unique=True))
    rows.sort()
    found = few(block, templates, rows, narrow=max(block.lengths, default=0) < 256)
    assert found == [texts[row].encode() for row in rows]


@given(st.lists(st.integers(1, 300), min_size=1, max_size=20), st.data())
def test_where_variables_begin(sizes: list[int], data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.sampled_from(range(len(sizes))))))
    lengths = np.array(sizes, np.uint16)
    found = starts_of(lengths, np.array(places, np.int64))
    assert found.tolist() == [sum(sizes[:place]) for place in places]


@given(st.lists(st.integers(1, 300), min_size=1, max_size=20))
def test_which_variable_holds_a_byte(sizes: list[int]) -> None:
    lengths = Lengths(np.array(sizes, np.uint16))
    expected = [
        (which, sum(sizes[:which]), size) for which, size in enumerate(sizes) for _ in range(size)
    ]
    assert [lengths.holding(offset) for offset in range(sum(sizes))] == expected


@pytest.mark.parametrize("count", [1023, 1024, 1025, 3000])
def test_which_of_many_variables_holds_a_byte(count: int) -> None:
    sizes = [1 + number * 7919 % 255 for number in range(count)]
    lengths = Lengths(np.array(sizes, np.uint8))
    begin = 0
    for which, size in enumerate(sizes):
        for offset in {begin, begin + size // 2, begin + size - 1}:
            assert lengths.holding(offset) == (which, begin, size)
        begin += size


@pytest.mark.parametrize("text", ["1", "a 1 b 2", "1 2 3 a1 b2", "none"])
def test_all_texts_of_one_template(text: str) -> None:
    block, templates = split([text, text.replace("1", "10"), text])
    expected = [text.encode(), text.replace("1", "10").encode(), text.encode()]
    assert few(block, templates, [0, 1, 2]) == expected


def test_data_that_the_lengths_do_not_add_up_to_is_noticed() -> None:
    block, templates = split(["a 1", "b"])
    with pytest.raises(ValueError, match="add up"):
        few(block, templates, [0], more=b"2")


def test_data_where_there_are_no_variables_is_noticed() -> None:
    block, templates = split(["a", "b"])
    with pytest.raises(ValueError, match="no"):
        few(block, templates, [0], more=b"2")


def test_lengths_of_other_templates_are_noticed() -> None:
    block, templates = split(["a 1", "b"])
    with pytest.raises(ValueError, match="not those"):
        few(block, [template.replace(PLACEHOLDER, b"x") for template in templates], [0])


@pytest.mark.parametrize("row", [0, 1, 1023, 1024, 1600, 2999])
@pytest.mark.parametrize("every", [1, 3])
def test_a_text_among_many_of_a_few_templates(row: int, every: int) -> None:
    texts = [f"{'abc'[n % every]} {n} from {n * 7919} of {10 ** (n % 9)}" for n in range(3000)]
    block, templates = split(texts)
    assert few(block, templates, [row]) == [texts[row].encode()]
