"""Searching one chunk: the index narrows, the text decides.

A word without a digit can only stand in a template, a source or a tag; the vocabulary knows which
exactly. A word with a digit may also be a variable; the postings give the entries whose variables
have its hash, and the text of one of them (or of each, where two words share the hash) decides.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from logd.entry import Entry
from logd.format.chunk import encode_postings, encode_vocabulary
from logd.format.postings import PostingsIndex
from logd.format.separated import SEPARATOR, fold_separated
from logd.format.vocabulary import SOURCE, TAG_LIST, TEMPLATE, Targets, VocabularyIndex
from logd.query.ast import Field, Term, Word, WordKind
from logd.query.match import matches, matches_words
from logd.store.chunk_reader import ChunkReader, SplitColumn, Variables
from logd.store.index import IndexReader
from logd.store.selection import (
    ALL,
    NONE,
    Bools,
    ByText,
    Counted,
    Everything,
    Nothing,
    Rows,
    Selection,
    both,
    either,
)
from logd.words import fold, fold_utf8

Int64s = npt.NDArray[np.int64]

_NO_CODES = np.zeros(0, np.int64)
_NO_TARGETS = Targets(_NO_CODES, _NO_CODES, _NO_CODES)
_VERIFY_ROWS = 1024
_PLACEHOLDER_WORD = b"0"  # holds a digit, as every variable does: no digit-free word equals it


class ChunkSearch:
    """A chunk under one query, in one thread. Raises Corruption where its bytes do not hold."""

    def __init__(self, reader: ChunkReader, index: IndexReader, check: Callable[[], None]) -> None:
        self._reader = reader
        self._index = index
        self._check = check
        self._vocabulary: VocabularyIndex | None = None
        self._found: dict[Word, Targets] = {}
        self._postings: PostingsIndex | None = None
        self.first_seq = reader.first_seq
        self.count = reader.count
        self.min_ts_ns = reader.row.min_ts_ns
        self.max_ts_ns = reader.row.max_ts_ns
        self.level_counts = reader.row.level_counts

    # ------------------------------------------------------------ columns

    def times(self) -> Int64s:
        return self._reader.times()

    def time_order(self) -> Int64s | None:
        return self._reader.time_order()

    def levels(self) -> Int64s:
        return self._reader.levels()

    def entries(self, rows: Int64s) -> list[Entry]:
        return self._reader.entries(rows)

    def text_counts(self, kind: int) -> Int64s:
        """int64[4, texts]: entries of each level that refer to each text of the kind."""
        return self.vocabulary().counts(kind)

    def expand(self, selection: ByText) -> Bools:
        codes = {
            TEMPLATE: self._reader.template_codes,
            SOURCE: self._reader.source_codes,
            TAG_LIST: self._reader.tag_codes,
        }[selection.kind]()
        mask: Bools = selection.texts[codes]
        return mask

    # ------------------------------------------------------------ index values

    def vocabulary(self) -> VocabularyIndex:
        if self._vocabulary is None:
            self._vocabulary = self._stored_vocabulary() or VocabularyIndex(
                rebuild_vocabulary(self._reader)
            )
        return self._vocabulary

    def _stored_vocabulary(self) -> VocabularyIndex | None:
        """None where it is missing or damaged: a merge took it away, or the index is not whole."""
        value = self._index.vocabulary(self.first_seq)
        try:
            return None if value is None else VocabularyIndex(value)
        except ValueError:
            return None

    def postings(self) -> PostingsIndex:
        if self._postings is None:
            self._postings = self._stored_postings() or PostingsIndex(
                rebuild_postings(self._reader)
            )
        return self._postings

    def _stored_postings(self) -> PostingsIndex | None:
        value = self._index.postings(self.first_seq)
        try:
            return None if value is None else PostingsIndex(value)
        except ValueError:
            return None

    def _targets(self, word: Word) -> Targets:
        """A search asks for a word once a field: it is looked up once."""
        found = self._found.get(word)
        if found is None:
            found = self._found[word] = self._look_up(word)
        return found

    def _look_up(self, word: Word) -> Targets:
        try:
            return _find_targets(self.vocabulary(), word)
        except ValueError:  # a damaged page: the chunk itself still knows
            self._vocabulary = VocabularyIndex(rebuild_vocabulary(self._reader))
            return _find_targets(self._vocabulary, word)

    # ------------------------------------------------------------ terms

    def term(self, term: Term) -> Selection:
        """The rows that the term matches."""
        if term.meta_path is not None:
            return self._meta(term)
        found: Selection = NONE
        if term.field in (Field.ANY, Field.MESSAGE):
            found = self._message(term.words)
        if term.field in (Field.ANY, Field.SOURCE):
            found = either(found, self._sources(term.words), self.expand)
        if term.field in (Field.ANY, Field.TAG):
            found = either(found, self._tag_lists(term.words), self.expand)
        return found

    def _sources(self, words: Sequence[Word]) -> Selection:
        codes = _common([self._targets(word).sources for word in words])
        if len(words) > 1 and len(codes):
            items = self._reader.sources().items
            codes = _where(codes, lambda code: matches_words(words, fold(items[code].decode())))
        return self._by_text(SOURCE, codes)

    def _tag_lists(self, words: Sequence[Word]) -> Selection:
        codes = _common([self._targets(word).tag_lists for word in words])
        if len(words) > 1 and len(codes):
            items = self._reader.tag_lists().items
            codes = _where(codes, lambda code: _any_tag(words, items[code]))
        return self._by_text(TAG_LIST, codes)

    def _by_text(self, kind: int, codes: Int64s) -> Selection:
        if not len(codes):
            return NONE
        texts = np.zeros(self.vocabulary().texts(kind), np.bool_)
        texts[codes] = True
        return ByText(kind, texts)

    def _message(self, words: Sequence[Word]) -> Selection:
        if len(words) == 1:
            static = self._by_text(TEMPLATE, self._targets(words[0]).templates)
            return either(static, self._variables(words[0]), self.expand)
        if all(map(_is_static, words)):
            codes = _common([self._targets(word).templates for word in words])
            items = self._reader.messages_column().templates().items if len(codes) else []
            codes = _where(codes, lambda code: matches_words(words, _static_text(items[code])))
            return self._by_text(TEMPLATE, codes)
        return self._verified(self._candidates(words), words)

    def _candidates(self, words: Sequence[Word]) -> Selection:
        """Rows among which those with all words are. Frequent variables are only looked for if
        nothing narrower is known: the text decides afterwards anyway."""
        candidates: Selection = ALL
        frequent: list[Counted] = []
        for word in words:
            found = self._message([word])
            if isinstance(found, Counted):
                frequent.append(found)
            else:
                candidates = both(candidates, found, self.expand)
        if isinstance(candidates, Everything) and frequent:
            return min(frequent, key=lambda found: found.count)
        return candidates

    def _verified(self, candidates: Selection, words: Sequence[Word]) -> Selection:
        """The candidate rows whose message holds the words side by side."""
        if isinstance(candidates, Nothing):
            return NONE
        if isinstance(candidates, Everything):
            rows = np.arange(self.count)
        elif isinstance(candidates, ByText):
            rows = np.flatnonzero(self.expand(candidates))
        elif isinstance(candidates, Counted):
            rows = np.flatnonzero(candidates.find())
        else:
            rows = np.flatnonzero(candidates.mask)
        return self._rows(self._matching(rows, words))

    def _matching(self, rows: Int64s, words: Sequence[Word]) -> Int64s:
        out = []
        for start in range(0, len(rows), _VERIFY_ROWS):
            self._check()
            some = rows[start : start + _VERIFY_ROWS]
            texts = self._reader.messages(some)
            hits = [matches_words(words, fold(text.decode())) for text in texts]
            out.append(some[np.array(hits, np.bool_)])
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
            return self._exact_variable(word) if _has_digit(word.text) else NONE
        found = self._read_variables(word)
        return Rows(found) if found.any() else NONE

    def _read_variables(self, word: Word) -> Bools:
        """bool[count]: the rows one of whose variables matches the word."""
        column = self._reader.messages_column()
        found = np.zeros(self.count, np.bool_)
        for block in range(self._reader.blocks()):
            self._check()
            hits = matching_variables(column.variables(block), word)
            if len(hits):
                rows = column.layout(block).rows()[hits]
                found[rows + self._reader.block_rows(block).start] = True
        return found

    def _exact_variable(self, word: Word) -> Selection:
        try:
            found = self.postings().find(word.text.encode())
        except ValueError:
            self._postings = PostingsIndex(rebuild_postings(self._reader))
            found = self._postings.find(word.text.encode())
        if found is None:
            return NONE
        if not found.certain:
            if not found.is_whole:
                mask = self._read_variables(word)
                return Rows(mask) if mask.any() else NONE
            return self._rows(self._matching(found.rows, [word]))
        if not len(self._matching(found.rows[:1], [word])):
            return NONE
        if not found.is_whole:
            return Counted(found.count, lambda: self._read_variables(word))
        return self._rows(found.rows)

    # ------------------------------------------------------------ meta

    def _meta(self, term: Term) -> Selection:
        """No index covers metas: they are read, and looked at closely where they may match."""
        found = []
        for block in range(self._reader.blocks()):
            self._check()
            rows = self._meta_candidates(block, term.words) + self._reader.block_rows(block).start
            for start in range(0, len(rows), _VERIFY_ROWS):
                self._check()
                some = rows[start : start + _VERIFY_ROWS]
                metas = self._reader.meta_texts(some)
                hits = [matches(term, "", "", (), meta) for meta in metas]
                found.append(some[np.array(hits, np.bool_)])
        return self._rows(np.concatenate(found)) if found else NONE

    def _meta_candidates(self, block: int, words: Sequence[Word]) -> Int64s:
        """Rows of a block whose meta may hold all words."""
        column = self._reader.metas_column()
        if column is None:
            raw, at = self._reader.plain_metas(block)
            needles = [word.text.encode() for word in words]
            return candidate_texts(fold_separated(raw), at, needles)
        found = np.ones(len(column.layout(block).codes), np.bool_)
        for word in words:
            found &= _split_texts_holding(column, block, word)
        return np.flatnonzero(found)


def _split_texts_holding(column: SplitColumn, block: int, word: Word) -> Bools:
    """bool[rows of the block]: the texts whose template, or one of whose variables, may hold the
    word. Where the template has a backslash the words of the text are not those of the value."""
    needle = word.text.encode()
    templates = fold_separated(SEPARATOR.join(column.templates().items)).split(SEPARATOR)
    holding = np.array([needle in text or b"\\" in text for text in templates], np.bool_)
    layout = column.layout(block)
    found: Bools = holding[layout.codes]
    hits = matching_variables(column.variables(block), word)
    if len(hits):
        found[layout.rows()[hits]] = True
    return found


def matching_variables(variables: Variables, word: Word) -> Int64s:
    """Which of a block's variables, in slot order, match the word."""
    wanted = word.text.encode()
    if word.kind is WordKind.SUBSTRING:
        if variables.data.isascii():
            return _NO_CODES
        return _containing(fold_utf8(variables.data), variables.ends, wanted)
    lengths = np.diff(variables.ends, prepend=0)
    exact = word.kind is WordKind.EXACT
    hits = np.flatnonzero(lengths == len(wanted) if exact else lengths >= len(wanted))
    return _beginning(fold_utf8(variables.data), variables.ends - lengths, hits, wanted)


