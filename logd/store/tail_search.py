"""Searching one block of the tail: no index yet, so the folded texts themselves are searched.

Like a chunk's, the rows are in the order of sequence.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, cast

import msgspec
import numpy as np
import numpy.typing as npt

from logd.entry import LEVELS, Entry, LevelCounts, Seq
from logd.format.body import Batch
from logd.format.folding import fold_utf8
from logd.format.separated import Numbering, edges
from logd.format.vocabulary import SOURCE, TAG_LIST
from logd.query.ast import Field, Term, Word, WordKind
from logd.query.match import matches, matches_words
from logd.store.at_hand import NotAtHand
from logd.store.page import Check
from logd.store.scan import candidate_texts, checking, texts_holding
from logd.store.selection import NONE, Bools, ByText, Rows, Selection, either
from logd.store.tail import TailBlock
from logd.store.term_keys import TermKeys
from logd.words import WORD_BYTE, fold

Int64s = npt.NDArray[np.int64]

_IS_WORD = np.frombuffer(WORD_BYTE, np.bool_)
_TERMS_REMEMBERED = 16
_SLICE = 1 << 16
"""Of a column, bytes or words at a time: what is worked out of each takes many times its room."""
_LARGEST_AT_HAND_BYTES = 4 << 20
"""Of a block: to find where the texts of a larger one begin takes a millisecond."""


class _Dictionary(msgspec.Struct, frozen=True):
    """Distinct texts, and the code of each entry's, in order of sequence."""

    items: list[bytes]
    codes: Int64s


class _Texts(msgspec.Struct, frozen=True):
    """A column, folded: separated texts, their edges, and where in them words begin."""

    folded: bytes
    edges: Int64s
    word_starts: npt.NDArray[np.uint32]


