"""Where bytes of one kind stand in a text, and how many: of all bytes at once, a bit a byte.

Eight bytes of a text seldom hold two separators. So the bits are looked through by the byte, which
is much quicker than by the bit, and bits are counted 64 at a time.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Ints = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]

_BIT_OF: Final = np.array([byte.bit_length() - 1 for byte in range(256)], np.int64)
_BELOW: Final = np.array([(1 << bit) - 1 for bit in range(64)], np.uint64)
_SHORT: Final = 65_536


def places_of(flags: Bools) -> Int64s:
    """Where the flags are set, ascending; quick where few of many are."""
    if len(flags) < _SHORT:
        return np.flatnonzero(flags)
    octets = np.packbits(flags, bitorder="little")
    at = (octets != 0).nonzero()[0]
    bits = octets.take(at)
    if np.any(bits & (bits - np.uint8(1))):  # two flags in one octet
        return np.flatnonzero(flags)
    at *= 8
    at += _BIT_OF.take(bits)
    return at


def counts_between(flags: Bools, edges: Ints) -> Int64s:
    """int64[edges - 1]: how many flags are set from each of the ascending edges to the next."""
    octets = np.packbits(flags, bitorder="little")
    words = np.zeros(len(octets) // 8 + 1, "<u8")  # an edge may stand at the very end
    words.view(np.uint8)[: len(octets)] = octets
    ends = np.cumsum(np.bitwise_count(words), dtype=np.int64)
    word, bit = edges >> 6, edges & 63
    inside = words.take(word)
    from_edge = np.bitwise_count(inside & ~_BELOW.take(bit))
    return np.diff(ends.take(word) - from_edge)
