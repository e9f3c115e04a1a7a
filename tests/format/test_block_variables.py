"""The variables of a block, some of them coded, against lists of words."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from format_samples import messages
from hypothesis import given
from hypothesis import strategies as st
from split_texts import split

from logd.format.block_variables import BlockVariables, CodedVariables, Kept, Values
from logd.format.templates import joined_texts

WORDS = st.text("ab0_1é", min_size=1, max_size=9).map(str.encode)


class Sample(NamedTuple):
    """`words`: all variables, by place; `kept`: places of those that are not coded."""

    words: list[bytes]
    kept: list[int]
    variables: BlockVariables


def padded(words: list[bytes]) -> Values:
    width = max(map(len, words))
    rows = [list(word.ljust(width, b"\0")) for word in words]
    return Values(np.array(rows, np.uint8).T)


def kept_variables(words: list[bytes], dtype: type = np.uint16) -> Kept:
    return Kept(b"".join(words), np.array([len(word) for word in words], dtype))


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    words: list[bytes] = []
    kept: list[int] = []
    coded: list[CodedVariables] = []
    all_codes: list[npt.NDArray[np.uint8]] = []
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.booleans()):
            some = draw(st.lists(WORDS, max_size=5))
            kept += range(len(words), len(words) + len(some))
            words += some
        else:
            pool = draw(st.lists(WORDS, min_size=1, max_size=4))
            codes = draw(st.lists(st.integers(0, len(pool) - 1), min_size=1, max_size=6))
            coded.append(CodedVariables(len(words), len(codes), padded(pool)))
            all_codes.append(np.array(codes, np.uint8))
            words += [pool[code] for code in codes]
    stays = kept_variables([words[place] for place in kept])
    return Sample(words, kept, BlockVariables(stays, coded, lambda: all_codes))


@given(samples())
def test_all_of_them_come_back(sample: Sample) -> None:
    joined = sample.variables.joined()
    assert joined.data == b"".join(sample.words)
    assert joined.lengths.tolist() == [len(word) for word in sample.words]


@given(samples(), st.data())
def test_some_places(sample: Sample, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.sampled_from(range(len(sample.words))))) if sample.words else []
    assert sample.variables.texts(places) == [sample.words[place] for place in places]
    found: dict[int, bytes] = {}
    for coded, which, indexes in sample.variables.parted(np.array(places, np.int64)):
        for at, index in zip(which.tolist(), indexes.tolist(), strict=True):
            assert at not in found
            if coded is None:
                found[at] = sample.words[sample.kept[index]]
            else:
                code = sample.variables.codes[coded].item(index)
                found[at] = sample.variables.coded[coded].values.text(code)
    assert [found[at] for at in range(len(places))] == [sample.words[place] for place in places]


@given(samples())
def test_those_that_are_kept(sample: Sample) -> None:
    indexes = np.arange(len(sample.kept))
    assert sample.variables.places_of_kept(indexes).tolist() == sample.kept
    sizes = [len(sample.words[place]) for place in sample.kept]
    begins = [sum(sizes[:index]) for index in range(len(sizes))]
    assert sample.variables.starts_of_kept(indexes[::-1].copy()).tolist() == begins[::-1]
    expected = [
        (index, begins[index], size) for index, size in enumerate(sizes) for _ in range(size)
    ]
    assert [sample.variables.kept_at(offset) for offset in range(sum(sizes))] == expected


@pytest.mark.parametrize("count", [1023, 1024, 1025, 3000])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32])
def test_many_that_are_kept(count: int, dtype: type) -> None:
    words = [b"x" * (1 + number * 7919 % 255) for number in range(count)]
    variables = BlockVariables(kept_variables(words, dtype))
    begins = np.cumsum([0, *map(len, words[:-1])]).tolist()
    some = [count - 1, 0, 700]
    assert variables.starts_of_kept(np.array(some)).tolist() == [begins[index] for index in some]
    assert variables.starts_of_kept(np.arange(count)).tolist() == begins
    for index, (begin, word) in enumerate(zip(begins, words, strict=True)):
        for offset in (begin, begin + len(word) - 1):
            assert variables.kept_at(offset) == (index, begin, len(word))
    assert variables.texts([count - 1, 700]) == [words[-1], words[700]]


@given(st.lists(WORDS, min_size=1, max_size=9), WORDS, st.booleans())
def test_values_that_are_a_word_or_begin_with_it(
    words: list[bytes], wanted: bytes, whole: bool
) -> None:
    wanted = wanted.decode().encode("ascii", "ignore") or b"0"
    some = [word.upper() if index % 2 else word for index, word in enumerate(words)]
    found = padded(some).beginning_with(wanted, whole=whole).tolist()
    lower = [word.lower() for word in some]
    assert found == [word == wanted if whole else word.startswith(wanted) for word in lower]
    assert list(padded(some).texts()) == some


@pytest.mark.parametrize("more", [b"1", b"12345"])
def test_lengths_that_do_not_add_up_to_the_data_are_noticed(more: bytes) -> None:
    kept = kept_variables([b"a1", b"b"])
    data, lengths = kept.data, kept.lengths
    with pytest.raises(ValueError, match="add up"):
        Kept(data + more, lengths)
    with pytest.raises(ValueError, match="add up"):
        Kept(data[1:], lengths)
    with pytest.raises(ValueError, match="add up"):
        Kept(more, lengths[:0])


@given(st.lists(messages, min_size=1, max_size=12), st.data())
def test_a_few_texts_are_those_that_were_split(texts: list[str], data: st.DataObject) -> None:
    some = split(texts)
    rows = data.draw(st.lists(st.sampled_from(range(len(texts))), min_size=1, unique=True))
    variables = BlockVariables(Kept(some.block.data, some.block.lengths))
    places = some.places_of(rows)
    found = joined_texts(
        some.templates_of(rows),
        list(map(len, places)),
        [text for of_row in places for text in variables.texts(of_row)],
    )
    assert found == [texts[row].encode() for row in rows]


@pytest.mark.parametrize("text", ["1", "a 1 b 2", "1 2 3 a1 b2", "none"])
def test_all_texts_of_one_template(text: str) -> None:
    expected = [text, text.replace("1", "10"), text]
    some = split(expected)
    variables = BlockVariables(Kept(some.block.data, some.block.lengths))
    places = some.places_of(range(3))
    found = joined_texts(
        some.templates_of([0, 1, 2]),
        list(map(len, places)),
        [word for of_row in places for word in variables.texts(of_row)],
    )
    assert found == [each.encode() for each in expected]


@pytest.mark.parametrize("row", [0, 1, 1023, 1024, 1600, 2999])
@pytest.mark.parametrize("every", [1, 3])
def test_a_text_among_many_of_a_few_templates(row: int, every: int) -> None:
    texts = [f"{'abc'[n % every]} {n} from {n * 7919} of {10 ** (n % 9)}" for n in range(3000)]
    some = split(texts)
    variables = BlockVariables(Kept(some.block.data, some.block.lengths))
    [places] = some.places_of([row])
    found = joined_texts(some.templates_of([row]), [len(places)], variables.texts(places))
    assert found == [texts[row].encode()]