class _Derived:
    """What searches of a block share; made once, on demand. Two threads may make the same part at
    once: both make the same."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._order: Int64s | None = None
        self._messages: _Texts | None = None
        self._metas: tuple[bytes, Int64s] | None = None
        self._sources: _Dictionary | None = None
        self._tag_lists: _Dictionary | None = None
        self._edges: dict[str, Int64s] = {}
        self._matched: dict[bytes, Selection] = {}

    def matched(self, key: bytes, load: Callable[[], Selection]) -> Selection:
        """The rows that the term of this key matches, `load()` where it was not asked for
        lately."""
        found = self._matched.get(key)
        if found is None:
            found = load()
            if len(self._matched) >= _TERMS_REMEMBERED:
                self._matched = {}
            self._matched[key] = found
        return found

    def column(self, name: str) -> tuple[bytes, Int64s]:
        """(the batch's texts as they came, edges)."""
        blob = getattr(self._batch, name)
        found = self._edges.get(name)
        if found is None:
            found = self._edges[name] = edges(blob, self._batch.count)
        return blob, found

    def time_order(self) -> Int64s | None:
        """int64[count]: the rows by (time, sequence number); None where that is their order."""
        ts = self._batch.ts
        if self._order is None and np.any(ts[1:] < ts[:-1]):
            self._order = np.argsort(ts, kind="stable")
        return self._order

    def messages(self, check: Check) -> _Texts:
        if self._messages is None:
            folded, at = self._folded("messages")
            check()
            self._messages = _Texts(folded, at, _word_starts(folded, check))
        return self._messages

    def metas(self) -> tuple[bytes, Int64s]:
        """(folded metas, edges)."""
        if self._metas is None:
            self._metas = self._folded("metas")
        return self._metas

    def _folded(self, name: str) -> tuple[bytes, Int64s]:
        blob, at = self.column(name)
        return fold_utf8(blob), at  # folding keeps lengths

    def sources(self) -> _Dictionary:
        if self._sources is None:
            self._sources = _distinct(self._batch.sources)
        return self._sources

    def tag_lists(self) -> _Dictionary:
        if self._tag_lists is None:
            self._tag_lists = _distinct(self._batch.tags)
        return self._tag_lists


def _distinct(blob: bytes) -> _Dictionary:
    numbering = Numbering()
    codes = numbering.encode(blob)
    return _Dictionary(list(numbering), codes)


class TailSearch:
    """A block of the tail under one query, in one thread."""

    def __init__(self, block: TailBlock, check: Check, keys: TermKeys) -> None:
        self._batch = block.batch
        self._check = check
        self._keys = keys
        if block.search_cache is None:
            block.search_cache = _Derived(block.batch)
        self._derived = cast(_Derived, block.search_cache)
        self.first_seq = block.first_seq
        self.count = block.batch.count
        self.min_ts_ns = block.min_ts_ns
        self.max_ts_ns = block.max_ts_ns

    # ------------------------------------------------------------ columns

    @property
    def level_counts(self) -> LevelCounts:
        debug, info, warn, error = (self._batch.levels.count(code) for code in range(4))
        return debug, info, warn, error

    def close(self) -> None:
        """Nothing is open."""

    def place(self, ts_ns: int, row: int) -> int:
        """How many rows are earlier, or of that time and before `row`."""
        ts = self._batch.ts
        same = np.count_nonzero(ts[: max(row, 0)] == ts_ns)
        return int(np.count_nonzero(ts < ts_ns)) + int(same)

    def times_at(self, rows: npt.NDArray[np.integer[Any]]) -> Int64s:
        times: Int64s = self._batch.ts[rows]
        return times

    def time_order(self) -> Int64s | None:
        return self._derived.time_order()

    def levels(self) -> Int64s:
        return np.frombuffer(self._batch.levels, np.uint8).astype(np.int64)

    def text_counts(self, kind: int, level: int | None) -> Int64s:
        """int64[texts]: entries (of a level) that refer to each text of the kind."""
        dictionary = self._dictionary(kind)
        codes = dictionary.codes if level is None else dictionary.codes[self.levels() == level]
        return np.bincount(codes, minlength=len(dictionary.items))

    def expand(self, selection: ByText) -> Bools:
        mask: Bools = selection.texts[self._dictionary(selection.kind).codes]
        return mask

    def _dictionary(self, kind: int) -> _Dictionary:
        return {SOURCE: self._derived.sources, TAG_LIST: self._derived.tag_lists}[kind]()

    def entries(self, rows: Int64s, check: Check) -> list[Entry]:
        check()
        batch = self._batch
        names = ("messages", "sources", "tags", "metas")
        messages, sources, tags, metas = [
            _texts_at(*self._derived.column(name), rows) for name in names
        ]
        return [
            Entry(
                seq=Seq(self.first_seq + row),
                ts_ns=int(batch.ts[row]),
                level=LEVELS[batch.levels[row]],
                message=messages[at].decode(),
                source=sources[at].decode(),
                tags=tags[at],
                meta=metas[at],
            )
            for at, row in enumerate(rows.tolist())
        ]

    # ------------------------------------------------------------ terms

    def term(self, term: Term) -> Selection:
        """The rows that the term matches."""
        return self._derived.matched(self._keys.of(term), lambda: self._matching_term(term))

    def _matching_term(self, term: Term) -> Selection:
        if term.meta_path is not None:
            return self._meta(term)
        found: Selection = NONE
        if term.field in (Field.ANY, Field.MESSAGE):
            found = self._message(term.words)
        if term.field in (Field.ANY, Field.SOURCE):
            self._check()
            found = either(found, self._texts(SOURCE, term.words, _matches_text), self.expand)
        if term.field in (Field.ANY, Field.TAG):
            self._check()
            found = either(found, self._texts(TAG_LIST, term.words, _matches_tag), self.expand)
        return found

    def _texts(
        self, kind: int, words: Sequence[Word], wanted: Callable[[Sequence[Word], bytes], bool]
    ) -> Selection:
        items = self._dictionary(kind).items
        hits = np.zeros(len(items), np.bool_)
        for code, text in enumerate(checking(items, words, self._check)):
            hits[code] = wanted(words, text)
        return ByText(kind, hits) if hits.any() else NONE

    def _message(self, words: Sequence[Word]) -> Selection:
        texts = self._derived.messages(self._check)
        first, *others = dict.fromkeys(words)
        found = _rows_with(texts, first, self._check)
        for word in others:
            if not found.any():
                return NONE
            self._check()
            found &= _rows_with(texts, word, self._check)
        if len(words) > 1:
            self._keep_adjacent(found, words)
        return Rows(found) if found.any() else NONE

    def _keep_adjacent(self, found: Bools, words: Sequence[Word]) -> None:
        """Of the rows that hold all words, those that hold them side by side."""
        texts = self._derived.messages(self._check)
        folded, at = texts.folded, texts.edges
        for row in checking(np.flatnonzero(found).tolist(), words, self._check):
            text = folded[at[row] : at[row + 1] - 1].decode()
            found[row] = matches_words(words, text)

    def _meta(self, term: Term) -> Selection:
        folded, at = self._derived.metas()
        raw = self._batch.metas
        found = np.zeros(self.count, np.bool_)
        needles = [word.text.encode() for word in term.words]
        candidates = candidate_texts(folded, at, needles, self._check).tolist()
        for position in checking(candidates, term.words, self._check):
            meta = raw[at[position] : at[position + 1] - 1]
            found[position] = matches(term, "", "", (), meta)
        return Rows(found) if found.any() else NONE


class TailAtHand(TailSearch):
    """The same, where no texts need be gone through for it: NotAtHand is raised otherwise."""

    def __init__(self, block: TailBlock, check: Check, keys: TermKeys) -> None:
        if block.batch.size_bytes > _LARGEST_AT_HAND_BYTES:
            raise NotAtHand
        super().__init__(block, check, keys)

    def _matching_term(self, _term: Term) -> NoReturn:
        raise NotAtHand


def _texts_at(blob: bytes, at: Int64s, rows: Int64s) -> list[bytes]:
    starts, stops = at[rows].tolist(), at[rows + 1].tolist()
    return [blob[start : stop - 1] for start, stop in zip(starts, stops, strict=True)]


def _rows_with(texts: _Texts, word: Word, check: Check) -> Bools:
    """bool[count]: which of the texts hold the word."""
    wanted = word.text.encode()
    found = np.zeros(len(texts.edges) - 1, np.bool_)
    if word.kind is WordKind.SUBSTRING:
        found[texts_holding(texts.folded, texts.edges, wanted, check)] = True
        return found
    array = np.frombuffer(texts.folded, np.uint8)
    for places in _beginning_with(texts, wanted, check):
        if word.kind is WordKind.EXACT:
            ends = places + len(wanted)
            inside = np.flatnonzero(ends < len(array))
            goes_on = inside[_IS_WORD[array[ends[inside]]]]
            places = np.delete(places, goes_on)
        found[np.searchsorted(texts.edges, places, side="right") - 1] = True
    return found


def _beginning_with(texts: _Texts, wanted: bytes, check: Check) -> Iterator[Int64s]:
    """Where words begin with these bytes, ascending. Byte after byte is compared: quicker than to
    look for them everywhere, and other threads run meanwhile."""
    array = np.frombuffer(texts.folded, np.uint8)
    starts = texts.word_starts
    starts = starts[: np.searchsorted(starts, len(array) - len(wanted), side="right")]
    for at in range(0, len(starts), _SLICE):
        check()
        places = starts[at : at + _SLICE].astype(np.int64)
        for offset, byte in enumerate(wanted):
            if not len(places):
                break
            places = places.compress(array.take(places + offset if offset else places) == byte)
        yield places


def _word_starts(folded: bytes, check: Check) -> npt.NDArray[np.uint32]:
    array = np.frombuffer(folded, np.uint8)
    found = [np.zeros(0, np.uint32)]
    goes_on = np.False_
    for at in range(0, len(array), _SLICE):
        check()
        inside = _IS_WORD.take(array[at : at + _SLICE])
        starts = inside.copy()
        starts[1:] &= ~inside[:-1]
        starts[0] &= ~goes_on
        goes_on = inside[-1]
        found.append((np.flatnonzero(starts) + at).astype(np.uint32))
    return np.concatenate(found)


def _matches_text(words: Sequence[Word], text: bytes) -> bool:
    return matches_words(words, fold(text.decode()))


_tags_decoder = msgspec.json.Decoder(list[str])


def _matches_tag(words: Sequence[Word], text: bytes) -> bool:
    return any(matches_words(words, fold(tag)) for tag in _tags_decoder.decode(text))
