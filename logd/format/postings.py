"""The variable index of a chunk: hashes of words -> the entries whose message holds the word.

A paged value (`pages.py`), magic "LVAR". Every variable word of the chunk's messages, folded, is
hashed to 24 bits. Page key: its first hash. Page, raw:

    4    hashes in the page: n
    4    postings in the page: m
    1    plane widths, a byte each: of the hash gaps, the counts, the entry gaps
    1
    1
    1    reserved, 0
    ...  hash gaps, planes, n items: the first hash of the page less its key (0), then differences
    ...  lengths of the posting lists less 1, planes, n items
    ...  entries, planes, m items: of each list the first as it is, then differences

Of a list of FREQUENT or more entries only the first is stored, and its length: a number that often
comes (a status code, an octet of an address) would take more room here than in the messages, which
are quickly searched for it.

Head: uint32 each, sorted: the hashes that two different words of this chunk share. It is complete,
found at the build by comparing bytes, never hashes alone. So for any other hash *one* look at the
text decides a whole posting list; for these the text is asked entry by entry.
"""

import bisect
import struct
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.columns import from_planes, to_planes
from logd.format.pages import PageDirectory, encode_pages

MAGIC: Final = b"LVAR"
HASH_BITS: Final = 24
FREQUENT: Final = 256
_PAGE_HASHES: Final = 1024
_SLOT_BITS: Final = 18  # of the tables that find shared hashes: they fit the cache
_PAGE: Final = struct.Struct("<IIBBBB")

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]
UInt32s = npt.NDArray[np.uint32]

_MASKS: Final = np.array([(1 << (8 * k)) - 1 for k in range(8)] + [2**64 - 1], np.uint64)
_MIX_1: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_2: Final = np.uint64(0xD6E8FEB86659FD93)
_SLICE: Final = 65_536
_PADDING: Final = bytes(8)


class Postings(msgspec.Struct, frozen=True):
    """`count` entries hold the hash. `rows`: int64[k], ascending: all of them, or the first where
    it is a frequent one. `certain`: no two words of the chunk share the hash, so one text decides
    for all."""

    rows: Int64s
    count: int
    certain: bool

    @property
    def is_whole(self) -> bool:
        return len(self.rows) == self.count


class _Words(NamedTuple):
    """Word i is the `lengths[i]` bytes, at least one, from `starts[i]` on. `eight`: at each place
    the eight bytes from there on; `heads`: uint64[n], the first eight of each word, zeros behind
    its end."""

    eight: UInt64s
    heads: UInt64s
    starts: Int64s
    lengths: Int64s


def _words_of(data: bytes, starts: Int64s, lengths: Int64s) -> _Words:
    eight = _eight_bytes(data)
    heads = eight.take(starts) & _MASKS.take(np.minimum(lengths, 8))
    return _Words(eight, heads, starts, lengths)


def hash_words(data: bytes, starts: Int64s, lengths: Int64s) -> UInt64s:
    """uint64[n] of the words data[start:start + length], each at least 1 byte.

    Eight bytes at a time, multiply and fold: quick and well mixed, not secret; nothing relies on
    its values differing.
    """
    return _hash(_words_of(data, starts, lengths))


def _hash(words: _Words) -> UInt64s:
    eight, heads, starts, lengths = words
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


def _eight_bytes(data: bytes) -> UInt64s:
    """View: item i holds the bytes data[i:i + 8], zero behind the end."""
    padded = data + _PADDING
    return np.ndarray((len(data) + 1,), "<u8", padded, 0, (1,))


@lru_cache(maxsize=256)
def hash_word(word: bytes) -> int:
    """The 24-bit hash of one folded word."""
    full = hash_words(word, np.zeros(1, np.int64), np.array([len(word)], np.int64))
    return int(full[0] >> np.uint64(64 - HASH_BITS))


