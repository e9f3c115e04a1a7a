"""Phrases in templates: as `matches_words` decides, for many at once."""

from hypothesis import example, given
from hypothesis import strategies as st

from logd.query.ast import Word
from logd.query.match import matches_words
from logd.store.phrases import holding_phrase
from logd.words import fold

WORDS = st.sampled_from(["a", "aa", "ab", "b", "foo", "a_b", "x"])
WORD_PIECES = ["a", "aa", "ab", "A", "b", "foo", "Foo", "a_b", "é", "x", "Ж"]
PIECES = st.sampled_from([*WORD_PIECES, "\xff", " ", "  ", ".", ": ", "_", "(", "\n"])


@st.composite
def templates(draw: st.DrawFn) -> list[bytes]:
    texts = draw(st.lists(st.lists(PIECES, max_size=8), min_size=1, max_size=8))
    return [b"".join([_piece(piece) for piece in text]) for text in texts]


def _piece(piece: str) -> bytes:
    return b" \xff." if piece == "\xff" else piece.encode()


@given(st.lists(WORDS, min_size=2, max_size=3), templates())
@example(["a", "b"], [b"aa b", b"a aa b", b"xa b a b"])
@example(["a", "b"], [b"a", b"b"])
@example(["a", "b"], [b"a \xff b"])
@example(["a", "a"], [b"a a a", b"a.A", b""])
def test_the_templates_are_those_whose_text_matches(words: list[str], texts: list[bytes]) -> None:
    wanted = [Word(word) for word in words]
    expected = [
        number
        for number, text in enumerate(texts)
        if matches_words(wanted, fold(text.replace(b"\xff", b"0").decode()))
    ]
    assert holding_phrase(wanted, texts).tolist() == expected
