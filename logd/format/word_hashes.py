"""Words by the hundred thousand: their hashes, and which of those two different words share.

The function is part of the index's format, see `postings.py`.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from logd.format.ascending import distinct

HASH_BITS: Final = 24

UInt64s = npt.NDArray[np.uint64]
UInt32s = npt.NDArray[np.uint32]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt16s = npt.NDArray[np.uint16]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.integer[Any]]

_MASKS: Final = np.array([(1 << (8 * k)) - 1 for k in range(8)] + [2**64 - 1], np.uint64)
_MIX_1: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_2: Final = np.uint64(0xD6E8FEB86659FD93)
_MAX_SLOT_BITS: Final = 18  # of the tables that find shared hashes: they fit the cache
_SLICE: Final = 16_384  # words: what is computed on the way stays in the cache
_PADDING: Final = bytes(8)


class Words(NamedTuple):
    """Word i is the `lengths[i]` bytes of `data`, at least one, from `starts[i]` on. `data` ends
    with eight zero bytes. `heads`: the first eight bytes of each, zeros behind its end."""

    data: bytes
    starts: Int32s
    lengths: UInt16s
    heads: UInt64s
    hashes: UInt32s

    @property
    def eight(self) -> UInt64s:
        return _eight_bytes(self.data)


def words_in(pieces: Sequence[bytes], lengths: UInt16s) -> Words:
    """The words in the pieces, one behind the other."""
    starts = np.cumsum(lengths, dtype=np.int32)
    starts -= lengths
    return _hashed(b"".join([*pieces, _PADDING]), starts, lengths)


def _hashed(data: bytes, starts: Int32s, lengths: UInt16s) -> Words:
    eight = _eight_bytes(data)
    heads = np.empty(len(starts), np.uint64)
    hashes = np.empty(len(starts), np.uint32)
    for some in _slices(len(starts)):
        heads[some] = _heads(eight, starts[some], lengths[some])
        full = _hash(eight, heads[some], starts[some], lengths[some])
        hashes[some] = full >> np.uint64(64 - HASH_BITS)
    return Words(data, starts, lengths, heads, hashes)


class OneOfEach:
    """Of ever more words, one for each hash of those that were added together."""

    def __init__(self) -> None:
        self._data: list[bytes] = []
        self._starts: list[Int32s] = []
        self._lengths: list[UInt16s] = []
        self._bytes = 0

    def add(self, words: Words) -> None:
        _, some = np.unique(words.hashes, return_index=True)
        self._data.append(words.data)
        self._starts.append(words.starts.take(some) + np.int32(self._bytes))
        self._lengths.append(words.lengths.take(some))
        self._bytes += len(words.data)

    def take(self) -> Words:
        """All that were kept. Nothing is left."""
        data = b"".join(self._data)
        self._data.clear()
        starts = np.concatenate(self._starts)
        self._starts.clear()
        lengths = np.concatenate(self._lengths)
        self._lengths.clear()
        return _hashed(data, starts, lengths)


def hash_words(data: bytes, starts: Ints, lengths: Ints) -> UInt64s:
    """uint64[n] of the words data[start:start + length], each at least 1 byte.

    Eight bytes at a time, multiply and fold: quick and well mixed, not secret; nothing relies on
    its values differing.
    """
    eight = _eight_bytes(data + _PADDING)
    return _hash(eight, _heads(eight, starts, lengths), starts, lengths)


@lru_cache(maxsize=256)
def hash_word(word: bytes) -> int:
    """The 24-bit hash of one folded word."""
    full = hash_words(word, np.zeros(1, np.int64), np.array([len(word)], np.int64))
    return int(full[0] >> np.uint64(64 - HASH_BITS))


def _eight_bytes(padded: bytes) -> UInt64s:
    """View: item i holds the bytes padded[i:i + 8]."""
    return np.ndarray((len(padded) - 7,), "<u8", padded, 0, (1,))


def _heads(eight: UInt64s, starts: Ints, lengths: Ints) -> UInt64s:
    heads: UInt64s = eight[starts]  # `take` would first copy all of it, eightfold
    heads &= _MASKS.take(np.minimum(lengths, 8))
    return heads


def _hash(eight: UInt64s, heads: UInt64s, starts: Ints, lengths: Ints) -> UInt64s:
    out = heads * _MIX_1
    out ^= out >> np.uint64(32)
    done = 8
    longer = np.flatnonzero(lengths > done)
    while len(longer):
        left = np.minimum(lengths[longer] - done, 8)
        part = eight[starts[longer] + done] & _MASKS[left]
        mixed = (out[longer] ^ part) * _MIX_2
        out[longer] = mixed ^ (mixed >> np.uint64(29))
        done += 8
        longer = longer[lengths[longer] > done]
    out *= _MIX_2
    out ^= out >> np.uint64(32)
    out *= _MIX_1
    return out


def _slices(count: int) -> Iterator[slice]:
    """Never an empty one."""
    return (slice(at, min(at + _SLICE, count)) for at in range(0, count, _SLICE))


def shared_hashes(words: Words) -> UInt32s:
    """The hashes that two different words share, sorted; exact.

    Every word is entered in a table by bits of its hash, the last one of a slot stands for it, and
    each word is compared with its stand-in byte by byte. Equal words are done with, and so are
    different ones of one hash. The rest, all words of hashes that lost their slot to another, is
    put in order, and neighbours are compared.
    """
    # Of few words, few lose their slot in a small table too.
    bits = min(len(words.hashes).bit_length() + 1, _MAX_SLOT_BITS)
    table = np.empty(1 << bits, np.int32)  # only slots just written are read
    for some in _slices(len(words.hashes)):
        table[_slots(words.hashes[some], bits)] = np.arange(some.start, some.stop, dtype=np.int32)
    found, rest = [words.hashes[:0]], [table[:0]]
    for some in _slices(len(words.hashes)):
        mine = np.arange(some.start, some.stop, dtype=np.int32)
        shared, differ = _compare(words, mine, table.take(_slots(words.hashes[some], bits)))
        found.append(shared)
        rest.append(mine[differ])
    left = np.concatenate(rest)
    del rest
    left = left.take(np.argsort(words.hashes.take(left)))
    found += [_compare(words, left[some], left[1:][some])[0] for some in _slices(len(left) - 1)]
    return distinct(np.concatenate(found)).astype("<u4", copy=False)


def _slots(hashes: UInt32s, bits: int) -> UInt32s:
    return hashes >> np.uint32(HASH_BITS - bits)


def _compare(words: Words, left: Int32s, other: Int32s) -> tuple[UInt32s, Int64s]:
    """(the hashes of those pairs that differ and share it, which pairs differ in their hashes)."""
    differ = np.flatnonzero(~_equal(words, left, other))
    hashes = words.hashes.take(left.take(differ))
    same_hash = hashes == words.hashes.take(other.take(differ))
    return hashes[same_hash], differ[~same_hash]


def _equal(words: Words, left: Int32s, other: Int32s) -> Bools:
    """bool[n]: word left[i] equals word other[i]. A word holds no zero byte, so words of up to
    eight bytes are equal where their heads are."""
    eight, heads, starts, lengths = words.eight, words.heads, words.starts, words.lengths
    equal: Bools = heads.take(left) == heads.take(other)
    size = lengths.take(left)
    longer = np.flatnonzero(equal & (size >= 8))
    equal[longer] = size[longer] == lengths[other[longer]]
    done = 8
    longer = longer[equal[longer] & (size[longer] > done)]
    while len(longer):
        masks = _MASKS[np.minimum(size[longer] - done, 8)]
        ours = eight[starts[left[longer]] + done] & masks
        theirs = eight[starts[other[longer]] + done] & masks
        equal[longer] = ours == theirs
        done += 8
        longer = longer[equal[longer] & (size[longer] > done)]
    return equal
