"""Searching one chunk: the index narrows, the text decides.

A word without a digit can only stand in a template, a source or a tag; the vocabulary knows which
exactly. A word with a digit may also be a variable. Of a rare one the postings give the blocks that
may hold it, and their variables are searched; of others the entries, and the text of one of them
(or of each, where two words share the hash) decides.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from logd.entry import Entry
from logd.format.ascending import among, common, distinct
from logd.format.postings import CandidateBlocks
from logd.format.vocabulary import SOURCE, TAG_LIST, TEMPLATE, Targets
from logd.query.ast import Field, Term, Word, WordKind
from logd.query.match import matches_words
from logd.store.chunk_index import ChunkIndex
from logd.store.chunk_reader import ChunkReader
from logd.store.chunk_scans import (
    MetaScan,
    PhraseScan,
    Scan,
    Scanner,
    VariableScan,
    phrase_places,
    rows_of_rare_word,
)
from logd.store.index import ProjectIndex
from logd.store.page import Check
from logd.store.phrases import may_be_static, may_be_variable
from logd.store.scan import checking
from logd.store.selection import (
    NONE,
    Bools,
    ByText,
    Counted,
    Remembered,
    Rows,
    Selection,
    either,
    recall,
    remember,
)
from logd.store.term_keys import TermKeys
from logd.words import fold

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]

_NO_CODES = np.zeros(0, np.int64)
_VERIFY_ROWS = 1024
_FEW_ROWS = 16


class ChunkSearch:
    """A chunk under one query, in one thread. Raises Corruption where its bytes do not hold."""

    def __init__(
        self,
        reader: ChunkReader,
        index: ProjectIndex,
        scanner: Scanner,
        check: Check,
        keys: TermKeys,
    ) -> None:
        """Close it: while it has an index transaction open, the index cannot grow."""
        self._reader = reader
        self._words = ChunkIndex(reader, index)
        self._scanner = scanner
        self._check = check
        self._keys = keys
        self._found: dict[Word, Targets] = {}
        self.first_seq = reader.first_seq
        self.count = reader.count
        self.min_ts_ns = reader.row.min_ts_ns
        self.max_ts_ns = reader.row.max_ts_ns
        self.level_counts = reader.row.level_counts

    def close(self) -> None:
        self._words.close()

    # ------------------------------------------------------------ columns

    def place(self, ts_ns: int, row: int) -> int:
        """How many rows are earlier, or of that time and before `row`."""
        return self._reader.times().place(ts_ns, row)

    def times_at(self, rows: Codes) -> Int64s:
        return self._reader.times_at(rows)

    def time_order(self) -> Codes | None:
        return self._reader.time_order()

    def levels(self) -> Codes:
        return self._reader.levels()

    def entries(self, rows: Int64s, check: Check) -> list[Entry]:
        return self._reader.entries(rows, check)

    def text_counts(self, kind: int, level: int | None) -> Codes:
        """uint32[texts]: entries (of a level) that refer to each text of the kind."""
        return self._words.text_counts(kind, level)

    def expand(self, selection: ByText) -> Bools:
        few = np.flatnonzero(selection.texts)
        if len(few) == 1 and selection.kind == TEMPLATE:
            row = self._only_row(few.item(0))
            if row is not None:
                mask = np.zeros(self.count, np.bool_)
                mask[row] = True
                return mask
        codes = {
            TEMPLATE: self._reader.template_codes,
            SOURCE: self._reader.source_codes,
            TAG_LIST: self._reader.tag_codes,
        }[selection.kind]()
        if len(few) == 1:
            alone: Bools = codes == int(few[0])  # of numpy, it would widen the column
            return alone
        return selection.texts.take(codes)

    def _only_row(self, template: int) -> int | None:
        """Of a template that one row has, where that is quick to find."""
        if self.text_counts(TEMPLATE, None).item(template) != 1:
            return None
        return self._reader.row_of_template(template)

    def _targets(self, word: Word) -> Targets:
        """A search asks for a word once a field: it is looked up once."""
        found = self._found.get(word)
        if found is None:
            self._check()
            found = self._found[word] = self._words.find(word)
        return found

    # ------------------------------------------------------------ terms

    def term(self, term: Term) -> Selection:
        """The rows that the term matches. A chunk never changes, so the next page, or the same
        search a little later, need not look again."""

        def load() -> tuple[Remembered, int]:
            return remember(self._matching_term(term))

        remembered = self._reader.cached(("term", self._keys.of(term)), load)
        return recall(remembered, self.count, lambda: self._scan(VariableScan(term.words[0])))

    def _matching_term(self, term: Term) -> Selection:
        if term.meta_path is not None:
            return self._scanned(MetaScan(term))  # no index covers metas
        found: Selection = NONE
        if term.field in (Field.ANY, Field.MESSAGE):
            found = self._message(term.words)
        self._check()
        if term.field in (Field.ANY, Field.SOURCE):
            found = either(found, self._sources(term.words), self.expand)
        if term.field in (Field.ANY, Field.TAG):
            found = either(found, self._tag_lists(term.words), self.expand)
        return found

    def _sources(self, words: Sequence[Word]) -> Selection:
        if len(words) == 1:
            return self._by_text(SOURCE, self._targets(words[0]).sources)
        codes = self._holding(words, lambda found: found.sources)
        if len(codes):
            items = self._reader.sources().items
            texts = [items[code] for code in codes.tolist()]
            codes = codes[self._matching_texts(texts, words, _holds)]
        return self._by_text(SOURCE, codes)

    def _tag_lists(self, words: Sequence[Word]) -> Selection:
        if len(words) == 1:
            return self._by_text(TAG_LIST, self._targets(words[0]).tag_lists)
        codes = self._holding(words, lambda found: found.tag_lists)
        if len(codes):
            items = self._reader.tag_lists().items
            texts = [items[code] for code in codes.tolist()]
            codes = codes[self._matching_texts(texts, words, _any_tag)]
        return self._by_text(TAG_LIST, codes)

    def _holding(self, words: Iterable[Word], texts: Callable[[Targets], Int64s]) -> Int64s:
        """Codes of the `texts` in which each of the words, at least one, is somewhere."""
        first, *others = dict.fromkeys(words)
        codes = texts(self._targets(first))
        for word in others:
            if not len(codes):
                break
            codes = common(codes, texts(self._targets(word)))
        return codes

    def _matching_texts(
        self,
        texts: Sequence[bytes],
        words: Sequence[Word],
        wanted: Callable[[Sequence[Word], bytes], bool],
    ) -> Bools:
        """bool[texts]: which are `wanted` for these words."""
        hits = [wanted(words, text) for text in checking(texts, words, self._check)]
        return np.array(hits, np.bool_)

    def _by_text(self, kind: int, codes: Int64s) -> Selection:
        if not len(codes):
            return NONE
        texts = np.zeros(self._words.texts(kind), np.bool_)
        texts[codes] = True
        return ByText(kind, texts)

    def _message(self, words: Sequence[Word]) -> Selection:
        if len(words) == 1:
            static = self._by_text(TEMPLATE, self._targets(words[0]).templates)
            self._check()
            return either(static, self._variables(words[0]), self.expand)
        return self._phrase(words)

    def _phrase(self, words: Sequence[Word]) -> Selection:
        """Templates decide, but where variables may be among the words."""
        static = [word for word in words if not may_be_variable(word)]
        codes: Int64s | None = None
        if static:
            codes = self._holding(static, lambda found: found.templates)
            if not len(codes):
                return NONE
        rows: Int64s | None = None
        for word in dict.fromkeys(words):
            if word.kind is WordKind.EXACT and not may_be_static(word):
                self._check()
                found = self._words.find_variable(word.text.encode())
                if found is None:
                    return NONE
                if isinstance(found, CandidateBlocks):
                    mine = self._rare(word, found.blocks)
                elif found.is_whole:
                    mine = found.rows
                else:  # of a frequent number the index has no rows
                    continue
                rows = mine if rows is None else common(rows, mine)
                if not len(rows):
                    return NONE
        if rows is not None:
            of_rows = self._reader.template_codes()[rows].astype(np.int64)
            if codes is not None:
                rows = rows[among(of_rows, codes)]
            if len(rows) <= _FEW_ROWS:
                return self._rows(self._matching(rows, words))
            of_rows = distinct(of_rows)
            codes = of_rows if codes is None else common(of_rows, codes)
        if len(static) == len(words):
            whole, _ = phrase_places(self._reader, words, codes, self._check)
            return self._by_text(TEMPLATE, whole)
        blocks = None
        if rows is not None:
            blocks = tuple([block for block, _ in self._reader.per_block(rows)])
        return self._scanned(PhraseScan(tuple(words), codes, blocks))

    def _matching(self, rows: Int64s, words: Sequence[Word]) -> Int64s:
        out = []
        for start in range(0, len(rows), _VERIFY_ROWS):
            self._check()
            some = rows[start : start + _VERIFY_ROWS]
            texts = self._reader.messages(some)
            out.append(some[self._matching_texts(texts, words, _holds)])
        return np.concatenate(out) if out else _NO_CODES

    def _rows(self, rows: Int64s) -> Selection:
        if not len(rows):
            return NONE
        mask = np.zeros(self.count, np.bool_)
        mask[rows] = True
        return Rows(mask)

    # ------------------------------------------------------------ variables

    def _variables(self, word: Word) -> Selection:
        """The rows that hold the word as a variable of their message."""
        if word.kind is WordKind.EXACT:
            return NONE if may_be_static(word) else self._exact_variable(word)
        return self._scanned(VariableScan(word))

    def _scanned(self, scan: Scan) -> Selection:
        found = self._scan(scan)
        return Rows(found) if found.any() else NONE

    def _scan(self, scan: Scan) -> Bools:
        found = self._scanner.scan(self._reader, scan, self._check)
        self._check()
        return found

    def _rare(self, word: Word, blocks: Int64s) -> Int64s:
        """The rows that hold the word as a variable: none, or a few, in these `blocks`. What is
        decoded to find them is what it takes to read them."""
        column = self._reader.messages_column(scan=True)
        found = []
        for block, within in rows_of_rare_word(column, blocks.tolist(), word, self._check):
            rows = within + self._reader.block_rows(block).start
            self._reader.remember_messages(rows, column)
            found.append(rows)
        return np.concatenate(found)

    def _exact_variable(self, word: Word) -> Selection:
        found = self._words.find_variable(word.text.encode())
        if found is None:
            return NONE
        if isinstance(found, CandidateBlocks):
            return self._rows(self._rare(word, found.blocks))
        if not found.certain:
            if not found.is_whole:
                return self._scanned(VariableScan(word))
            return self._rows(self._matching(found.rows, [word]))
        if not len(self._matching(found.rows[:1], [word])):
            return NONE
        if not found.is_whole:
            return Counted(found.count, lambda: self._scan(VariableScan(word)))
        return self._rows(found.rows)


def _holds(words: Sequence[Word], text: bytes) -> bool:
    return matches_words(words, fold(text.decode()))


_tags_decoder = msgspec.json.Decoder(list[str])


def _any_tag(words: Sequence[Word], tags: bytes) -> bool:
    return any(matches_words(words, fold(tag)) for tag in _tags_decoder.decode(tags))
