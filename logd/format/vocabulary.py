"""The vocabulary index of a chunk: words of its dictionaries -> the texts that hold them.

A chunk's dictionaries are its templates, its sources and its tag lists; an entry refers to one
text of each. So a word is looked up among a few thousand texts, not among the entries, and how
many entries hold it is a sum. Here words stand in full: look-ups are exact.

A *target* is a text: kind << 16 | code, kind 0 template, 1 source, 2 tag list.

A paged value (`pages.py`), magic "LVOC". Page key: number of words before the page. Page, raw,
words sorted by their UTF-8 bytes, folded:

    4    words in the page: n
    4    targets in the page: m
    4    bytes of the words, separated: w
    1    plane width of the counts
    1    plane width of the targets
    2    reserved, 0
    w    the words, separated text
    ...  targets per word less 1, planes, n items
    ...  targets, planes, m items: of each list the first as it is, then differences

Head: how many entries of each level refer to each text, a block a kind:

    4    texts of the kind: t
    4    bytes of the frame: f
    1    plane width
    3    reserved, 0
    f    frame of planes, 4 t items: DEBUG of all texts, INFO of all texts, ...

then the first word of each page, separated text.
"""

import bisect
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.ascending import distinct, steps_in_lists
from logd.format.columns import (
    compress,
    decompress,
    from_planes,
    narrowest,
    planes_of,
    to_planes,
)
from logd.format.folding import fold_utf8
from logd.format.pages import PageDirectory, encode_pages
from logd.format.separated import SEPARATOR, Numbering

MAGIC: Final = b"LVOC"
TEMPLATE, SOURCE, TAG_LIST = 0, 1, 2
KINDS: Final = 3
_PAGE_WORDS: Final = 256
_SLICE_BYTES: Final = 262_144
_TARGET_BITS: Final = 18
_TARGET: Final = (1 << _TARGET_BITS) - 1
_PAGE: Final = struct.Struct("<IIIBBH")
_COUNTS: Final = struct.Struct("<IIB3x")
_WORD_OR_SEPARATOR: Final = re.compile(rb"[0-9a-z_\x80-\xf7]+|\xfe")

Int64s = npt.NDArray[np.int64]
UInts = npt.NDArray[np.unsignedinteger[Any]]
Bytes = npt.NDArray[np.uint8]

_WEIGHTS: Final = np.array([1, 1 << 8, 1 << 16, 1 << 24], np.int64)  # of planes
_NO_TARGETS: Final = np.zeros(0, np.int64)


class Targets(msgspec.Struct, frozen=True):
    """Codes of the texts that hold a word, ascending, int64[k], by kind."""

    templates: Int64s
    sources: Int64s
    tag_lists: Int64s


def encode_vocabulary(texts: Sequence[Sequence[bytes]], counts: Sequence[Int64s]) -> bytes:
    """`texts[kind]`: the dictionary's texts as word-bearing UTF-8, by code; `counts[kind]`:
    int64[4, texts], entries of each level."""
    numbers = Numbering()
    numbers[SEPARATOR]  # is not a word, and sorts behind all words
    keys = np.concatenate([np.zeros(0, np.int64), *_occurrences(texts, numbers)])
    ordered = sorted(numbers)
    rank = np.empty(len(ordered), np.int64)
    rank[[numbers[word] for word in ordered]] = np.arange(len(ordered))
    words = ordered[:-1]
    target = keys & _TARGET
    keys >>= _TARGET_BITS
    keys = rank.take(keys)
    keys <<= _TARGET_BITS
    keys |= target
    del target  # large texts have millions of words: each copy of such an array counts
    keys.sort()
    keys = keys[np.diff(keys, prepend=-1) != 0]
    word_of, target = keys >> _TARGET_BITS, keys & _TARGET
    bounds = np.searchsorted(word_of, np.arange(0, len(words) + _PAGE_WORDS, _PAGE_WORDS))
    pages = []
    for index, begin in enumerate(range(0, len(words), _PAGE_WORDS)):
        low, high = int(bounds[index]), int(bounds[index + 1])
        some = words[begin : begin + _PAGE_WORDS]
        pages.append(_encode_page(some, word_of[low:high] - begin, target[low:high]))
    head = b"".join([_encode_counts(table) for table in counts])
    head += SEPARATOR.join(words[::_PAGE_WORDS])
    return encode_pages(MAGIC, head, range(0, len(words), _PAGE_WORDS), pages)


