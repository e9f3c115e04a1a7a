import sys

from hypothesis import given
from hypothesis import strategies as st

from logd.words import DIGIT_BYTE, WORD_BYTE, fold, split_words

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
ASCII_TEXTS = st.text(st.characters(max_codepoint=0x7F))
MIXED_TEXTS = st.text(st.sampled_from("aZ09_ -.\0\n\u0080éÉßẞıİſΣσς\u212aÅ\u212b用户\u0301😀"))
ALL_CHARACTERS = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c <= 0xDFFF]


def test_words_are_runs_of_letters_digits_underscores_and_non_ascii() -> None:
    assert split_words("GET /api/v1?q=naïve_x 用户-1") == [
        "GET", "api", "v1", "q", "naïve_x", "用户", "1",
    ]  # fmt: skip


def test_a_text_of_punctuation_has_no_words() -> None:
    assert split_words("... -- \0\n\t()") == []


def test_ascii_letters_fold_to_lower_case() -> None:
    assert fold("Error: UPPER_case 42") == "error: upper_case 42"


def test_letters_fold_one_by_one_where_the_size_stays() -> None:
    assert fold("ÉCLAIR ΣΟΦΟΣ ЖУК") == "éclair σοφοσ жук"


def test_letters_that_would_change_their_size_stay() -> None:
    kelvin, angstrom, dotted_i, capital_sharp_s = "\u212a", "\u212b", "\u0130", "\u1e9e"
    for letter in (kelvin, angstrom, dotted_i, capital_sharp_s):
        assert fold(letter) == letter


def test_no_character_folds_into_or_out_of_ascii_or_to_another_size() -> None:
    for character in ALL_CHARACTERS:
        folded = fold(character)
        assert len(folded) == 1
        assert folded.isascii() == character.isascii()
        assert len(folded.encode()) == len(character.encode())


def test_folding_twice_is_folding_once_for_every_character() -> None:
    text = "".join(ALL_CHARACTERS)
    assert fold(fold(text)) == fold(text)


@given(TEXTS | MIXED_TEXTS | ASCII_TEXTS)
def test_folding_is_done_character_by_character(text: str) -> None:
    assert fold(text) == "".join(fold(character) for character in text)


@given(TEXTS | MIXED_TEXTS | ASCII_TEXTS)
def test_a_folded_text_has_the_folded_words(text: str) -> None:
    assert split_words(fold(text)) == [fold(word) for word in split_words(text)]


@given(TEXTS | MIXED_TEXTS | ASCII_TEXTS)
def test_the_byte_table_finds_the_same_words(text: str) -> None:
    data = text.encode()
    marked = data.translate(WORD_BYTE)
    kept = bytes(b if mark else ord(" ") for b, mark in zip(data, marked, strict=True))
    assert [word for word in kept.decode().split(" ") if word] == split_words(text)


def test_separator_bytes_belong_to_no_word() -> None:
    assert bytes(range(0xF8, 0x100)).translate(WORD_BYTE) == bytes(8)


def test_digit_bytes_are_the_ascii_digits() -> None:
    digits = [chr(code) for code in range(256) if DIGIT_BYTE[code]]
    assert "".join(digits) == "0123456789"
