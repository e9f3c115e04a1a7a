"""Where bytes of one kind stand in a text, and how many: of all bytes at once, a bit a byte.

Sixteen bytes of a text seldom hold two separators. So the bits are looked through sixteen at a
time, which is much quicker than one by one, and counted 64 at a time.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Ints = npt.NDArray[np.integer[Any]]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

_BELOW: Final = np.array([(1 << bit) - 1 for bit in range(64)], np.uint64)
_SLICE: Final = 1 << 16  # what is computed on the way stays in the cache


def marks_of(text: Bytes, byte: int) -> Words:
    """uint64[text // 64 + 1]: a bit for each byte of the text, lowest first, set where it is that
    byte, and at least one bit beyond them."""
    words = np.zeros(len(text) // 64 + 1, "<u8")
    octets = words.view(np.uint8)
    for at in range(0, len(text), _SLICE):
        some = np.packbits(text[at : at + _SLICE] == byte, bitorder="little")
        octets[at // 8 : at // 8 + len(some)] = some
    return words


def places_of(marks: Words) -> Int64s:
    """Where the bits are set, ascending; quick where few of them are."""
    words = marks.view("<u2")
    at: Int64s = (words != 0).nonzero()[0]
    bits = words.take(at)
    below = bits - np.uint16(1)
    if np.any(bits & below):  # two bits in one word
        return np.flatnonzero(np.unpackbits(marks.view(np.uint8), bitorder="little"))
    at *= 16
    at += np.bitwise_count(below)
    return at


def counts_between(marks: Words, edges: Ints) -> Int64s:
    """int64[edges - 1]: how many bits are set from each of the ascending edges to the next."""
    before = np.zeros(len(marks) + 1, np.int32)  # narrow: little memory for a first look
    np.cumsum(np.bitwise_count(marks), dtype=np.int32, out=before[1:])
    word = edges >> 6
    inside = marks.take(word)
    inside &= _BELOW.take(edges & 63)
    up_to_edge = before.take(word)
    up_to_edge += np.bitwise_count(inside)
    return np.diff(up_to_edge).astype(np.int64)
