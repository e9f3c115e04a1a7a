"""Reading a chunk's variables or metas, where no index says which rows match.

That is most of the work of the questions that need it, and needs nothing but the chunk: another
process may do it (`Scanner`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.ascending import distinct
from logd.format.folding import fold_utf8
from logd.format.separated import SEPARATOR
from logd.format.slot_layout import SLOT_BITS, slot_keys
from logd.query.ast import And, Node, Not, Or, Term, Word, WordKind
from logd.query.match import matches
from logd.store.at_hand import NotAtHand
from logd.store.chunk_reader import ChunkReader
from logd.store.page import Check
from logd.store.phrases import Gaps, find_phrase, joined, may_be_variable
from logd.store.scan import WordSearch, candidate_texts, checking
from logd.store.selection import Bools
from logd.store.split_column import SplitColumn
from logd.store.static_metas import StaticMetas

Int64s = npt.NDArray[np.int64]

_VERIFY_ROWS: Final = 1024
_VERIFY_TEMPLATES: Final = 512
_VERIFY_BYTES: Final = 64 << 10  # of templates
_VERIFY_STEPS: Final = 1 << 20  # bytes of templates, as many times as the phrase has words
_SLOT: Final = (1 << SLOT_BITS) - 1


class VariableScan(msgspec.Struct, frozen=True, tag="variables"):
    """The rows one of whose variables matches the word."""

    word: Word


class PhraseScan(msgspec.Struct, frozen=True, tag="phrase"):
    """The rows that hold the words side by side, by themselves or with variables among them: of the
    templates of these ascending codes, None for all, and of these blocks, None for all."""

    words: tuple[Word, ...]
    codes: Int64s | None
    blocks: tuple[int, ...] | None


class MetaScan(msgspec.Struct, frozen=True, tag="metas"):
    """The rows whose meta the term, one with a path, matches."""

    term: Term


Scan = VariableScan | PhraseScan | MetaScan


class Scanner(Protocol):
    """`scan_chunk`, wherever it runs. May be called from several threads."""

    def scan(self, reader: ChunkReader, scan: Scan, check: Check) -> Bools: ...

    def share(self, work: Callable[[], None], items: int) -> None:
        """Call `work` in several threads at a time, this one among them, where that is quicker than
        once; others may join in while it runs. Return when all have returned. `items`: chunks that
        it goes through. Raises what one of them raises."""


class ScanHere:
    """A `Scanner` that scans in the thread that asks."""

    def scan(self, reader: ChunkReader, scan: Scan, check: Check) -> Bools:
        return scan_chunk(reader, scan, check)

    def share(self, work: Callable[[], None], items: int) -> None:
        """Other threads would wait for the same interpreter."""


class ScanNothing:
    """A `Scanner` for a search that must be quick."""

    def scan(self, _reader: ChunkReader, _scan: Scan, _check: Check) -> Bools:
        raise NotAtHand

    def share(self, work: Callable[[], None], items: int) -> None:
        """What would be found by then has to be there."""


def may_scan(node: Node) -> bool:
    """Whether a search can lead to a scan of chunks."""
    match node:
        case Term(words=words):
            indexed = all(word.kind is WordKind.EXACT for word in words)
            gaps = len(words) > 1 and any(map(may_be_variable, words))
            return node.meta_path is not None or not indexed or gaps
        case Not(child=child):
            return may_scan(child)
        case And(children=children) | Or(children=children):
            return any(map(may_scan, children))


def scan_chunk(reader: ChunkReader, scan: Scan, check: Check) -> Bools:
    """bool[count]: the rows that match. `check()` is called between blocks and raises to end it.
    Raises Corruption."""
    found = np.zeros(reader.count, np.bool_)
    if isinstance(scan, VariableScan):
        _scan_variables(reader, scan.word, found, check)
    elif isinstance(scan, PhraseScan):
        _scan_phrase(reader, scan, found, check)
    else:
        _scan_metas(reader, scan.term, found, check)
    return found


def _scan_variables(reader: ChunkReader, word: Word, found: Bools, check: Check) -> None:
    column = reader.messages_column(scan=True)
    column.codes()
    search = WordSearch(column, word, check)
    for block in range(reader.blocks()):
        check()
        column.variables(block)  # half of the work of a block
        check()
        rows = _rows_of(column, block, search.places(block), check)
        found[rows + reader.block_rows(block).start] = True


def rows_of_rare_word(
    column: SplitColumn, blocks: Sequence[int], word: Word, check: Check
) -> Iterator[tuple[int, Int64s]]:
    """Of each of the blocks the rows within it that hold the exact word as a variable, ascending.
    It is quick where they are few."""
    search = WordSearch(column, word, check)
    for block in blocks:
        check()
        places = search.few_places(block)
        if places is None:
            places = search.places(block)
        yield block, _rows_of(column, block, places, check)


def _rows_of(column: SplitColumn, block: int, variables: Int64s, check: Check) -> Int64s:
    """The rows within the block that these variables belong to, ascending."""
    if not len(variables):
        return variables
    check()
    return column.rows_of_variables(block, variables)


def _scan_phrase(reader: ChunkReader, scan: PhraseScan, found: Bools, check: Check) -> None:
    whole, gaps = phrase_places(reader, scan.words, scan.codes, check)
    column = reader.messages_column(scan=True)
    if len(whole):
        sure = np.zeros(len(column.templates.slots()), np.bool_)
        sure[whole] = True
        np.take(sure, column.codes(), out=found)
    if scan.blocks is None:
        column.codes()
    search_of = {word: WordSearch(column, word, check) for gap in gaps for word in gap.words}
    keys = [distinct(slot_keys(gap.templates, gap.slots)) for gap in gaps]
    starts = [(some >> SLOT_BITS, some & _SLOT) for some in keys]
    for block in range(reader.blocks()) if scan.blocks is None else scan.blocks:
        check()
        within = reader.block_rows(block)
        for gap, (templates, slots) in zip(gaps, starts, strict=True):
            layout = column.layout(block)
            check()
            which, ranks, rows = layout.members(templates)
            for step, word in enumerate(gap.words):
                if not len(rows):
                    break
                check()
                places = layout.begins(templates, slots + step).take(which) + ranks
                fits = search_of[word].fitting(block, places)
                which, ranks, rows = which[fits], ranks[fits], rows[fits]
            found[rows + within.start] = True


def phrase_places(
    reader: ChunkReader, words: Sequence[Word], codes: Int64s | None, check: Check
) -> tuple[Int64s, list[Gaps]]:
    """(the templates that hold the words, where variables may complete them) among `codes`, None
    for all."""
    whole: list[Int64s] = [np.zeros(0, np.int64)]
    gaps: defaultdict[tuple[Word, ...], list[Gaps]] = defaultdict(list)
    pages = reader.messages_column().templates.pages(codes)
    for some, texts in _few_at_once(pages, len(words)):
        check()
        places = find_phrase(words, SEPARATOR.join(texts))
        whole.append(some[places.whole])
        for gap in places.gaps:
            gaps[gap.words].append(Gaps(gap.words, some[gap.templates], gap.slots))
    return np.concatenate(whole), list(map(joined, gaps.values()))


def _few_at_once(
    pages: Iterable[tuple[Int64s, list[bytes]]], words: int
) -> Iterator[tuple[Int64s, list[bytes]]]:
    """The same codes and templates, each time one or what is soon gone through for a phrase of so
    many words: no other thread runs meanwhile."""
    most = min(_VERIFY_BYTES, _VERIFY_STEPS // words)
    codes: list[Int64s] = []
    texts: list[bytes] = []
    size = 0
    for of_page, templates in pages:
        start = 0
        for at, template in enumerate(templates):
            size += len(template)
            if size > most or len(texts) + at - start == _VERIFY_TEMPLATES:
                if texts or at > start:
                    yield np.concatenate([*codes, of_page[start:at]]), texts + templates[start:at]
                codes, texts, start, size = [], [], at, len(template)
        codes.append(of_page[start:])
        texts += templates[start:]
    if texts:
        yield np.concatenate(codes), texts


def _scan_metas(reader: ChunkReader, term: Term, found: Bools, check: Check) -> None:
    """Metas are read, and looked at closely where they may match."""
    column = reader.metas_column(scan=True)
    texts = reader.meta_texts if column is None else column.texts
    static = None if column is None else StaticMetas(column, term, check)
    for block in range(reader.blocks()):
        check()
        within = reader.block_rows(block)
        if static is None:
            rows = _plain_candidates(reader, block, term.words, check)
        else:
            sure, rows = static.rows(block, within)
            found[sure + within.start] = True
        rows += within.start
        for start in range(0, len(rows), _VERIFY_ROWS):
            check()
            some = rows[start : start + _VERIFY_ROWS]
            metas = zip(some.tolist(), texts(some), strict=True)
            for row, meta in checking(metas, term.words, check):
                found[row] = matches(term, "", "", (), meta)


def _plain_candidates(
    reader: ChunkReader, block: int, words: Sequence[Word], check: Check
) -> Int64s:
    """Rows of a block whose meta may hold all words."""
    raw, at = reader.plain_metas(block)
    needles = [word.text.encode() for word in words]
    return candidate_texts(fold_utf8(raw), at, needles, check)
