from collections.abc import Sequence

import pytest
from format_samples import unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format.utf8 import is_utf8

PIECES = st.one_of(
    st.integers(0, 600).map(lambda size: b"a" * size),
    st.text(max_size=8).map(str.encode),
    st.binary(max_size=4),
)


MUCH = 70_000
"""Bytes of which not all are decoded; less may be."""


def by_decoding(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@unhurried
@given(st.lists(PIECES, max_size=12), st.integers(MUCH, MUCH + 600))
def test_bytes_are_judged_as_by_decoding_them(pieces: Sequence[bytes], others: int) -> None:
    data = b"".join(pieces)
    for whole in (data, b"a" * others + data, data + b"a" * others):
        assert is_utf8(whole) == by_decoding(whole)


@pytest.mark.parametrize("character", ["é", "€", "🙂"])
@pytest.mark.parametrize("size", [0, 7, 8, 255, 256, 257, 4096, 100_000, 100_255])
def test_a_character_is_found_whole_and_cut_at_any_place(character: str, size: int) -> None:
    encoded = character.encode()
    for shift in range(9):
        before, behind = b"a" * (size + shift), b"b" * (MUCH - shift)
        assert is_utf8(before + encoded + behind)
        assert is_utf8(before + encoded)
        assert not is_utf8(before + encoded[:-1] + behind)
        assert not is_utf8(before + encoded[:-1])
        assert not is_utf8(before + encoded[1:] + behind)


def test_what_is_not_ascii_everywhere_is_judged_too() -> None:
    assert is_utf8("ж".encode() * 50_000)
    assert not is_utf8("ж".encode() * 50_000 + b"\xd0")
