"""The variable index of a chunk: hashes of words -> where the entries are whose message holds it.

A paged value (`pages.py`), magic "LVAR". Every variable word of the chunk's messages, folded, is
hashed to 24 bits. Page key: its first hash. Page, raw:

    4    hashes in the page: n
    4    blocks in the page: k
    4    rows in the page: m
    1    plane widths, a byte each: of the hash gaps, the counts, the block gaps, the row gaps
    1
    1
    1
    ...  hash gaps, planes, n items: the first hash of the page less its key (0), then differences
    ...  counts, planes, n items: how many entries hold the hash, less 1
    ...  blocks, planes, k items: of each list the first as it is, then differences
    ...  rows, planes, m items: likewise

How much is stored of where the entries are depends on how many there are:

    up to RARE       the block of each entry: a word that stands in one or two entries of the chunk,
                     as most do, would take more room as rows than in the messages, and to look
                     through a block is little more work than to read the entry's text
    below FREQUENT   the row of each
    FREQUENT or more the first row: a number that often comes (a status code, an octet of an
                     address) is quickly searched for in the messages

Head: uint32 each, sorted: the hashes (`word_hashes.py`) that two different words of this chunk
share. It is complete, found at the build by comparing bytes, never hashes alone. So for any other
hash *one* look at the text decides a whole posting list; for these the text is asked entry by
entry.
"""

import bisect
import itertools
import struct
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.ascending import steps_in_lists
from logd.format.columns import from_planes, narrowest, to_planes
from logd.format.pages import PageDirectory, encode_pages
from logd.format.word_hashes import OneOfEach, hash_word, shared_hashes, words_in

MAGIC: Final = b"LVAR"
RARE: Final = 4
FREQUENT: Final = 256
_PAGE_HASHES: Final = 1024
_GROUP_HASHES: Final = 64 * _PAGE_HASHES  # are encoded at once
_SLICE_KEYS: Final = 1 << 16
_SEGMENT_WORDS: Final = 1 << 19  # more than common logs have in a chunk
_PAGE: Final = struct.Struct("<IIIBBBB")

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]
UInt32s = npt.NDArray[np.uint32]
UInt16s = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.integer[Any]]

_NOTHING: Final = np.zeros(0, np.uint16)
_NO_ROWS: Final = np.zeros(0, np.int64)


class Postings(msgspec.Struct, frozen=True):
    """`count` entries hold the hash. `rows`: int64[k], ascending: all of them; the first where it
    is a frequent one; none where it is a rare one. Then `blocks`, int64[count], ascending, has of
    each entry the block, else nothing. `certain`: no two words of the chunk share the hash, so one
    text decides for all."""

    rows: Int64s
    blocks: Int64s
    count: int
    certain: bool

    @property
    def is_rare(self) -> bool:
        return self.count <= RARE

    @property
    def is_whole(self) -> bool:
        return len(self.rows) == self.count


class PostingsBuilder:
    """The index of words that come in any order. Memory is taken for `_SEGMENT_WORDS` at once; of
    earlier ones only what differs is kept."""

    def __init__(self, block_entries: int) -> None:
        """`block_entries`: of the chunk."""
        self._block_entries = block_entries
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
            return _encode(self._shared[0], self._keys.pop(), self._block_entries)
        self._shared.append(shared_hashes(self._distinct.take()))
        keys = _sorted_set(_joined(self._keys))
        return _encode(np.unique(np.concatenate(self._shared)), keys, self._block_entries)

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


def encode_postings(data: bytes, lengths: Ints, rows: Ints, block_entries: int) -> bytes:
    """The index of words as `PostingsBuilder` takes them."""
    index = PostingsBuilder(block_entries)
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


def _encode(shared: UInt32s, keys: UInt64s, block_entries: int) -> bytes:
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
        entries = (keys[low:high] & np.uint64(0xFFFF)).astype(np.int32)
        pages += _encode_pages(_hashes(keys[mine]), counts, entries, block_entries)
    first_hashes = _hashes(keys[heads[::_PAGE_HASHES]]).tolist()
    return encode_pages(MAGIC, shared.tobytes(), first_hashes, pages)


def _hashes(keys: UInt64s) -> UInt32s:
    return (keys >> np.uint64(16)).astype(np.uint32)


