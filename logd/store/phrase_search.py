"""Phrases that variables of a chunk's messages may complete, block after block."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from logd.format.slot_rows import SLOT_BITS, Places, among, slot_keys
from logd.query.ast import Word
from logd.store.chunk_reader import ChunkReader
from logd.store.phrases import Gaps
from logd.store.scan import matching_variables
from logd.store.selection import Bools
from logd.store.split_column import SplitColumn

Int64s = npt.NDArray[np.int64]


def rows_that_complete(
    reader: ChunkReader, gaps: Sequence[Gaps], blocks: Iterable[int], check: Callable[[], None]
) -> Bools:
    """bool[count]: the rows of these blocks whose variables are the words that are missing; the
    gaps name templates by their code."""
    column = reader.messages_column(scan=True)
    wanted = np.zeros(len(column.templates().slots), np.bool_)
    for gap in gaps:
        wanted[gap.templates] = True
    keys = [np.unique(slot_keys(gap.templates, gap.slots)) for gap in gaps]
    found = np.zeros(reader.count, np.bool_)
    for block in blocks:
        check()
        within = reader.block_rows(block)
        codes = column.codes()[within]
        if not wanted.take(codes).any():
            continue
        variables = _BlockWords(column, block)
        for gap, allowed in zip(gaps, keys, strict=True):
            found[_completing(variables, gap.words, allowed) + within.start] = True
    return found


def _completing(variables: "_BlockWords", words: Sequence[Word], allowed: Int64s) -> Int64s:
    """The rows of a block whose variables, from one of the allowed places on, are the words."""
    first = variables.places(words[0])
    fits = among(slot_keys(first.codes, first.slots), allowed)
    left = slot_keys(first.rows[fits], first.slots[fits])
    for step, word in enumerate(words[1:], 1):
        if not len(left):
            break
        places = variables.places(word)
        behind = places.slots >= step
        keys = slot_keys(places.rows[behind], places.slots[behind] - step)
        left = np.intersect1d(left, keys, assume_unique=True)
    return left >> SLOT_BITS


class _BlockWords:
    """Where words are among a block's variables, each looked for once."""

    def __init__(self, column: SplitColumn, block: int) -> None:
        self._column = column
        self._block = block
        self._found: dict[Word, Places] = {}

    def places(self, word: Word) -> Places:
        found = self._found.get(word)
        if found is None:
            hits = matching_variables(self._column, self._block, word)
            found = self._found[word] = self._column.slot_rows(self._block).locate(hits)
        return found
