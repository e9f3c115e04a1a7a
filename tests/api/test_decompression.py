"""Compressed bodies are undone in slices, none of which is large: the event loop waits for each."""

import gzip
import struct

import pytest
import zstandard

from logd.api.content import Encoding, decompress
from logd.api.errors import MalformedBody

_MOST_BYTES = 2_400_000
_BLOCK_BYTES = 131_072
_RUN = 1 << 1
"""A block of this kind is one byte, and how often it comes."""


class Slices:
    """A body that notes what is held for it, slice by slice."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def read(self, max_bytes: int) -> bytes:
        raise AssertionError("it was read already")

    def hold(self, count: int) -> None:
        self.sizes.append(count)

    def hold_answer(self, size: int) -> None:
        raise AssertionError("it has no answer")


def runs(blocks: int) -> bytes:
    """A frame of blocks that are as small as they can be, of a window of 2 MiB."""
    frame = b"\x28\xb5\x2f\xfd\x00\x58"
    for block in range(blocks):
        is_last = block == blocks - 1
        frame += struct.pack("<I", _BLOCK_BYTES << 3 | _RUN | is_last)[:3] + b"x"
    return frame


async def test_no_slice_of_zstd_is_large() -> None:
    slices = Slices()
    plain = await decompress(runs(250), "zstd", 1 << 30, slices)
    assert plain == b"x" * (250 * _BLOCK_BYTES)
    assert sum(slices.sizes) == len(plain)
    assert max(slices.sizes) <= _MOST_BYTES


FOUR_BLOCKS = bytes.fromhex(
    "04c081000000000090ff6b100007020000000040feaf41001c080000000000f9bf060170200000000000e4ff1a"
)
"""Of deflate, each with two tables of its own, and nothing in it: as slow as it gets."""


async def test_no_slice_of_deflate_has_much_to_do() -> None:
    slices = Slices()
    data = FOUR_BLOCKS * 6000
    with pytest.raises(MalformedBody, match="too early"):  # none of them is the last
        await decompress(data, "deflate", 1 << 30, slices)
    assert len(slices.sizes) > len(data) / 10_000


@pytest.mark.parametrize("text", [b"", b"x"])
async def test_small_members_and_frames_share_a_slice(text: bytes) -> None:
    """What each of them yields would be a piece of its own, of millions."""
    compressed: dict[Encoding, bytes] = {
        "gzip": gzip.compress(text, mtime=0),
        "zstd": zstandard.ZstdCompressor().compress(text),
    }
    for encoding, one in compressed.items():
        slices = Slices()
        assert await decompress(one * 20_000, encoding, 1 << 30, slices) == text * 20_000
        assert len(slices.sizes) < len(one) * 20_000 / 500


async def test_no_slice_of_gzip_is_large() -> None:
    slices = Slices()
    members = [b"a" * 3_000_000, b"", b"b", b"c" * 300_000, b"d" * 10_000] * 2
    data = b"".join([gzip.compress(member) for member in members])
    assert await decompress(data, "gzip", 1 << 30, slices) == b"".join(members)
    assert max(slices.sizes) <= 262_144
    with pytest.raises(MalformedBody):
        await decompress(data[:-1], "gzip", 1 << 30, Slices())


@pytest.mark.parametrize("length", [1, 5, 63, 64, 65, 3000])
async def test_frames_of_zstd_may_end_anywhere(length: int) -> None:
    text = bytes(n * n % 251 for n in range(length))
    compressed = zstandard.ZstdCompressor().compress(text)
    for count in (1, 2, 50):
        data = compressed * count
        assert await decompress(data, "zstd", 1 << 30, Slices()) == text * count
        with pytest.raises(MalformedBody):
            await decompress(data[:-1], "zstd", 1 << 30, Slices())
