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

Head: uint32 each, sorted: the hashes (`word_hashes.py`) that two different words of this chunk
share. It is complete, found at the build by comparing bytes, never hashes alone. So for any other
hash *one* look at the text decides a whole posting list; for these the text is asked entry by
entry.
"""

import bisect
import struct
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.columns import from_planes, narrowest, to_planes
from logd.format.pages import PageDirectory, encode_pages
from logd.format.word_hashes import OneOfEach, hash_word, shared_hashes, words_in

MAGIC: Final = b"LVAR"
FREQUENT: Final = 256
_PAGE_HASHES: Final = 1024
_GROUP_HASHES: Final = 64 * _PAGE_HASHES  # are encoded at once
_SLICE_KEYS: Final = 1 << 16
_SEGMENT_WORDS: Final = 1 << 19  # more than common logs have in a chunk
_PAGE: Final = struct.Struct("<IIBBBB")

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]
UInt32s = npt.NDArray[np.uint32]
UInt16s = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.integer[Any]]

_NOTHING: Final = np.zeros(0, np.uint16)


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


class PostingsBuilder:
    """The index of words that come in any order. Memory is taken for `_SEGMENT_WORDS` at once; of
    earlier ones only what differs is kept."""

    def __init__(self) -> None:
        self._data: list[bytes] = []
        self._lengths: list[UInt16s] = []
        self._rows: list[UInt16s] = []
        self._waiting = 0
        self._shared: list[UInt32s] = []
        self._keys: list[UInt64s] = []
        self._distinct = OneOfEach()

    def add(self, data: bytes, lengths: Ints, rows: Ints) -> None:
        """Words in `data`, folded and one behind the other, word i of `lengths[i]` bytes in entry
        `rows[i]`; both less than 65,536."""
        if self._waiting and self._waiting + len(lengths) > _SEGMENT_WORDS:
            self._end_segment(is_last=False)
        self._data.append(data)
        self._lengths.append(lengths.astype(np.uint16))
        self._rows.append(rows.astype(np.uint16))
        self._waiting += len(lengths)

    def encode(self) -> bytes:
        """Once: nothing is left then."""
        is_only = not self._keys
        self._end_segment(is_last=is_only)
        if is_only:
            return _encode(self._shared[0], self._keys.pop())
        self._shared.append(shared_hashes(self._distinct.take()))
        keys = _sorted_set(_joined(self._keys))
        return _encode(np.unique(np.concatenate(self._shared)), keys)

    def _end_segment(self, *, is_last: bool) -> None:
        """What waits becomes shared hashes, keys and, unless it `is_last` of one, distinct words.
        What is not needed any more goes at once: it would be half of the peak."""
        words = words_in(self._data, np.concatenate([_NOTHING, *self._lengths]))
        self._data.clear()
        self._lengths.clear()
        self._shared.append(shared_hashes(words))
        if not is_last:
            self._distinct.add(words)
        keys = words.hashes.astype(np.uint64)
        del words
        keys <<= np.uint64(16)
        keys |= np.concatenate([_NOTHING, *self._rows])
        self._rows.clear()
        self._waiting = 0
        self._keys.append(_sorted_set(keys))


def encode_postings(data: bytes, lengths: Ints, rows: Ints) -> bytes:
    """The index of words as `PostingsBuilder.add` takes them."""
    index = PostingsBuilder()
    begin = 0
    for at in range(0, len(lengths), _SEGMENT_WORDS):
        some = slice(at, at + _SEGMENT_WORDS)
        end = begin + int(lengths[some].sum())
        index.add(data[begin:end], lengths[some], rows[some])
        begin = end
    return index.encode()


def _joined(keys: list[UInt64s]) -> UInt64s:
    """Empties the list on the way."""
    out = np.empty(sum(map(len, keys)), np.uint64)
    at = 0
    while keys:
        part = keys.pop()
        out[at : at + len(part)] = part
        at += len(part)
    return out


def _sorted_set(keys: UInt64s) -> UInt64s:
    """In the place of `keys`."""
    keys.sort()
    count = 0
    for some, is_first in _runs(keys, 0):
        found = keys[some][is_first]
        keys[count : count + len(found)] = found
        count += len(found)
    keys.resize(count, refcheck=False)  # nobody else has seen them
    return keys


def _runs(keys: UInt64s, shift: int) -> Iterator[tuple[slice, npt.NDArray[np.bool_]]]:
    """Slices of the keys, and whether each, shifted, is another than the one before it."""
    last = None
    for at in range(0, len(keys), _SLICE_KEYS):
        some = slice(at, at + _SLICE_KEYS)
        values = keys[some] >> np.uint64(shift)
        is_first = np.ones(len(values), np.bool_)
        np.not_equal(values[1:], values[:-1], out=is_first[1:])
        is_first[0] = last is None or values[0] != last
        last = values[-1]
        yield some, is_first


def _encode(shared: UInt32s, keys: UInt64s) -> bytes:
    """`keys`: hash << 16 | entry, sorted, each once."""
    found = [np.flatnonzero(is_first) + some.start for some, is_first in _runs(keys, 16)]
    heads = np.concatenate([_NOTHING.astype(np.int64), *found])
    del found
    pages = []
    for begin in range(0, len(heads), _GROUP_HASHES):
        mine = heads[begin : begin + _GROUP_HASHES]
        end = begin + len(mine)
        low, high = int(mine[0]), int(heads[end]) if end < len(heads) else len(keys)
        counts = np.diff(mine, append=high)
        stored = np.repeat(counts < FREQUENT, counts)
        stored[mine - low] = True
        entries = (keys[low:high][stored] & np.uint64(0xFFFF)).astype(np.int32)
        pages += _encode_pages(_hashes(keys[mine]), counts, entries)
    first_hashes = _hashes(keys[heads[::_PAGE_HASHES]]).tolist()
    return encode_pages(MAGIC, shared.tobytes(), first_hashes, pages)


def _hashes(keys: UInt64s) -> UInt32s:
    return (keys >> np.uint64(16)).astype(np.uint32)


def _encode_pages(hashes: UInt32s, counts: Int64s, entries: Int32s) -> list[bytes]:
    """`counts`: the length of each hash's posting list; `entries`: what is stored of them."""
    gaps = np.diff(hashes, prepend=hashes[:1])
    gaps[::_PAGE_HASHES] = 0
    kept = np.where(counts < FREQUENT, counts, 1)
    heads = np.cumsum(kept) - kept
    steps = np.diff(entries, prepend=0)
    steps[heads] = entries[heads]
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


