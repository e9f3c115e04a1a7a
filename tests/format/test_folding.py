"""Many texts folded at once are each what folding it alone makes of it."""

import tracemalloc

import pytest
from format_samples import messages, unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format.folding import fold_utf8
from logd.format.separated import join_texts
from logd.words import fold

ANY = st.text(st.characters(exclude_categories=["Cs"]))
MIXED = st.text(st.sampled_from("aZ09_ -.\0\n\u0080éÉßẞıİſΣσς\u212aÅ\u212b用户\u0301😀"))


@given(ANY | MIXED | MIXED.map(lambda text: 30 * text))
def test_folding_utf8_is_folding_the_text(text: str) -> None:
    assert fold_utf8(text.encode()) == fold(text).encode()


@unhurried
@given(st.lists(messages | MIXED, min_size=1, max_size=8))
def test_folding_separated_texts_is_folding_each(texts: list[str]) -> None:
    assert fold_utf8(join_texts(texts)) == join_texts([fold(text) for text in texts])


def test_bytes_that_are_no_utf8_are_left_alone() -> None:
    assert fold_utf8(b"A\xfe\xff\xfeB\xff") == b"a\xfe\xff\xfeb\xff"
    assert fold_utf8("É\0A".encode() + b"\xfe\xffB") == "é\0a".encode() + b"\xfe\xffb"
    assert fold_utf8("É".encode() + b"\xfe" + "É".encode()) == "é".encode() + b"\xfe" + "é".encode()


@pytest.mark.parametrize("ahead", range(4))
def test_texts_of_any_size_fold_as_they_do_alone(ahead: int) -> None:
    """They are gone through in stretches, none of which ends within a character."""
    text = ahead * "A" + "\u00c9 \u1e9e\u2c00\u4e2d \U00010400\U0001f600\U0010ffff" * 40_000
    assert fold_utf8(text.encode()) == fold(text).encode()


def test_every_character_folds_as_it_does_alone() -> None:
    points = (code for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    text = " ".join(map(chr, points))
    assert fold_utf8(text.encode()) == fold(text).encode()


@pytest.mark.parametrize("word", ["\u00e9a", "\u767bab", "\u00c9 "])
def test_folding_takes_little_more_room_than_the_texts(word: str) -> None:
    """However many words there are of which each has to be looked at."""
    texts = (word * 2_000_000).encode()
    fold_utf8((word * 500).encode())  # what is made once
    tracemalloc.start()
    fold_utf8(texts)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * len(texts)
