"""Reading a chunk's variables or metas, where no index says which rows match.

That is most of the work of the questions that need it, and needs nothing but the chunk: another
process may do it (`Scanner`).
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.ascending import among
from logd.format.folding import fold_utf8
from logd.format.slot_rows import SLOT_BITS, slot_keys
from logd.query.ast import And, Node, Not, Or, Term, Word, WordKind
from logd.query.match import matches
from logd.store.chunk_reader import ChunkReader
from logd.store.phrases import Gaps, may_be_static
from logd.store.scan import candidate_texts, matching_variables
from logd.store.selection import Bools
from logd.store.static_metas import StaticMetas

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]
Check = Callable[[], None]

_VERIFY_ROWS: Final = 1024
_SLOT: Final = (1 << SLOT_BITS) - 1


class VariableScan(msgspec.Struct, frozen=True, tag="variables"):
    """The rows one of whose variables matches the word."""

    word: Word


class GapScan(msgspec.Struct, frozen=True, tag="gaps"):
    """The rows of these blocks, None for all, whose variables are the words that are missing; the
    gaps name templates by their code."""

    gaps: tuple[Gaps, ...]
    blocks: tuple[int, ...] | None


class MetaScan(msgspec.Struct, frozen=True, tag="metas"):
    """The rows whose meta the term, one with a path, matches."""

    term: Term


Scan = VariableScan | GapScan | MetaScan


class Scanner(Protocol):
    """`scan_chunk`, wherever it runs. May be called from several threads."""

    def scan(self, reader: ChunkReader, scan: Scan, check: Check) -> Bools: ...

    def share(self, work: Callable[[], None]) -> None:
        """Call `work` in several threads at a time, this one among them, where that is quicker than
        once; return when all have returned. Raises what one of them raises."""


class ScanHere:
    """A `Scanner` that scans in the thread that asks."""

    def scan(self, reader: ChunkReader, scan: Scan, check: Check) -> Bools:
        return scan_chunk(reader, scan, check)

    def share(self, work: Callable[[], None]) -> None:
        """Other threads would wait for the same interpreter."""


def may_scan(node: Node) -> bool:
    """Whether a search can lead to a scan of chunks."""
    match node:
        case Term(words=words):
            indexed = all(word.kind is WordKind.EXACT for word in words)
            gaps = len(words) > 1 and not all(map(may_be_static, words))
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
    elif isinstance(scan, GapScan):
        _scan_gaps(reader, scan, found, check)
    else:
        _scan_metas(reader, scan.term, found, check)
    return found


def _scan_variables(reader: ChunkReader, word: Word, found: Bools, check: Check) -> None:
    column = reader.messages_column(scan=True)
    for block in range(reader.blocks()):
        check()
        hits = matching_variables(column, block, word)
        if len(hits):
            within = reader.block_rows(block)
            found[column.slot_rows(block).locate(hits).rows + within.start] = True


def _scan_gaps(reader: ChunkReader, scan: GapScan, found: Bools, check: Check) -> None:
    column = reader.messages_column(scan=True)
    wanted = np.zeros(len(column.templates().slots), np.bool_)
    for gap in scan.gaps:
        wanted[gap.templates] = True
    ordered = [np.sort(slot_keys(gap.templates, gap.slots)) for gap in scan.gaps]
    places = [(keys >> SLOT_BITS, keys & _SLOT) for keys in ordered]
    for block in range(reader.blocks()) if scan.blocks is None else scan.blocks:
        check()
        within = reader.block_rows(block)
        codes = column.codes()[within]
        if not wanted.take(codes).any():
            continue
        for gap, (templates, first) in zip(scan.gaps, places, strict=True):
            here, steps = column.slot_rows(block).stretches(templates, first)
            for number, word in enumerate(gap.words):
                wanted_at = here + number * steps
                fits = among(wanted_at, matching_variables(column, block, word, wanted_at))
                here, steps = here[fits], steps[fits]
                if not len(here):
                    break
            if len(here):
                found[column.slot_rows(block).locate(here).rows + within.start] = True


def _scan_metas(reader: ChunkReader, term: Term, found: Bools, check: Check) -> None:
    """Metas are read, and looked at closely where they may match."""
    column = reader.metas_column(scan=True)
    texts = reader.meta_texts if column is None else column.texts
    static = None if column is None else StaticMetas(column, term, check)
    for block in range(reader.blocks()):
        check()
        within = reader.block_rows(block)
        if static is None:
            rows = _plain_candidates(reader, block, term.words)
        else:
            sure, rows = static.rows(block, within)
            found[sure + within.start] = True
        rows += within.start
        for start in range(0, len(rows), _VERIFY_ROWS):
            check()
            some = rows[start : start + _VERIFY_ROWS]
            hits = [matches(term, "", "", (), meta) for meta in texts(some)]
            found[some[np.array(hits, np.bool_)]] = True


def _plain_candidates(reader: ChunkReader, block: int, words: Sequence[Word]) -> Int64s:
    """Rows of a block whose meta may hold all words."""
    raw, at = reader.plain_metas(block)
    needles = [word.text.encode() for word in words]
    return candidate_texts(fold_utf8(raw), at, needles)