def candidate_texts(folded: bytes, at: Int64s, needles: Sequence[bytes]) -> Int64s:
    """Which of the separated texts hold every needle, or an escape that may stand for one."""
    rows = np.union1d(_holding(folded, at, max(needles, key=len)), _holding(folded, at, b"\\"))
    return rows.astype(np.int64)


def _holding(folded: bytes, at: Int64s, needle: bytes) -> Int64s:
    found = []
    position = folded.find(needle)
    while position >= 0:
        row = int(np.searchsorted(at, position, side="right")) - 1
        found.append(row)
        position = folded.find(needle, int(at[row + 1]))
    return np.array(found, np.int64)


def _beginning(folded: bytes, starts: Int64s, hits: Int64s, prefix: bytes) -> Int64s:
    """Those of the variables `hits`, each long enough, that begin with the prefix."""
    array = np.frombuffer(folded, np.uint8)
    for offset, byte in enumerate(prefix):
        if not len(hits):
            break
        hits = hits[array[starts[hits] + offset] == byte]
    return hits


def _containing(folded: bytes, ends: Int64s, part: bytes) -> Int64s:
    found = []
    position = folded.find(part)
    while position >= 0:
        variable = int(np.searchsorted(ends, position, side="right"))
        if position + len(part) <= ends[variable]:
            found.append(variable)
        position = folded.find(part, position + 1)
    return np.array(found, np.int64)