def _encode_pages(
    hashes: UInt32s, counts: Int64s, entries: Int32s, block_entries: int
) -> list[list[bytes]]:
    """`counts`: the length of each hash's posting list; `entries`: all of them."""
    gaps = np.diff(hashes, prepend=hashes[:1])
    gaps[::_PAGE_HASHES] = 0
    of_blocks = np.where(counts <= RARE, counts, 0)
    of_rows = np.where(counts < FREQUENT, counts - of_blocks, 1)
    blocks = entries[np.repeat(of_blocks > 0, counts)] // np.int32(block_entries)
    stored = np.repeat(of_rows == counts, counts)
    stored[(np.cumsum(counts) - counts)[of_rows > 0]] = True
    columns = [
        _Planes(gaps),
        _Planes(counts - 1),
        _Planes(steps_in_lists(blocks, of_blocks)),
        _Planes(steps_in_lists(entries[stored], of_rows)),
    ]
    widths = [column.width for column in columns]
    block_ends, row_ends = np.cumsum(of_blocks), np.cumsum(of_rows)
    pages = []
    blocks_before = rows_before = 0
    for begin in range(0, len(hashes), _PAGE_HASHES):
        end = min(begin + _PAGE_HASHES, len(hashes))
        block_end, row_end = int(block_ends[end - 1]), int(row_ends[end - 1])
        header = _PAGE.pack(end - begin, block_end - blocks_before, row_end - rows_before, *widths)
        spans = ((begin, end), (begin, end), (blocks_before, block_end), (rows_before, row_end))
        parts = [c.cut(*span) for c, span in zip(columns, spans, strict=True)]
        pages.append([header, *itertools.chain.from_iterable(parts)])
        blocks_before, rows_before = block_end, row_end
    return pages


class _Planes:
    """The planes of a whole column, from which pages are cut."""

    def __init__(self, values: npt.NDArray[np.integer[Any]]) -> None:
        self._planes = to_planes(values.astype(np.uint32))
        self.width = max(1, len(self._planes))

    def cut(self, begin: int, end: int) -> list[bytes]:
        return [plane[begin:end] for plane in self._planes]


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

    def find(self, value: bytes | memoryview, wanted: int) -> Postings | None:
        """The postings of a hash, None where the chunk lacks it. `value`: the one that this is the
        directory of."""
        index = bisect.bisect_right(self._first_hashes, wanted) - 1
        if index < 0:
            return None
        page = self._pages.page(value, index)
        certain = wanted not in self.shared
        return _find_in_page(page, wanted - self._first_hashes[index], certain=certain)


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
        return self.directory.find(self._value, hash_word(word))


def _find_in_page(page: bytes, gap: int, *, certain: bool) -> Postings | None:
    """The postings of the hash so far behind the page's first."""
    n, k, m, gap_width, count_width, block_width, row_width = _PAGE.unpack_from(page)
    at = _PAGE.size
    gaps = from_planes(page[at : at + n * gap_width], n, narrowest(gap_width))
    hashes = np.cumsum(gaps, dtype=np.uint32)
    position = int(hashes.searchsorted(np.uint32(gap)))
    if position == n or hashes[position] != gap:
        return None
    at += n * gap_width
    counts = from_planes(page[at : at + n * count_width], n, narrowest(count_width))
    at += n * count_width
    before, count = counts[:position], counts.item(position) + 1
    is_rare = before < RARE
    if count <= RARE:
        begin = int(np.add.reduce(before[is_rare], dtype=np.int64)) + np.count_nonzero(is_rare)
        blocks = _listed(page[at : at + k * block_width], k, block_width, int(begin), count)
        return Postings(_NO_ROWS, blocks, count, certain)
    at += k * block_width
    listed = before[~is_rare & (before < FREQUENT - 1)]
    begin = np.count_nonzero(~is_rare) + int(np.add.reduce(listed, dtype=np.int64))
    stored = count if count < FREQUENT else 1
    rows = _listed(page[at : at + m * row_width], m, row_width, int(begin), stored)
    return Postings(rows, _NO_ROWS, count, certain)


def _listed(planes: bytes, count: int, width: int, begin: int, length: int) -> Int64s:
    """The list of so many items that begins there in a column of `count` steps."""
    if length == 1:  # a byte of each plane
        return np.array([int.from_bytes(planes[begin::count], "little")], np.int64)
    steps = from_planes(planes, count, narrowest(width))
    return np.cumsum(steps[begin : begin + length], dtype=np.int64)
