import itertools

import pytest
from format_samples import messages, unhurried
from hypothesis import example, given
from hypothesis import strategies as st

from logd.format.separated import (
    SEPARATOR,
    Numbering,
    concatenate,
    edges,
    is_any_longer,
    join_names,
    join_texts,
    longest,
)

TEXTS = st.lists(messages, min_size=1, max_size=8)


def split(blob: bytes, count: int) -> list[str]:
    at = edges(blob, count).tolist()
    return [blob[start : stop - 1].decode() for start, stop in itertools.pairwise(at)]


@unhurried
@given(TEXTS)
def test_texts_joined_are_found_at_their_edges(texts: list[str]) -> None:
    assert split(join_texts(texts), len(texts)) == texts


@pytest.mark.parametrize("texts", [[""], ["", ""], ["\0"], ["", "\0", ""], ["a\0b", "\0\0"]])
def test_empty_texts_and_texts_with_nul_keep_their_places(texts: list[str]) -> None:
    assert split(join_texts(texts), len(texts)) == texts


def test_no_texts_have_no_bytes() -> None:
    assert join_texts([]) == b""
    assert edges(b"", 0).tolist() == [0]


@unhurried
@given(TEXTS, st.integers(0, 12))
def test_another_count_than_that_of_the_texts_is_refused(texts: list[str], count: int) -> None:
    blob = join_texts(texts)
    if count == len(texts) or (not blob and count == 0):
        assert len(edges(blob, count)) == count + 1
    else:
        with pytest.raises(ValueError, match="announced"):
            edges(blob, count)


@unhurried
@given(TEXTS)
def test_the_longest_is_measured_in_bytes(texts: list[str]) -> None:
    assert longest(join_texts(texts), len(texts)) == max(len(text.encode()) for text in texts)


@unhurried
@given(
    st.lists(st.integers(0, 40).map(lambda size: "a" * size), min_size=1, max_size=40),
    st.integers(1, 45),
)
def test_a_text_that_is_too_long_is_noticed_wherever_it_lies(texts: list[str], size: int) -> None:
    assert is_any_longer(join_texts(texts), len(texts), size) == any(len(t) > size for t in texts)


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_text_that_is_one_byte_too_long_is_noticed(size: int, count: int) -> None:
    for sizes in itertools.product(range(size + 2), repeat=count):
        blob = join_texts(["x" * length for length in sizes])
        assert is_any_longer(blob, count, size) == (max(sizes) > size), sizes


@unhurried
@given(TEXTS)
@example(["\xfe"])
@example(["a", "\xfe", "b"])
@example(["a", "\u1234"])
@example(["", ""])
def test_names_are_joined_as_other_texts(texts: list[str]) -> None:
    assert join_names(texts) == join_texts(texts)
    for others in (["a"] * 100, ["\xe9"] * 100):
        assert join_names([*others, *texts]) == join_texts([*others, *texts])


@unhurried
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_blobs_joined_hold_all_their_texts(groups: list[list[str]]) -> None:
    texts = [text for group in groups for text in group]
    assert split(concatenate([join_texts(group) for group in groups]), len(texts)) == texts


@unhurried
@given(st.lists(st.sampled_from(["", "a", "A", "b", "\0"]), min_size=1))
def test_texts_are_numbered_in_order_of_appearance(texts: list[str]) -> None:
    numbering = Numbering()
    codes = numbering.encode(join_texts(texts)).tolist()
    known = [text.decode() for text in numbering]
    assert known == list(dict.fromkeys(texts))
    assert [known[code] for code in codes] == texts


def test_numbers_go_on_from_one_blob_to_the_next() -> None:
    numbering = Numbering()
    assert numbering.encode(SEPARATOR.join([b"x", b"y"])).tolist() == [0, 1]
    assert numbering.encode(SEPARATOR.join([b"z", b"x"])).tolist() == [2, 0]
