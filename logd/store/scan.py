"""Looking for words in whole blocks of variables or texts, where no index covers them."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from logd.query.ast import Word, WordKind
from logd.store.split_column import SplitColumn
from logd.words import fold_utf8

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]

_NO_CODES: Final = np.zeros(0, np.int64)
_SEARCHED_BYTES: Final = 3
"""A shorter word is in too many places for a search of the text to be quick."""
_MANY_PLACES: Final = 24
"""Places found one by one; beyond it the variables are compared all at once."""


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


def matching_variables(column: SplitColumn, block: int, word: Word) -> Int64s:
    """Which of a block's variables, in slot order, match the word: ascending."""
    wanted = word.text.encode()
    data = column.variable_data(block)
    if not wanted.isascii():
        if data.isascii():
            return _NO_CODES
        return _containing(fold_utf8(data), column.variable_edges(block)[1:], wanted)
    if len(wanted) >= _SEARCHED_BYTES:
        # without letters, which have two forms, the text can be searched as it stands
        places = _places(data if wanted.upper() == wanted else data.lower(), wanted)
        if not places:
            return _NO_CODES
        if len(places) < _MANY_PLACES:
            return _at_starts(column, block, np.array(places), word)
    return _compared(column, block, data, word)


def _places(text: bytes, wanted: bytes) -> list[int]:
    """Where it occurs; not all of them, but _MANY_PLACES, where there are as many."""
    found = []
    position = text.find(wanted)
    while position >= 0:
        found.append(position)
        if len(found) == _MANY_PLACES:
            break
        position = text.find(wanted, position + 1)
    return found


def _at_starts(column: SplitColumn, block: int, places: Int64s, word: Word) -> Int64s:
    """The variables that begin where what is wanted occurs, and end there if they are to."""
    edges = column.variable_edges(block)
    hits = np.searchsorted(edges, places.astype(edges.dtype), side="right") - 1
    stops, wanted = edges[hits + 1], places + len(word.text)
    fits = stops == wanted if word.kind is WordKind.EXACT else stops >= wanted
    matching: Int64s = hits[(edges[hits] == places) & fits]
    return matching


def _compared(column: SplitColumn, block: int, data: bytes, word: Word) -> Int64s:
    """The same by the variables' bytes, of all of them the first, of those that fit the next."""
    lengths = column.variable_lengths(block)
    starts = column.variable_edges(block)[:-1].astype(np.int64)
    hits: Int64s | None = None
    if word.kind is WordKind.EXACT:
        hits = np.flatnonzero(lengths == len(word.text))
        starts = starts.take(hits)
    array = np.frombuffer(data, np.uint8)
    for offset, byte in enumerate(word.text.encode()):
        if not len(starts):
            return _NO_CODES
        found = array.take(starts + offset if offset else starts, mode="clip")
        equal = found == byte
        if chr(byte).isalpha():
            equal |= found == byte - 32
        fitting = np.flatnonzero(equal)
        hits = fitting if hits is None else hits.take(fitting)
        starts = starts.take(fitting)
    if hits is None:
        raise ValueError("a word has at least one character")
    return hits[lengths[hits] >= len(word.text)]  # of too short ones the next was looked at


def _containing(folded: bytes, ends: Codes, part: bytes) -> Int64s:
    """The variables in which the part occurs."""
    found = []
    position = folded.find(part)
    while position >= 0:
        variable = int(np.searchsorted(ends, position, side="right"))
        if position + len(part) <= ends[variable]:
            found.append(variable)
        position = folded.find(part, position + 1)
    return np.unique(np.array(found, np.int64))