class _Planes:
    """The planes of a whole column, from which pages are cut."""

    def __init__(self, values: npt.NDArray[np.integer[Any]]) -> None:
        count = len(values)
        raw = to_planes(values.astype(np.uint32))
        self.width = len(raw) // count if count else 1
        self._planes = [raw[k * count : (k + 1) * count] for k in range(self.width)]

    def cut(self, begin: int, end: int) -> bytes:
        return b"".join([plane[begin:end] for plane in self._planes])


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
    gaps = from_planes(page[at : at + n * gap_width], n, narrowest(gap_width))
    hashes = np.cumsum(gaps, dtype=np.uint32)
    position = int(hashes.searchsorted(np.uint32(wanted - key)))
    if position == n or hashes[position] != wanted - key:
        return None
    at += n * gap_width
    counts = from_planes(page[at : at + n * count_width], n, narrowest(count_width))
    at += n * count_width
    before, count = counts[:position], counts.item(position) + 1
    begin = position + int(np.add.reduce(before[before < FREQUENT - 1], dtype=np.int64))
    stored = count if count < FREQUENT else 1
    planes = page[at : at + m * step_width]
    if stored == 1:  # a byte of each plane
        return np.array([int.from_bytes(planes[begin::m], "little")], np.int64), count
    steps = from_planes(planes, m, narrowest(step_width))
    return np.cumsum(steps[begin : begin + stored], dtype=np.int64), count
