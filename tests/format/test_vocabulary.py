import re

import numpy as np
import pytest
from format_samples import flipped, truncated, unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format.vocabulary import (
    SOURCE,
    TAG_LIST,
    TEMPLATE,
    Targets,
    VocabularyIndex,
    encode_vocabulary,
)
from logd.words import fold

Texts = tuple[list[str], list[str], list[str]]

PLAIN = st.text(st.sampled_from("abAB é用_. -1"), max_size=12)
TEMPLATES = PLAIN.map(lambda text: re.sub(r"[0-9]", "\uffff", text))
"""U+FFFF stands for the placeholder, which no text can hold."""
TEXTS = st.tuples(
    st.lists(TEMPLATES, max_size=6, unique=True),
    st.lists(PLAIN, max_size=6, unique=True),
    st.lists(PLAIN, max_size=6, unique=True),
)


def utf8(text: str) -> bytes:
    return text.encode().replace("\uffff".encode(), b"\xff")


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[0-9a-z_\u0080-\ufffe]+", fold(text)))


def counts_of(texts: Texts) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """Some numbers, all different."""
    return [
        np.arange(4 * len(kind), dtype=np.int64).reshape(4, len(kind)) * 70_001 for kind in texts
    ]


def value_of(texts: Texts) -> bytes:
    return encode_vocabulary([[utf8(text) for text in kind] for kind in texts], counts_of(texts))


def codes(found: Targets | None) -> tuple[list[int], list[int], list[int]]:
    if found is None:
        return [], [], []
    return found.templates.tolist(), found.sources.tolist(), found.tag_lists.tolist()


def expected(texts: Texts, wanted: re.Pattern[str]) -> tuple[list[int], list[int], list[int]]:
    """Codes of the texts of which a whole word matches, by brute force."""
    templates, sources, tag_lists = (
        [code for code, text in enumerate(kind) if any(map(wanted.fullmatch, words_of(text)))]
        for kind in texts
    )
    return templates, sources, tag_lists


@unhurried
@given(TEXTS, PLAIN)
def test_look_ups_agree_with_brute_force(texts: Texts, text: str) -> None:
    index = VocabularyIndex(value_of(texts))
    every = {word for kind in texts for each in kind for word in words_of(each)}
    for word in {*every, *words_of(text), "absent"}:
        escaped = re.escape(word)
        exact = re.compile(escaped)
        assert codes(index.find(word.encode())) == expected(texts, exact)
        assert (index.find(word.encode()) is None) == (word not in every)
        for part in {word[:1], word[:-1] or word, word[1:] or word, word}:
            escaped = re.escape(part)
            prefix, substring = re.compile(f"{escaped}.*"), re.compile(f".*{escaped}.*")
            assert codes(index.find_prefix(part.encode())) == expected(texts, prefix)
            assert codes(index.find_substring(part.encode())) == expected(texts, substring)


@unhurried
@given(TEXTS)
def test_counts_come_back(texts: Texts) -> None:
    index = VocabularyIndex(value_of(texts))
    for kind, table in zip((TEMPLATE, SOURCE, TAG_LIST), counts_of(texts), strict=True):
        assert index.counts(kind).tolist() == table.tolist()


def test_an_empty_vocabulary_holds_no_word() -> None:
    index = VocabularyIndex(value_of(([], [], [])))
    assert index.find(b"word") is None
    assert codes(index.find_prefix(b"w")) == ([], [], [])
    assert codes(index.find_substring(b"w")) == ([], [], [])
    assert index.counts(TEMPLATE).shape == (4, 0)


def many_words() -> Texts:
    """1,500 words in 40 templates: several pages, and words at both edges of each."""
    words = [
        f"w{chr(97 + n // 676)}{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}" for n in range(1500)
    ]
    return [" ".join(words[start::40]) for start in range(40)], ["wabc x"], []


def test_every_word_of_many_pages_is_found() -> None:
    texts = many_words()
    index = VocabularyIndex(value_of(texts))
    holding = {word: [code] for code, text in enumerate(texts[0]) for word in words_of(text)}
    assert len(holding) == 1500
    for word, templates in holding.items():
        assert codes(index.find(word.encode())) == (templates, [0] if word == "wabc" else [], [])
        assert index.find(word.encode()[:-1]) is None
        assert index.find(word.encode() + b"0") is None


@pytest.mark.parametrize("prefix", ["", "w", "wa", "waz", "wb", "wbz", "wc", "wcf", "wd", "x", "y"])
def test_prefixes_reach_over_many_pages(prefix: str) -> None:
    texts = many_words()
    index = VocabularyIndex(value_of(texts))
    found = codes(index.find_prefix(prefix.encode()))
    assert found == expected(texts, re.compile(f"{prefix}.*"))
    found = codes(index.find_substring(prefix.encode()))
    assert found == expected(texts, re.compile(f".*{prefix}.*"))


def test_codes_reach_65535_in_each_kind() -> None:
    sources = ["filler"] * 65_535 + ["last"]
    index = VocabularyIndex(value_of((["first last"], sources, ["last"])))
    assert codes(index.find(b"last")) == ([0], [65_535], [0])
    found = index.find(b"filler")
    assert found is not None
    assert len(found.sources) == 65_535


def test_placeholders_belong_to_no_word() -> None:
    index = VocabularyIndex(
        encode_vocabulary([[b"took \xffms"], [], []], counts_of((["t"], [], [])))
    )
    assert codes(index.find(b"took")) == ([0], [], [])
    assert codes(index.find(b"ms")) == ([0], [], [])


def small_value() -> bytes:
    return value_of((["alpha beta", "beta"], ["api"], ["tag beta"]))


def look(value: bytes) -> object:
    index = VocabularyIndex(value)
    words = [b"alpha", b"beta", b"api", b"tag", b"gone"]
    tables = [index.counts(kind).tolist() for kind in (TEMPLATE, SOURCE, TAG_LIST)]
    return [codes(index.find(word)) for word in words], tables


def test_every_truncation_is_detected() -> None:
    for value in truncated(small_value()):
        with pytest.raises(ValueError, match="paged value"):
            look(value)


def test_every_flipped_byte_is_detected() -> None:
    for _, value in flipped(small_value()):
        with pytest.raises(ValueError, match="paged value"):
            look(value)
