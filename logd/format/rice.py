"""Numbers of like size, many of them small, in little more bits than they carry: Rice coding.

A number of b low bits is stored in two parts, both with the first bit of a byte in its lowest:

    low bits    b bits a number, then zeros up to the next byte
    the rest    of each number, divided by 2^b: so many zeros, and a one; then zeros up to a byte

R. F. Rice, "Some Practical Universal Noiseless Coding Techniques", JPL 79-22, 1979. For differences
of what lies about at random it is within a few hundredths of a bit of the best, where whole bytes
lose most of one.
"""

import itertools
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from logd.format.columns import narrowest

MOST_LOW_BITS: Final = 56
"""With those before them in their first byte, no more than eight bytes hold."""

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.integer[Any]]


def best_low_bits(numbers: Ints) -> int:
    """How many low bits take the least room; 0 where there is no number. Of numbers from 0 to
    2^MOST_LOW_BITS - 1."""
    if not len(numbers):
        return 0
    about = max(1, int(numbers.sum()) // len(numbers)).bit_length()
    # fewer than these do not take less, as the mean shows, nor do more
    return min(range(max(0, about - 2), about + 1), key=lambda bits: _bits(numbers, bits))


def _bits(numbers: Ints, low_bits: int) -> int:
    return len(numbers) * (low_bits + 1) + int((numbers >> low_bits).sum())


class RiceLists:
    """Many lists of numbers, coded with the same number of low bits."""

    def __init__(self, numbers: Int64s, counts: Int64s, low_bits: int) -> None:
        """`counts`: how long each list is; the lists lie one behind the other."""
        edges = _edges(counts)
        self._low, self._low_edges = _bytes_of(_lowest_bits(numbers, low_bits), edges * low_bits)
        ends = np.cumsum((numbers >> low_bits) + 1)
        bit_edges = np.concatenate([np.zeros(1, np.int64), ends])[edges]
        unary = np.zeros(int(bit_edges[-1]), np.uint8)
        unary[ends - 1] = 1
        self._rest, self._rest_edges = _bytes_of(unary, bit_edges)

    def of_list(self, index: int) -> list[bytes]:
        """Low bits and the rest."""
        low, rest = self._low_edges[index : index + 2], self._rest_edges[index : index + 2]
        return [self._low[low[0] : low[1]], self._rest[rest[0] : rest[1]]]


def _edges(counts: Int64s) -> Int64s:
    edges = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=edges[1:])
    return edges


def _lowest_bits(numbers: Int64s, low_bits: int) -> Bytes:
    """Bit by bit, which is quicker than to take eight of each number."""
    narrow = numbers.astype(narrowest((low_bits + 7) // 8))
    bits = np.empty((len(numbers), low_bits), np.uint8)
    for bit in range(low_bits):
        np.bitwise_and(narrow >> bit, 1, out=bits[:, bit], casting="unsafe")
    return bits.ravel()


def _bytes_of(bits: Bytes, edges: Int64s) -> tuple[bytes, list[int]]:
    """Of the bits between edges bytes of their own, and the edges of these."""
    byte_edges = _edges((np.diff(edges) + 7) // 8).tolist()
    aligned = np.zeros(8 * byte_edges[-1], np.uint8)
    for (begin, end), at in zip(itertools.pairwise(edges.tolist()), byte_edges, strict=False):
        aligned[8 * at : 8 * at + end - begin] = bits[begin:end]
    return np.packbits(aligned, bitorder="little").tobytes(), byte_edges


def rice_sums(raw: bytes, count: int, low_bits: int) -> Int64s:
    """int64[count]: what a list of so many numbers adds up to, with each of them. Raises ValueError
    where the bytes are not those of so many."""
    low_bytes = (count * low_bits + 7) // 8
    if low_bits > MOST_LOW_BITS or low_bytes > len(raw):
        raise ValueError(f"Rice coding: {len(raw)} bytes for {count} numbers of {low_bits} bits")
    unary = np.unpackbits(np.frombuffer(raw, np.uint8, offset=low_bytes), bitorder="little")
    ends = np.flatnonzero(unary.view(np.bool_))
    if len(ends) != count:
        raise ValueError(f"Rice coding: {len(ends)} numbers where {count} were announced")
    order = np.arange(count)
    sums: Int64s = (ends - order) << low_bits  # zeros before an end: all that the rests add up to
    if low_bits:
        sums += np.cumsum(_low_numbers(raw, order * low_bits, low_bits))
    return sums


def _low_numbers(raw: bytes, begins: Int64s, low_bits: int) -> Int64s:
    """From the eight bytes where each begins, of which there are enough behind the last, too."""
    padded = raw + bytes(8)
    eight: Int64s = np.ndarray(len(raw), "<i8", padded, strides=(1,))
    return eight.take(begins >> 3) >> (begins & 7) & ((1 << low_bits) - 1)