def encode_postings(data: bytes, lengths: Int64s, rows: Int64s) -> bytes:
    """The index of the words in `data`, folded and one behind the other, word i of `lengths[i]`
    bytes in entry `rows[i]` (< 65,536)."""
    words = _words_of(data, np.cumsum(lengths) - lengths, lengths)
    full = _hash(words)
    full >>= np.uint64(64 - HASH_BITS)
    hashes = full.astype(np.uint32)
    del full
    shared = _shared_hashes(data, words, hashes)
    del words  # what is not needed any more would be half of the peak
    keys = hashes.astype(np.uint64)
    keys <<= np.uint64(16)
    keys |= rows.astype(np.uint64)
    del hashes
    keys.sort()
    keys = keys[_first_of_runs(keys)]
    listed = (keys >> np.uint64(16)).astype(np.uint32)
    unique_at = np.flatnonzero(_first_of_runs(listed))
    entries = (keys & np.uint64(0xFFFF)).astype(np.int32)
    del keys
    pages = _encode_pages(listed[unique_at], unique_at, entries)
    first_hashes = listed[unique_at[::_PAGE_HASHES]].tolist()
    return encode_pages(MAGIC, shared.tobytes(), first_hashes, pages)


def _first_of_runs(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first


def _encode_pages(hashes: UInt32s, heads: Int64s, entries: Int32s) -> list[bytes]:
    """`heads`: where each hash's posting list begins in `entries`."""
    gaps = np.diff(hashes, prepend=hashes[:1])
    gaps[::_PAGE_HASHES] = 0
    counts = np.diff(heads, append=len(entries))
    steps = np.diff(entries, prepend=0)
    steps[heads] = entries[heads]
    stored = np.repeat(counts < FREQUENT, counts)
    stored[heads] = True
    steps = steps[stored]
    kept = _stored_lengths(counts)
    heads = np.cumsum(kept) - kept
    columns = [_Planes(gaps), _Planes(counts - 1), _Planes(steps)]
    widths = [column.width for column in columns]
    pages = []
    for begin in range(0, len(hashes), _PAGE_HASHES):
        end = min(begin + _PAGE_HASHES, len(hashes))
        low = int(heads[begin])
        high = int(heads[end]) if end < len(heads) else len(steps)
        header = _PAGE.pack(end - begin, high - low, *widths, 0)
        spans = ((begin, end), (begin, end), (low, high))
        parts = [c.cut(*span) for c, span in zip(columns, spans, strict=True)]
        pages.append(b"".join([header, *parts]))
    return pages


def _stored_lengths(counts: Int64s) -> Int64s:
    return np.where(counts < FREQUENT, counts, 1)


class _Planes:
    """The planes of a whole column, from which pages are cut."""

    def __init__(self, values: npt.NDArray[np.integer[Any]]) -> None:
        count = len(values)
        raw = to_planes(values.astype(np.uint32))
        self.width = len(raw) // count if count else 1
        self._planes = [raw[k * count : (k + 1) * count] for k in range(self.width)]

    def cut(self, begin: int, end: int) -> bytes:
        return b"".join([plane[begin:end] for plane in self._planes])


def _shared_hashes(data: bytes, words: _Words, hashes: UInt32s) -> UInt32s:
    """The hashes that two different words share, sorted; exact.

    Rounds: every word is entered in a table by bits of its hash, the last one of a slot stands for
    it, and each word is compared with its stand-in byte by byte. Equal words are done with. Of
    different ones, those of one hash are found; the others (same slot, other hash) go to the next
    round, which takes other bits.
    """
    left = np.arange(len(hashes), dtype=np.int32)
    table = np.empty(1 << _SLOT_BITS, np.int32)  # only slots just written are read
    found: list[UInt32s] = []
    for shift in (HASH_BITS - _SLOT_BITS, 0):
        slots = (hashes.take(left) >> np.uint32(shift)) & np.uint32((1 << _SLOT_BITS) - 1)
        table[slots] = left
        other = table.take(slots)
        differ = _differing(words, left, other)
        left, other = left.take(differ), other.take(differ)
        same_hash = hashes.take(left) == hashes.take(other)
        found.append(hashes[left[same_hash]])
        left = left[~same_hash]
    found.append(_shared_by_list(data, words, hashes, left))
    return np.unique(np.concatenate(found)).astype("<u4")


def _differing(words: _Words, left: Int32s, other: Int32s) -> Int64s:
    """Where word left[i] is not word other[i]. In slices: comparing takes 30 bytes a word."""
    found = [np.zeros(0, np.int64)]
    for start in range(0, len(left), _SLICE):
        some = slice(start, start + _SLICE)
        equal = _equal(words, left[some], other[some])
        found.append(np.flatnonzero(~equal) + start)
    return np.concatenate(found)


def _shared_by_list(data: bytes, words: _Words, hashes: UInt32s, left: Int32s) -> UInt32s:
    """The same for the few words that no round settled, one by one."""
    seen: dict[int, bytes] = {}
    shared = set()
    columns = (hashes, words.starts, words.lengths)
    for value, start, length in zip(*[column[left].tolist() for column in columns], strict=True):
        word = data[start : start + length]
        if seen.setdefault(value, word) != word:
            shared.add(value)
    return np.array(sorted(shared), np.uint32)


def _equal(words: _Words, left: Int32s, other: Int32s) -> npt.NDArray[np.bool_]:
    """bool[n]: word left[i] equals word other[i]. A word holds no zero byte, so words of up to
    eight bytes are equal where their heads are."""
    eight, heads, starts, lengths = words
    equal: npt.NDArray[np.bool_] = heads.take(left) == heads.take(other)
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


class PostingsDirectory:
    """What a look-up needs of every page; it does not hold on to the value. Raises ValueError where
    it is damaged."""

    def __init__(self, value: bytes | memoryview) -> None:
        self._pages = PageDirectory(MAGIC, value)
        self._first_hashes: list[int] = self._pages.keys.tolist()
        self.shared = frozenset(np.frombuffer(self._pages.head, "<u4").tolist())

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about."""
        return self._pages.size_bytes + 40 * len(self._first_hashes) + 80 * len(self.shared)

    def find(self, value: bytes | memoryview, wanted: int) -> tuple[Int64s, int] | None:
        """(stored entries, how many there are) of a hash, None where the chunk lacks it. `value`:
        the one that this is the directory of."""
        index = bisect.bisect_right(self._first_hashes, wanted) - 1
        if index < 0:
            return None
        return _find_in_page(self._pages.page(value, index), self._first_hashes[index], wanted)


class PostingsIndex:
    """Look-ups in an encoded variable index. Raises ValueError where it is damaged."""

    def __init__(
        self,
        value: bytes | memoryview,
        directory: PostingsDirectory | None = None,
    ) -> None:
        """`directory`: that of the value, where it is known already."""
        self.directory = directory or PostingsDirectory(value)
        self._value = value

    def find(self, word: bytes) -> Postings | None:
        """The postings of a folded word's hash, None where the chunk lacks it."""
        wanted = hash_word(word)
        found = self.directory.find(self._value, wanted)
        if found is None:
            return None
        rows, count = found
        return Postings(rows, count, certain=wanted not in self.directory.shared)


def _find_in_page(page: bytes, key: int, wanted: int) -> tuple[Int64s, int] | None:
    """(stored entries, how many there are) of a hash."""
    n, m, gap_width, count_width, step_width, _ = _PAGE.unpack_from(page)
    at = _PAGE.size
    hashes = np.cumsum(from_planes(page[at : at + n * gap_width], n, np.uint32))
    position = int(np.searchsorted(hashes, wanted - key))
    if position == n or hashes[position] != wanted - key:
        return None
    at += n * gap_width
    counts = from_planes(page[at : at + n * count_width], n, np.uint32)
    at += n * count_width
    steps = from_planes(page[at : at + m * step_width], m, np.uint32)
    lengths = counts[: position + 1].astype(np.int64) + 1
    stored = _stored_lengths(lengths)
    begin = int(stored[:-1].sum())
    rows = np.cumsum(steps[begin : begin + int(stored[-1])].astype(np.int64))
    return rows, int(lengths[-1])