def _find_targets(vocabulary: VocabularyIndex, word: Word) -> Targets:
    text = word.text.encode()
    if word.kind is WordKind.PREFIX:
        return vocabulary.find_prefix(text)
    if word.kind is WordKind.SUBSTRING:
        return vocabulary.find_substring(text)
    return vocabulary.find(text) or _NO_TARGETS


def _common(lists: Sequence[Int64s]) -> Int64s:
    """Codes that are in every list."""
    out = lists[0]
    for other in lists[1:]:
        out = np.intersect1d(out, other, assume_unique=True)
    return out


def _where(codes: Int64s, wanted: Callable[[int], bool]) -> Int64s:
    return np.array([code for code in codes.tolist() if wanted(code)], np.int64)


def _is_static(word: Word) -> bool:
    """No variable can equal the word."""
    return word.kind is WordKind.EXACT and not _has_digit(word.text)


def _has_digit(text: str) -> bool:
    return any("0" <= character <= "9" for character in text)


def _static_text(template: bytes) -> str:
    return fold(template.replace(b"\xff", _PLACEHOLDER_WORD).decode())


_tags_decoder = msgspec.json.Decoder(list[str])


def _any_tag(words: Sequence[Word], tags: bytes) -> bool:
    return any(matches_words(words, fold(tag)) for tag in _tags_decoder.decode(tags))


def rebuild_vocabulary(reader: ChunkReader) -> bytes:
    """The chunk's vocabulary, from its columns."""
    return encode_vocabulary(
        (
            reader.messages_column().templates().items,
            reader.sources().items,
            reader.tag_lists().items,
        ),
        (reader.template_codes(), reader.source_codes(), reader.tag_codes()),
        reader.levels(),
    )


def rebuild_postings(reader: ChunkReader) -> bytes:
    """The chunk's variable postings, from its columns."""
    data, lengths, rows = [], [], []
    for block in range(reader.blocks()):
        variables = reader.messages_column().variables(block)
        data.append(variables.data)
        lengths.append(np.diff(variables.ends, prepend=0))
        rows.append(reader.messages_column().layout(block).rows() + reader.block_rows(block).start)
    return encode_postings(b"".join(data), np.concatenate(lengths), np.concatenate(rows))
