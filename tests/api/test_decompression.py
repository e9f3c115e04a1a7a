"""Compressed bodies are undone in slices, none of which is large: the event loop waits for each."""

import struct

import pytest
import zstandard

from logd.api.content import decompress
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


@pytest.mark.parametrize("length", [1, 5, 63, 64, 65, 3000])
async def test_frames_of_zstd_may_end_anywhere(length: int) -> None:
    text = bytes(n * n % 251 for n in range(length))
    compressed = zstandard.ZstdCompressor().compress(text)
    for count in (1, 2, 50):
        data = compressed * count
        assert await decompress(data, "zstd", 1 << 30, Slices()) == text * count
        with pytest.raises(MalformedBody):
            await decompress(data[:-1], "zstd", 1 << 30, Slices())
