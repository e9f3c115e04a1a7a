import re

import numpy as np
import pytest
from format_samples import messages, unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format.separated import edges, join_texts
from logd.format.templates import (
    PLACEHOLDER,
    SlotLayout,
    TemplateCodes,
    VariableBlock,
    is_word_byte,
    join_texts_at,
    split_block,
)
from logd.words import DIGIT_BYTE, WORD_BYTE, split_words

TEXTS = st.lists(messages, min_size=1, max_size=12)


def split(
    texts: list[str], codes: TemplateCodes | None = None
) -> tuple[VariableBlock, list[bytes]]:
    known = TemplateCodes() if codes is None else codes
    blob = join_texts(texts)
    block = split_block(blob, edges(blob, len(texts))[1:-1] - 1, known)
    return block, known.texts()


def slots_of(templates: list[bytes]) -> list[int]:
    return [template.count(PLACEHOLDER) for template in templates]


def joined(block: VariableBlock, templates: list[bytes], rows: list[int]) -> list[str]:
    slots = np.array(slots_of(templates), np.int64)
    layout = SlotLayout(block.codes, slots)
    texts = join_texts_at(
        np.array(rows, np.int64),
        layout,
        [templates[block.codes[row]] for row in rows],
        slots,
        block.data,
        np.cumsum(block.lengths),
    )
    return [text.decode() for text in texts]


def variables(block: VariableBlock) -> list[str]:
    ends = np.cumsum(block.lengths).tolist()
    return [
        block.data[end - length : end].decode()
        for end, length in zip(ends, block.lengths.tolist(), strict=True)
    ]


def words_with_digits(text: str) -> list[str]:
    return [word for word in split_words(text) if re.search(r"[0-9]", word)]


@unhurried
@given(TEXTS, st.data())
def test_any_rows_of_a_block_come_back(texts: list[str], data: st.DataObject) -> None:
    block, templates = split(texts)
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), unique=True).map(sorted))
    assert joined(block, templates, rows) == [texts[row] for row in rows]


@unhurried
@given(TEXTS)
def test_the_words_with_a_digit_are_the_variables(texts: list[str]) -> None:
    block, templates = split(texts)
    found: dict[int, list[str]] = {row: [] for row in range(len(texts))}
    for row, variable in zip(block.rows.tolist(), variables(block), strict=True):
        found[row].append(variable)
    assert found == {row: words_with_digits(text) for row, text in enumerate(texts)}
    for template in templates:
        assert not re.search(rb"[0-9]", template)


@unhurried
@given(TEXTS)
def test_the_rows_of_the_variables_can_be_computed(texts: list[str]) -> None:
    block, templates = split(texts)
    layout = SlotLayout(block.codes, np.array(slots_of(templates), np.int64))
    assert layout.rows().tolist() == block.rows.tolist()
    assert layout.variables == len(block.lengths)


@unhurried
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_the_variables_of_each_slot_are_counted(groups: list[list[str]]) -> None:
    codes = TemplateCodes()
    blocks = [split(texts, codes)[0] for texts in groups]
    slots = slots_of(codes.texts())
    for block in blocks:
        of_code = block.codes.tolist()
        expected = [
            of_code.count(code) for code in sorted(set(of_code)) for _ in range(slots[code])
        ]
        assert block.per_slot.tolist() == expected
        assert sum(expected) == len(block.lengths)


@unhurried
@given(st.lists(TEXTS, min_size=2, max_size=3))
def test_blocks_share_their_templates(groups: list[list[str]]) -> None:
    codes = TemplateCodes()
    blocks = [split(texts, codes)[0] for texts in groups]
    templates = codes.texts()
    assert len(templates) == len(set(templates)) == len(codes)
    for block, texts in zip(blocks, groups, strict=True):
        assert joined(block, templates, list(range(len(texts)))) == texts


def test_a_variable_is_a_whole_word() -> None:
    block, templates = split(["Accepted password for user12 from 10.0.0.1"])
    assert templates == [b"Accepted password for \xff from \xff.\xff.\xff.\xff"]
    assert variables(block) == ["user12", "10", "0", "0", "1"]


def test_variables_lie_by_template_then_slot_then_row() -> None:
    block, templates = split(["a 1 2", "b 3", "a 4 5", "b 6", "a 7 8"])
    assert templates == [b"a \xff \xff", b"b \xff"]
    assert variables(block) == ["1", "4", "7", "2", "5", "8", "3", "6"]
    assert block.rows.tolist() == [0, 2, 4, 0, 2, 4, 1, 3]


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 8192])
@pytest.mark.parametrize("kind", ["9", "a", "9a", "é9"])
def test_words_may_be_as_long_as_a_message(size: int, kind: str) -> None:
    text = (kind * size)[: size // len(kind.encode()) or 1]
    texts = [f"{text} {text}", text, f".{text}"]
    block, templates = split(texts)
    assert joined(block, templates, [0, 1, 2]) == texts
    assert len(variables(block)) == (4 if "9" in text else 0)


def test_a_thousand_variables_fit_in_one_text() -> None:
    texts = ["1 " * 4096, "", "2-" * 4096]
    block, templates = split(texts)
    assert len(variables(block)) == 8192
    assert joined(block, templates, [0, 1, 2]) == texts


def test_texts_of_one_block_do_not_run_together() -> None:
    block, templates = split(["end1", "2start", "3"])
    assert templates == [b"\xff"]
    assert variables(block) == ["end1", "2start", "3"]


def test_the_byte_classes_are_those_of_the_tokenizer() -> None:
    every = np.arange(256, dtype=np.uint8)
    word, digit = is_word_byte(every)
    assert word.astype(np.uint8).tobytes() == bytes(range(256)).translate(WORD_BYTE)
    assert digit.astype(np.uint8).tobytes() == bytes(range(256)).translate(DIGIT_BYTE)
