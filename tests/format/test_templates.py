import itertools
import re

import numpy as np
import pytest
from format_samples import messages, unhurried
from hypothesis import given
from hypothesis import strategies as st
from split_texts import Split, split

from logd.format.slot_order import MOST_CLASSED
from logd.format.templates import TemplateCodes, is_word_byte, joined_texts
from logd.words import DIGIT_BYTE, WORD_BYTE, split_words

TEXTS = st.lists(messages, min_size=1, max_size=12)


def joined(some: Split, rows: list[int]) -> list[str]:
    places = some.places_of(rows)
    found = some.variables()
    variables = [found[place].encode() for of_row in places for place in of_row]
    texts = joined_texts(some.templates_of(rows), list(map(len, places)), variables)
    return [text.decode() for text in texts]


def words_with_digits(text: str) -> list[str]:
    return [word for word in split_words(text) if re.search(r"[0-9]", word)]


@unhurried
@given(TEXTS, st.data())
def test_any_rows_of_a_block_come_back(texts: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), unique=True).map(sorted))
    assert joined(split(texts), rows) == [texts[row] for row in rows]


@unhurried
@given(TEXTS)
def test_the_words_with_a_digit_are_the_variables(texts: list[str]) -> None:
    some = split(texts)
    found: dict[int, list[tuple[int, str]]] = {row: [] for row in range(len(texts))}
    numbers = some.layout.locate(np.arange(len(some.block.rows))).numbers.tolist()
    for row, number, variable in zip(
        some.block.rows.tolist(), numbers, some.variables(), strict=True
    ):
        found[row].append((number, variable))
    assert {row: [text for _, text in sorted(of_row)] for row, of_row in found.items()} == {
        row: words_with_digits(text) for row, text in enumerate(texts)
    }
    for template in some.templates:
        assert not re.search(rb"[0-9]", template)


@unhurried
@given(TEXTS)
def test_the_rows_of_the_variables_can_be_computed(texts: list[str]) -> None:
    some = split(texts)
    assert some.layout.rows().tolist() == some.block.rows.tolist()
    assert some.layout.variables == len(some.block.lengths)


@unhurried
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_blocks_share_their_templates(groups: list[list[str]]) -> None:
    codes = TemplateCodes()
    blocks = [split(texts, codes) for texts in groups]  # later ones see more templates than earlier
    templates = codes.texts()
    assert len(templates) == len(set(templates)) == len(codes)
    for block, texts in zip(blocks, groups, strict=True):
        assert joined(block, list(range(len(texts)))) == texts


@unhurried
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_the_classes_of_a_block_are_those_it_has_in_the_chunk(groups: list[list[str]]) -> None:
    codes = TemplateCodes()
    for some in [split(texts, codes) for texts in groups]:  # when all templates are known
        order, sizes = codes.order(), some.layout.class_sizes()
        assert some.block.of.classes.tolist() == order.class_codes[sizes > 0].tolist()
        assert some.block.of.sizes.tolist() == sizes[sizes > 0].tolist()


def test_a_variable_is_a_whole_word() -> None:
    some = split(["Accepted password for user12 from 10.0.0.1"])
    assert some.templates == [b"Accepted password for \xff from \xff.\xff.\xff.\xff"]
    assert sorted(some.variables()) == ["0", "0", "1", "10", "user12"]


def test_variables_of_one_kind_and_length_lie_together() -> None:
    some = split(["a 1 22", "b 3 f0 g1", "a 4 55", "b 6 a9 x8", "a 7 88"])
    assert some.templates == [b"a \xff \xff", b"b \xff \xff \xff"]
    assert some.variables() == [*"14736", "22", "55", "88", "f0", "a9", "g1", "x8"]
    assert some.block.rows.tolist() == [0, 2, 4, 1, 3, 0, 2, 4, 1, 3, 1, 3]
    assert some.block.of.classes.tolist() == [0x01, 0x02, 0x12, 0x22]
    assert some.block.of.sizes.tolist() == [5, 3, 2, 2]


def test_the_first_block_of_a_template_decides_the_classes_of_its_slots() -> None:
    codes = TemplateCodes()
    split(["a 1", "b 22"], codes)
    assert split(["b 3", "a 44"], codes).variables() == ["44", "3"]


@pytest.mark.parametrize("templates", [n + MOST_CLASSED // 2 for n in (-1, 0, 1)])
def test_very_many_slots_have_no_class(templates: int) -> None:
    codes = TemplateCodes()
    names = ["".join(letters) for letters in itertools.product("abcdefghijklmnop", repeat=4)]
    texts = [f"{names[number]} {number} x{number}" for number in range(templates)]
    for begin in range(0, templates, 4096):
        some = texts[begin : begin + 4096]
        assert joined(split(some, codes), [0, len(some) - 1]) == [some[0], some[-1]]
    assert len(codes.classes()) == 2 * min(templates, MOST_CLASSED // 2)
    more = ["plain 1 22 f3", "aaaa 7 x8", "plain 4 55 a6"]
    some_more = split(more, codes)
    assert some_more.variables() == ["7", "x8", "1", "4", "22", "55", "f3", "a6"]
    assert joined(some_more, [0, 1, 2]) == more


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 8192])
@pytest.mark.parametrize("kind", ["9", "a", "9a", "é9"])
def test_words_may_be_as_long_as_a_message(size: int, kind: str) -> None:
    text = (kind * size)[: size // len(kind.encode()) or 1]
    texts = [f"{text} {text}", text, f".{text}"]
    some = split(texts)
    assert joined(some, [0, 1, 2]) == texts
    assert len(some.variables()) == (4 if "9" in text else 0)


def test_a_thousand_variables_fit_in_one_text() -> None:
    texts = ["1 " * 4096, "", "2-" * 4096]
    some = split(texts)
    assert len(some.variables()) == 8192
    assert joined(some, [0, 1, 2]) == texts


def test_texts_of_one_block_do_not_run_together() -> None:
    some = split(["end1", "2start", "3"])
    assert some.templates == [b"\xff"]
    assert some.variables() == ["end1", "2start", "3"]


def test_the_byte_classes_are_those_of_the_tokenizer() -> None:
    every = np.arange(256, dtype=np.uint8)
    word, digit = is_word_byte(every)
    assert word.astype(np.uint8).tobytes() == bytes(range(256)).translate(WORD_BYTE)
    assert digit.astype(np.uint8).tobytes() == bytes(range(256)).translate(DIGIT_BYTE)