def _occurrences(texts: Sequence[Sequence[bytes]], numbers: Numbering) -> Iterator[Int64s]:
    """int64[k], several times: word number << 18 | target, for every word occurrence."""
    for kind, of_kind in enumerate(texts):
        for begin, end in _slices(of_kind):
            joined = SEPARATOR.join(of_kind[begin:end])
            tokens = _WORD_OR_SEPARATOR.findall(fold_utf8(joined))
            word = np.fromiter(map(numbers.__getitem__, tokens), np.int64, len(tokens))
            is_word = word != numbers[SEPARATOR]
            code = begin + np.cumsum(~is_word)
            yield (word[is_word] << _TARGET_BITS) | (kind << 16) | code[is_word]


def _slices(texts: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Stretches of texts whose words are objects at one time: these take many times the text."""
    begin = size = 0
    for number, text in enumerate(texts):
        if size >= _SLICE_BYTES:
            yield begin, number
            begin, size = number, 0
        size += len(text)
    if begin < len(texts):
        yield begin, len(texts)


def _encode_page(words: Sequence[bytes], word_of: Int64s, target: Int64s) -> list[bytes]:
    counts = np.bincount(word_of, minlength=len(words))
    less = to_planes((counts - 1).astype(np.uint32))
    gaps = to_planes(steps_in_lists(target, counts).astype(np.uint32))
    blob = SEPARATOR.join(words)
    header = _PAGE.pack(len(words), len(target), len(blob), len(less), len(gaps), 0)
    return [header + blob, *less, *gaps]


def _encode_counts(table: Int64s) -> bytes:
    flat = table.astype(np.uint32).reshape(-1)
    planes = to_planes(flat)
    frame = compress(*planes)
    return _COUNTS.pack(table.shape[1], len(frame), max(1, len(planes))) + frame


class VocabularyDirectory:
    """What a look-up needs of every page; it does not hold on to the value. Raises ValueError where
    it is damaged."""

    def __init__(self, value: bytes | memoryview) -> None:
        self._pages = PageDirectory(MAGIC, value)
        head = self._pages.head
        self._counts: list[tuple[int, bytes, int]] = []
        at = 0
        for _ in range(KINDS):
            texts, size, width = _COUNTS.unpack_from(head, at)
            at += _COUNTS.size
            self._counts.append((texts, head[at : at + size], width))
            at += size
        self.first_words = head[at:].split(SEPARATOR) if len(self._pages) else []

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about."""
        return 2 * self._pages.size_bytes + 60 * len(self.first_words)

    def texts(self, kind: int) -> int:
        """How many texts the kind has."""
        return self._counts[kind][0]

    def counts(self, kind: int) -> UInts:
        """uint[4, texts]: entries of each level that refer to each text of the kind."""
        texts, frame, width = self._counts[kind]
        raw = decompress(frame, 4 * texts * width)
        return from_planes(raw, 4 * texts, narrowest(width)).reshape(4, texts)

    def page(self, value: bytes | memoryview, index: int) -> "VocabularyPage":
        """A page of the value that this is the directory of. Raises ValueError if the page is
        damaged."""
        return _decode_page(self._pages.page(value, index))


class VocabularyPage(msgspec.Struct, frozen=True):
    """`words`: sorted, a separator before and behind each. `counts`: of each the targets less 1.
    The targets of a word are the running sums of its `steps`, which are kept as planes: most of
    them are never asked for."""

    words: bytes
    counts: UInts
    steps: Bytes

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about."""
        return 500 + len(self.words) + self.counts.nbytes + self.steps.nbytes

    def find(self, word: bytes) -> Int64s | None:
        """The targets of the word, None where it is not in the page."""
        at = self.words.find(SEPARATOR + word + SEPARATOR)
        if at < 0:
            return None
        position = self.words.count(SEPARATOR, 0, at)
        return self._targets(position, position + 1)

    def find_prefix(self, prefix: bytes) -> Int64s:
        """The targets of the words that begin with the prefix: they stand side by side."""
        start = SEPARATOR + prefix
        at = self.words.find(start)
        if at < 0:
            return _NO_TARGETS
        position = self.words.count(SEPARATOR, 0, at)
        # the separator in the end begins no word
        last = min(position + self.words.count(start), len(self.counts))
        return self._targets(position, last)

    def find_substring(self, part: bytes) -> Int64s:
        """The targets of the words in which `part`, free of separators, occurs."""
        if not part:
            return self._targets(0, len(self.counts))
        found = []
        at = self.words.find(part)
        while at >= 0:
            position = self.words.count(SEPARATOR, 0, at) - 1
            found.append(self._targets(position, position + 1))
            at = self.words.find(part, self.words.index(SEPARATOR, at))
        return np.concatenate(found) if found else _NO_TARGETS

    def _targets(self, first: int, last: int) -> Int64s:
        """The targets of the words first to last, word by word."""
        begin = first + int(np.add.reduce(self.counts[:first], dtype=np.int64))
        if last == first + 1:
            end = begin + int(self.counts[first]) + 1
            return self._sums(begin, end)
        lengths = self.counts[first:last].astype(np.int64) + 1
        stops = np.cumsum(lengths)
        before = stops - lengths
        sums = self._sums(begin, begin + int(stops[-1]))
        carried = np.where(before > 0, sums[before - 1], 0)  # each list begins anew
        out: Int64s = sums - np.repeat(carried, lengths)
        return out

    def _sums(self, begin: int, end: int) -> Int64s:
        steps = self.steps[:, begin:end]
        if end == begin + 1:
            return np.array([int.from_bytes(steps.tobytes(), "little")], np.int64)
        return np.cumsum(np.dot(_WEIGHTS[: len(steps)], steps), dtype=np.int64)


class VocabularyIndex:
    """Look-ups in an encoded vocabulary. Raises ValueError where it is damaged."""

    def __init__(
        self,
        value: bytes | memoryview,
        directory: VocabularyDirectory | None = None,
        page: Callable[[int], VocabularyPage] | None = None,
    ) -> None:
        """`directory` and `page()` where they are known already; `value` is not looked at then."""
        self.directory = directory or VocabularyDirectory(value)
        self._page = page or (lambda index: self.directory.page(value, index))
        self._first_words = self.directory.first_words

    def texts(self, kind: int) -> int:
        """How many texts the kind has."""
        return self.directory.texts(kind)

    def counts(self, kind: int) -> UInts:
        """uint[4, texts]: entries of each level that refer to each text of the kind."""
        return self.directory.counts(kind)

    def find(self, word: bytes) -> Targets | None:
        """The texts that hold the folded word."""
        index = bisect.bisect_right(self._first_words, word) - 1
        if index < 0:
            return None
        found = self._page(index).find(word)
        return None if found is None else _targets(found)

    def find_prefix(self, prefix: bytes) -> Targets:
        """The texts that hold a word beginning with the prefix."""
        start = max(bisect.bisect_left(self._first_words, prefix) - 1, 0)
        found = []
        for index in range(start, len(self._first_words)):
            if self._first_words[index][: len(prefix)] > prefix:
                break
            found.append(self._page(index).find_prefix(prefix))
        return _union(found)

    def find_substring(self, part: bytes) -> Targets:
        """The texts that hold a word in which `part` occurs."""
        every = range(len(self._first_words))
        return _union([self._page(index).find_substring(part) for index in every])


def _decode_page(raw: bytes) -> VocabularyPage:
    n, m, size, count_width, step_width, _ = _PAGE.unpack_from(raw)
    at = _PAGE.size + size
    words = SEPARATOR + raw[_PAGE.size : at] + SEPARATOR
    counts = from_planes(raw[at : at + n * count_width], n, narrowest(count_width))
    at += n * count_width
    steps = planes_of(raw[at : at + m * step_width], m, 4)
    return VocabularyPage(words, counts, steps)


def _union(lists: Sequence[Int64s]) -> Targets:
    return _targets(distinct(np.concatenate(lists)) if lists else np.zeros(0, np.int64))


def _targets(targets: Int64s) -> Targets:
    if len(targets) == 1:
        kind, code = divmod(targets.item(), 1 << 16)
        of_kinds = [_NO_TARGETS] * KINDS
        of_kinds[kind] = np.array([code], np.int64)
        return Targets(*of_kinds)
    at = np.searchsorted(targets, [SOURCE << 16, TAG_LIST << 16])
    codes = targets & 0xFFFF
    return Targets(codes[: at[0]], codes[at[0] : at[1]], codes[at[1] :])
