"""The variable index of a chunk: hashes of words -> where the entries are whose message holds it.

A paged value (`pages.py`), magic "LVAR". Every variable word of the chunk's messages, folded, is
hashed to 24 bits. How much is stored of where the entries are that hold a hash depends on how many
there are:

    up to RARE       the blocks of the entries, of a shortened hash: a word that stands in one or
                     two entries of the chunk, as most do, would take more room in full than in the
                     messages, and to look through a block is little more work than to read the
                     entry's text
    below FREQUENT   the row of each
    FREQUENT or more the first row: a number that often comes (a status code, an octet of an
                     address) is quickly searched for in the messages

The hashes of the last two kinds are *listed*. Of the rare ones there is only a set of numbers,
`(hash >> shift) * blocks + block`, one for each block that holds an entry of the hash: what is
looked for there may be another word, or none.

Head:

    4    blocks of the chunk
    4    shift: so that a shortened hash has SPARE_BITS more bits than it takes to number the
         chunk's rare hashes, up to the 24 that there are; then a word that the chunk lacks is
         looked for in the blocks of one of eight chunks at most, about
    ...  uint32 each, sorted: the listed hashes (`word_hashes.py`) that two different words of this
         chunk share

The list of shared hashes is complete, found at the build by comparing bytes, never hashes alone. So
for any other listed hash *one* look at the text decides a whole posting list; for these the text is
asked entry by entry.

Pages are cut from the hashes of all kinds in their order, and a look-up decodes one. Page key: its
first hash. Page, raw:

    4    listed hashes in the page: n
    4    numbers in the page: k
    4    rows in the page: m
    1    plane widths, a byte each: of the hash gaps, the counts, the row gaps
    1
    1
    1    low bits of the number gaps
    ...  hash gaps, planes, n items: the first listed hash less the page's key, then differences
    ...  counts, planes, n items: how many entries hold each listed hash, less 1
    ...  rows, planes, m items: of each list the first as it is, then differences
    ...  numbers of the rare hashes, k items by Rice coding (`rice.py`): the first less
         (key >> shift) * blocks, then differences
"""

import bisect
import itertools
import struct
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.ascending import common, distinct, sort_by_digits, steps_in_lists
from logd.format.columns import from_planes, narrowest, to_planes
from logd.format.pages import PageDirectory, encode_pages
from logd.format.rice import RiceLists, best_low_bits, rice_sums
from logd.format.word_hashes import HASH_BITS, OneOfEach, hash_word, shared_hashes, words_in

MAGIC: Final = b"LVAR"
RARE: Final = 4
FREQUENT: Final = 256
SPARE_BITS: Final = 3
_PAGE_HASHES: Final = 1024
_GROUP_HASHES: Final = 64 * _PAGE_HASHES  # are encoded at once
_KEY_BITS: Final = HASH_BITS + 16
_SLICE_KEYS: Final = 1 << 16
_SEGMENT_WORDS: Final = 1 << 19  # more than common logs have in a chunk
_HEAD: Final = struct.Struct("<II")
_PAGE: Final = struct.Struct("<IIIBBBB")
_NUMBER_BITS: Final = 2 * HASH_BITS  # more than a number has: blocks are fewer than hashes

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]
UInt32s = npt.NDArray[np.uint32]
UInt16s = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]

_HASHES, _COUNTS, _ROWS = range(3)  # the columns of a page that are planes

_NOTHING: Final = np.zeros(0, np.uint16)


class PostingList(msgspec.Struct, frozen=True):
    """`count` entries, more than RARE, hold the hash. `rows`: int64[k], ascending: all of them, or
    the first where it is a frequent one. `certain`: no two words of the chunk share the hash, so
    one text decides for all."""

    rows: Int64s
    count: int
    certain: bool

    @property
    def is_whole(self) -> bool:
        return len(self.rows) == self.count


class CandidateBlocks(msgspec.Struct, frozen=True):
    """At most RARE entries hold the hash, if any, and all of them are in these `blocks`: int64[k],
    ascending, at least one."""

    blocks: Int64s


Postings: TypeAlias = PostingList | CandidateBlocks


