"""The lengths of a block's variables, in slot order.

Most are short, and the lengths of one slot differ little. Of each length, less 1:

    pairs   the lowest four bits, two lengths a byte, that of the first in the byte's lowest bits
            (a symbol of zstd's takes a bit at least: this way it stands for two lengths)
    planes  what is above, of each length; absent where it is 0 for all
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from logd.format.columns import from_planes, narrowest, to_planes
from logd.format.running_sums import STRETCH, sums_before

_LOW_BITS: Final = 4
_LOW: Final = 15

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Codes = npt.NDArray[np.integer[Any]]
UInts = npt.NDArray[np.unsignedinteger[Any]]


def encode_lengths(lengths: Int32s, edges: Sequence[int]) -> list[bytes]:
    """Pieces that differ in their bytes. `lengths`: at least 1 each; `edges`: where among them such
    of another kind begin, 0 and their number among these."""
    if not len(lengths):
        return []
    less = (lengths - 1).astype(np.uint32)
    low = np.zeros(len(less) + len(less) % 2, np.uint8)
    low[: len(less)] = less & np.uint32(_LOW)
    pairs = (low[0::2] | (low[1::2] << np.uint8(_LOW_BITS))).tobytes()
    at = [edge // 2 for edge in edges[:-1]] + [len(pairs)]
    high = less >> np.uint32(_LOW_BITS)
    planes = to_planes(high) if high.any() else []
    return [*[pairs[begin:end] for begin, end in pairwise(at)], *planes]


def decode_lengths(raw: bytes, count: int) -> UInts:
    """uint[count], as narrow as they are. Raises ValueError where the bytes are not those of so
    many lengths."""
    size = (count + 1) // 2
    pairs = np.frombuffer(raw, np.uint8, size) if len(raw) >= size else None
    if pairs is None:
        raise ValueError(f"{len(raw)} bytes for {count} lengths")
    low = np.empty((size, 2), np.uint8)
    np.bitwise_and(pairs, np.uint8(_LOW), out=low[:, 0])
    np.right_shift(pairs, np.uint8(_LOW_BITS), out=low[:, 1])
    out: UInts = low.reshape(-1)[:count]
    planes = raw[size:]
    if planes:
        width = max(1, len(planes) // max(count, 1))
        high = from_planes(planes, count, narrowest(min(width + 1, 8)))
        out = (high << high.dtype.type(_LOW_BITS)) | out
    out += out.dtype.type(1)
    return out


class Lengths:
    """Of the variables of a block the lengths, in slot order."""

    def __init__(self, items: Codes) -> None:
        self.items = items

    @cached_property
    def before(self) -> list[int]:
        """What they add up to before each stretch of them, and in the end: where one variable
        begins takes the sum of one stretch."""
        return sums_before(self.items)

    def holding(self, offset: int) -> tuple[int, int, int]:
        """(which, where it begins, length) of the variable that holds this byte of all; there is
        one."""
        stretch = bisect_right(self.before, offset) - 1
        begin = stretch * STRETCH
        some = self.items[begin : begin + STRETCH]
        ends = np.cumsum(some, dtype=np.int64)
        at = int(ends.searchsorted(offset - self.before[stretch], side="right"))
        length = some.item(at)
        return begin + at, self.before[stretch] + ends.item(at) - length, length

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about, with the sums."""
        return self.items.nbytes + 200 + 40 * (len(self.items) // STRETCH)


def starts_of(lengths: Codes, places: Int64s) -> Int64s:
    """Where the variables at ascending places, each once, begin in the data."""
    if not len(places) or not places[-1]:
        return np.zeros(len(places), np.int64)
    begins = np.zeros(len(places), np.int64)
    begins[1:] = places[:-1]
    sums = np.add.reduceat(lengths[: int(places[-1])], begins, dtype=np.uint32).astype(np.int64)
    if not places[0]:
        sums[0] = 0  # nothing lies before it; `reduceat` gives an item
    return np.cumsum(sums)
