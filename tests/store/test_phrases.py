"""Phrases in templates: as `matches_words` decides, for many at once."""

from hypothesis import example, given
from hypothesis import strategies as st

from logd.format.separated import SEPARATOR
from logd.format.templates import PLACEHOLDER
from logd.query.ast import Word, WordKind
from logd.query.match import matches_words
from logd.store.phrases import find_phrase
from logd.words import fold

WORDS = st.sampled_from(["a", "aa", "ab", "b", "foo", "a_b", "x", "7", "a7", "70"]).map(Word)
PARTS = st.sampled_from(["é", "ж", "aé", "é7"]).map(lambda text: Word(text, WordKind.SUBSTRING))
PREFIXES = st.sampled_from(["a", "f", "7", "x"]).map(lambda text: Word(text, WordKind.PREFIX))
PHRASES = st.builds(
    lambda words, last: [*words, *last],
    st.lists(WORDS | PARTS, min_size=1, max_size=3),
    st.lists(PREFIXES, max_size=1),
)
WORD_PIECES = ["a", "aa", "ab", "A", "b", "foo", "Foo", "a_b", "é", "x", "Ж"]
PIECES = st.sampled_from([*WORD_PIECES, "\xff", " ", "  ", ".", ": ", "_", "(", "\n"])
PART_WORDS = st.text("ééжa7", min_size=1, max_size=5)
"""In many of them a part that is not ASCII is found at several places."""
PHRASES_OF_PARTS = st.lists(
    st.sampled_from(["é", "é", "éé", "aé", "жé", "é7", "a", "7"]), min_size=2, max_size=5
).map(lambda texts: [Word(text, _kind_of(text)) for text in texts])
VARIABLES = st.sampled_from([b"7", b"70", b"a7", b"A7", b"\xc3\x897", b"x7\xd0\xb6"])


def _kind_of(text: str) -> WordKind:
    return WordKind.EXACT if text.isascii() else WordKind.SUBSTRING


@st.composite
def templates(draw: st.DrawFn) -> list[bytes]:
    texts = draw(st.lists(st.lists(PIECES, max_size=8), min_size=1, max_size=8))
    return [b"".join([_piece(piece) for piece in text]) for text in texts]


def _piece(piece: str) -> bytes:
    return b" \xff." if piece == "\xff" else piece.encode()


def as_found(words: list[Word], texts: list[bytes], variables: list[list[bytes]]) -> list[int]:
    """Which of the texts hold the phrase, as the places say."""
    found = find_phrase(words, SEPARATOR.join(texts))
    out = set(found.whole.tolist())
    for gap in found.gaps:
        for index, slot in zip(gap.templates.tolist(), gap.slots.tolist(), strict=True):
            there = variables[index][slot : slot + len(gap.words)]
            assert len(there) == len(gap.words)
            if all(
                matches_words([word], fold(text.decode()))
                for word, text in zip(gap.words, there, strict=True)
            ):
                out.add(index)
    return sorted(out)


@given(PHRASES, templates(), st.data())
@example([Word("a"), Word("b")], [b"aa b", b"a aa b", b"xa b a b"], None)
@example([Word("a"), Word("b")], [b"a", b"b"], None)
@example([Word("a"), Word("b")], [b"a \xff b"], None)
@example([Word("a"), Word("a")], [b"a a a", b"a.A", b""], None)
@example([Word("7"), Word("7")], [b"\xff \xff \xff", b"\xff", b"\xff.a.\xff"], None)
@example([Word("é", WordKind.SUBSTRING), Word("é", WordKind.SUBSTRING)], ["xéé é".encode()], None)
def test_the_templates_are_those_whose_text_matches(
    words: list[Word], texts: list[bytes], data: st.DataObject | None
) -> None:
    variables = [
        [b"7" if data is None else data.draw(VARIABLES) for _ in range(text.count(PLACEHOLDER))]
        for text in texts
    ]
    expected = []
    for number, text in enumerate(texts):
        pieces = [b""] * (2 * len(variables[number]) + 1)
        pieces[::2], pieces[1::2] = text.split(PLACEHOLDER), variables[number]
        if matches_words(words, fold(b"".join(pieces).decode())):
            expected.append(number)
    assert as_found(words, texts, variables) == expected


@given(
    PHRASES_OF_PARTS,
    st.lists(
        st.lists(st.tuples(PART_WORDS, st.sampled_from([" ", "  ", ". "])), max_size=8),
        min_size=1,
        max_size=4,
    ),
)
def test_parts_of_words_side_by_side(
    words: list[Word], messages: list[list[tuple[str, str]]]
) -> None:
    templates, variables, expected = [], [], []
    for number, message in enumerate(messages):
        pieces = [(b"\xff" if "7" in word else word.encode(), gap) for word, gap in message]
        templates.append(b"".join([piece + gap.encode() for piece, gap in pieces]))
        variables.append([word.encode() for word, _ in message if "7" in word])
        if matches_words(words, "".join([word + gap for word, gap in message])):
            expected.append(number)
    assert as_found(words, templates, variables) == expected