class PostingsBuilder:
    """The index of words that come in any order. Memory is taken for `_SEGMENT_WORDS` at once; of
    earlier ones only what differs is kept."""

    def __init__(self, block_entries: int) -> None:
        """`block_entries`: of the chunk."""
        self._block_entries = block_entries
        self._blocks = 0
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
        if len(rows):
            self._blocks = max(self._blocks, int(rows.max()) // self._block_entries + 1)
        self._rows.append(rows.astype(np.uint16))
        self._waiting += len(lengths)

    def encode(self) -> bytes:
        """Once: nothing is left then."""
        is_only = not self._keys
        self._end_segment(is_last=is_only)
        if is_only:
            return self._encode(self._shared[0], self._keys.pop())
        self._shared.append(shared_hashes(self._distinct.take()))
        keys = _sorted_set(_joined(self._keys))
        return self._encode(distinct(np.concatenate(self._shared)), keys)

    def _encode(self, shared: UInt32s, keys: UInt64s) -> bytes:
        return _encode(shared, keys, self._block_entries, self._blocks)

    def _end_segment(self, *, is_last: bool) -> None:
        """What waits becomes shared hashes, keys and, unless it `is_last` of one, distinct words.
        What is not needed any more goes at once: it would be half of the peak."""
        words = words_in(self._data, np.concatenate([_NOTHING, *self._lengths]))
        self._data.clear()
        self._lengths.clear()
        self._shared.append(shared_hashes(words))
        if not is_last:
            self._distinct.add(words)
        hashes = words.hashes
        del words
        keys = hashes.astype(np.uint64)
        del hashes
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
    """In the place of `keys`, where they are many."""
    if len(keys) <= _SEGMENT_WORDS:
        sort_by_digits(keys, _KEY_BITS)
    else:
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


def _encode(shared: UInt32s, keys: UInt64s, block_entries: int, blocks: int) -> bytes:
    """`keys`: hash << 16 | entry, sorted, each once."""
    found = [np.flatnonzero(is_first) + some.start for some, is_first in _runs(keys, 16)]
    begins = np.concatenate([*found, np.array([len(keys)])])  # of lists; the end, too
    del found
    is_listed = begins[1:] - begins[:-1] > RARE
    rare = len(is_listed) - int(np.count_nonzero(is_listed))
    shift = max(0, HASH_BITS - SPARE_BITS - max(0, rare - 1).bit_length())
    listed = _hashes(keys[begins[:-1][is_listed]])
    uncertain = common(shared.astype(np.int64), listed.astype(np.int64)).astype("<u4")
    del is_listed, listed
    pages = []
    for begin in range(0, len(begins) - 1, _GROUP_HASHES):
        mine = begins[begin : begin + _GROUP_HASHES + 1]
        entries = (keys[mine[0] : mine[-1]] & np.uint64(0xFFFF)).astype(np.int32)
        hashes, counts = _hashes(keys[mine[:-1]]), np.diff(mine)
        pages += _encode_pages(hashes, counts, entries, block_entries, blocks, shift)
    first_hashes = _hashes(keys[begins[:-1:_PAGE_HASHES]]).tolist()
    head = _HEAD.pack(blocks, shift) + uncertain.tobytes()
    return encode_pages(MAGIC, head, first_hashes, pages)


def _hashes(keys: UInt64s) -> UInt32s:
    return (keys >> np.uint64(16)).astype(np.uint32)


def _encode_pages(
    hashes: UInt32s, counts: Int64s, entries: Int32s, block_entries: int, blocks: int, shift: int
) -> list[list[bytes]]:
    """`counts`: the length of each hash's posting list; `entries`: all of them."""
    begins = np.arange(0, len(hashes), _PAGE_HASHES)
    is_rare = counts <= RARE
    in_blocks = entries[np.repeat(is_rare, counts)] // np.int32(block_entries)
    numbers, numbers_in = _rare_numbers(hashes, is_rare, counts[is_rare], in_blocks, blocks, shift)
    listed, listed_in = _less_keys(hashes, ~is_rare, 0)
    of_rows = np.where(counts < FREQUENT, counts, 1)
    of_rows[is_rare] = 0
    stored = np.repeat(of_rows == counts, counts)
    stored[(np.cumsum(counts) - counts)[of_rows > 0]] = True
    columns = [
        _Planes(steps_in_lists(listed, listed_in), listed_in),
        _Planes(counts[~is_rare] - 1, listed_in),
        _Planes(steps_in_lists(entries[stored], of_rows), np.add.reduceat(of_rows, begins)),
    ]
    steps = steps_in_lists(numbers, numbers_in)
    low_bits = best_low_bits(steps)
    rice = RiceLists(steps, numbers_in, low_bits)
    widths = [column.width for column in columns]
    pages = []
    for page, k in enumerate(numbers_in.tolist()):
        n, _, m = [column.items(page) for column in columns]
        header = _PAGE.pack(n, k, m, *widths, low_bits)
        parts = [*[column.of_page(page) for column in columns], rice.of_list(page)]
        pages.append([header, *itertools.chain.from_iterable(parts)])
    return pages


def _rare_numbers(
    hashes: UInt32s, is_rare: Bools, counts: Int64s, in_blocks: Int32s, blocks: int, shift: int
) -> tuple[Int64s, Int64s]:
    """(the numbers of the rare ones among the hashes, those of a page ascending, how many there are
    in each page). `in_blocks`: the block of each of their entries; `counts`: how many these are."""
    short, count_in = _less_keys(hashes, is_rare, shift)
    short *= blocks
    short += np.repeat(np.arange(len(count_in)) << _NUMBER_BITS, count_in)
    numbers = np.repeat(short, counts)
    numbers += in_blocks
    numbers.sort(kind="stable")  # quick, as only those of hashes made equal are out of order
    numbers = numbers[np.diff(numbers, prepend=-1) > 0]
    numbers_in = np.bincount(numbers >> _NUMBER_BITS, minlength=len(count_in))
    numbers &= (1 << _NUMBER_BITS) - 1
    return numbers, numbers_in


def _less_keys(hashes: UInt32s, wanted: Bools, shift: int) -> tuple[Int64s, Int64s]:
    """(the wanted hashes, shortened, less the key of their page, shortened as well; how many there
    are in each page)."""
    count_in = np.add.reduceat(wanted, np.arange(0, len(hashes), _PAGE_HASHES), dtype=np.int64)
    keys = hashes[::_PAGE_HASHES] >> np.uint32(shift)
    short = (hashes[wanted] >> np.uint32(shift)) - np.repeat(keys, count_in)
    return short.astype(np.int64), count_in


class _Planes:
    """The planes of a column of many pages."""

    def __init__(self, values: Ints, count_in: Int64s) -> None:
        """`count_in`: how many items each page has."""
        self._planes = to_planes(values.astype(np.uint64))
        self._edges: list[int] = [0, *np.cumsum(count_in).tolist()]
        self.width = max(1, len(self._planes))

    def items(self, page: int) -> int:
        begin, end = self._edges[page : page + 2]
        return end - begin

    def of_page(self, page: int) -> list[bytes]:
        begin, end = self._edges[page : page + 2]
        return [plane[begin:end] for plane in self._planes]


class PostingsDirectory:
    """What a look-up needs of every page; it does not hold on to the value. Raises ValueError where
    it is damaged."""

    def __init__(self, value: bytes | memoryview) -> None:
        self._pages = PageDirectory(MAGIC, value)
        self._first_hashes: list[int] = self._pages.keys.tolist()
        head = self._pages.head
        self._blocks, self._shift = _HEAD.unpack_from(head)
        self.shared = frozenset(np.frombuffer(head, "<u4", offset=_HEAD.size).tolist())

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about."""
        return self._pages.size_bytes + 40 * len(self._first_hashes) + 80 * len(self.shared)

    def find(self, value: bytes | memoryview, wanted: int) -> Postings | None:
        """The postings of a hash, None where it is certain that the chunk lacks it. `value`: the
        one that this is the directory of."""
        index = bisect.bisect_right(self._first_hashes, wanted) - 1
        if index < 0:
            return None
        key, page = self._first_hashes[index], _Page(self._pages.page(value, index))
        found = page.listed(wanted - key)
        if found is not None:
            rows, count = found
            return PostingList(rows, count, wanted not in self.shared)
        short = (wanted >> self._shift) - (key >> self._shift)
        blocks = page.blocks(short * self._blocks, self._blocks)
        return CandidateBlocks(blocks) if len(blocks) else None


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
        """The postings of a folded word's hash, None where it is certain that the chunk lacks
        it."""
        return self.directory.find(self._value, hash_word(word))


class _Page:
    """A decompressed page. What is asked of it decides which columns are decoded."""

    def __init__(self, raw: bytes) -> None:
        n, self._numbers, m, *self._widths, self._low_bits = _PAGE.unpack_from(raw)
        self._raw = raw
        self._items = (n, n, m)
        sizes = [count * width for count, width in zip(self._items, self._widths, strict=True)]
        self._edges = [*itertools.accumulate(sizes, initial=_PAGE.size)]

    def _planes(self, column: int) -> bytes:
        return self._raw[self._edges[column] : self._edges[column + 1]]

    def _column(self, column: int) -> npt.NDArray[Any]:
        dtype = narrowest(self._widths[column])
        return from_planes(self._planes(column), self._items[column], dtype)

    def listed(self, gap: int) -> tuple[Int64s, int] | None:
        """(stored rows, how many entries there are) of the hash so far behind the key, None where
        it is not listed."""
        hashes = np.cumsum(self._column(_HASHES), dtype=np.uint32)
        position = int(hashes.searchsorted(np.uint32(gap)))
        if position == len(hashes) or hashes[position] != gap:
            return None
        counts = self._column(_COUNTS)
        before, count = counts[:position], counts.item(position) + 1
        short = before[before < FREQUENT - 1]
        begin = position + int(np.add.reduce(short, dtype=np.int64))
        return self._rows(begin, count if count < FREQUENT else 1), count

    def _rows(self, begin: int, length: int) -> Int64s:
        """The list of so many that begins there."""
        if length == 1:  # a byte of each plane
            row = int.from_bytes(self._planes(_ROWS)[begin :: self._items[_ROWS]], "little")
            return np.array([row], np.int64)
        return np.cumsum(self._column(_ROWS)[begin : begin + length], dtype=np.int64)

    def blocks(self, first: int, count: int) -> Int64s:
        """Which of the `count` numbers from `first` on are in the page's set, less `first`."""
        numbers = rice_sums(self._raw[self._edges[-1] :], self._numbers, self._low_bits)
        low, high = numbers.searchsorted((first, first + count))
        return numbers[low:high] - first
