import struct
import zlib

import pytest
from format_samples import flipped, truncated, unhurried
from hypothesis import given
from hypothesis import strategies as st
from paged_values import PagedValue

from logd.format.pages import VERSION, encode_pages

MAGIC = b"TEST"
PIECES = st.lists(
    st.one_of(st.binary(max_size=80), st.binary(max_size=8).map(lambda some: some * 200)),
    max_size=4,
)
PAGES = st.lists(st.tuples(st.integers(0, 2**32 - 1), PIECES), max_size=5)


def read(value: bytes) -> tuple[bytes, list[tuple[int, bytes]]]:
    paged = PagedValue(MAGIC, value)
    pages = [paged.page(index) for index in range(len(paged))]
    return paged.head, list(zip(paged.keys.tolist(), pages, strict=True))


def small_value() -> bytes:
    pages = [[b"first page"], [b"second ", b"page", *[b"second page"] * 4]]
    return encode_pages(MAGIC, b"a head", [3, 9], pages)


@unhurried
@given(st.binary(max_size=40), PAGES)
def test_what_was_encoded_is_read(head: bytes, pages: list[tuple[int, list[bytes]]]) -> None:
    value = encode_pages(MAGIC, head, [key for key, _ in pages], [some for _, some in pages])
    assert read(value) == (head, [(key, b"".join(some)) for key, some in pages])
    paged = PagedValue(MAGIC, memoryview(value))
    raw = [b"".join(some) for _, some in pages]
    assert [paged.page(index) for index in range(len(paged))] == raw


def test_every_truncation_is_detected() -> None:
    for value in truncated(small_value()):
        with pytest.raises(ValueError, match="paged value"):
            read(value)


def test_every_flipped_byte_is_detected() -> None:
    for _, value in flipped(small_value()):
        with pytest.raises(ValueError, match="paged value"):
            read(value)


def test_bytes_behind_the_last_page_are_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        PagedValue(MAGIC, small_value() + b"\0")


def test_a_damaged_page_leaves_the_others_readable() -> None:
    value = bytearray(small_value())
    value[-1] ^= 1
    paged = PagedValue(MAGIC, bytes(value))
    assert paged.page(0) == b"first page"
    with pytest.raises(ValueError, match="page 1"):
        paged.page(1)


def test_a_value_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="header"):
        PagedValue(b"ELSE", small_value())


def of_version(version: int) -> bytes:
    """The small value, as another version would begin it: every checksum holds."""
    value = bytearray(small_value())
    struct.pack_into("<H", value, 4, version)
    checked = value[:16] + value[20 : 20 + 2 * 16 + 6]
    struct.pack_into("<I", value, 16, zlib.crc32(checked))
    return bytes(value)


@pytest.mark.parametrize("version", [0, 1, VERSION - 1, VERSION + 1, 65_535])
def test_a_value_of_another_version_is_refused(version: int) -> None:
    assert of_version(VERSION) == small_value()
    with pytest.raises(ValueError, match="header"):
        PagedValue(MAGIC, of_version(version))
