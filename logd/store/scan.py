"""Looking for words in whole blocks of variables or texts, where no index covers them."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from logd.format.ascending import among, distinct
from logd.format.folding import fold_utf8
from logd.query.ast import Word, WordKind
from logd.store.split_column import SplitColumn

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]

_NO_CODES: Final = np.zeros(0, np.int64)
_LONG_WORD: Final = 5  # is seldom part of another
_FEW_FOUND: Final = 16


def candidate_texts(folded: bytes, at: Int64s, needles: Sequence[bytes]) -> Int64s:
    """Which of the separated texts hold every needle, or an escape that may stand for one."""
    texts = (max(needles, key=len), b"\\")
    return distinct(np.concatenate([_holding(folded, at, text) for text in texts]))


def _holding(folded: bytes, at: Int64s, needle: bytes) -> Int64s:
    found = []
    position = folded.find(needle)
    while position >= 0:
        row = int(np.searchsorted(at, position, side="right")) - 1
        found.append(row)
        position = folded.find(needle, int(at[row + 1]))
    return np.array(found, np.int64)


def matching_variables(column: SplitColumn, block: int, word: Word) -> Int64s:
    """Which of a block's variables match the word."""
    wanted = word.text.encode()
    if not wanted.isascii():
        return _containing(column, block, wanted)
    lengths = column.variable_lengths(block)
    if word.kind is WordKind.EXACT:
        hits = np.flatnonzero(lengths == len(wanted))
        return hits[_beginning_with(column, block, hits, wanted)]
    starts = column.variable_edges(block)[:-1].astype(np.int64)
    hits = _beginning(column.variable_data(block), starts, wanted)
    return hits[lengths[hits] >= len(wanted)]  # of too short ones the next was looked at


def rare_variables(column: SplitColumn, block: int, word: Word) -> Int64s | None:
    """Which of a block's variables are the exact word, one of ASCII; None where it is short, or
    found so often that arrays are quicker (`matching_variables`)."""
    wanted = word.text.encode()
    if len(wanted) < _LONG_WORD:
        return None
    data = column.variable_data(block).lower()
    found: list[int] = []
    position = data.find(wanted)
    for _ in range(_FEW_FOUND):
        if position < 0:
            return np.array(found, np.int64)
        variable, begin, size = column.variable_at(block, position)
        if begin == position and size == len(wanted):
            found.append(variable)
        position = data.find(wanted, position + 1)
    return None


def fitting_variables(column: SplitColumn, block: int, word: Word, places: Int64s) -> Int64s:
    """Which of the variables at these places in slot order match the word: indexes of `places`,
    ascending."""
    wanted = word.text.encode()
    if not wanted.isascii():
        return np.flatnonzero(among(places, _containing(column, block, wanted)))
    sizes = column.variable_lengths(block).take(places)
    exact = word.kind is WordKind.EXACT
    hits = np.flatnonzero(sizes == len(wanted) if exact else sizes >= len(wanted))
    return hits[_beginning_with(column, block, places[hits], wanted)]


def _beginning_with(column: SplitColumn, block: int, places: Int64s, wanted: bytes) -> Int64s:
    """Which of the variables at these places begin with the word; none is shorter."""
    if not len(places):
        return places
    starts = column.variable_starts(block, places)
    return _beginning(column.variable_data(block), starts, wanted)


def _beginning(data: bytes, starts: Int64s, wanted: bytes) -> Int64s:
    """At which of the starts the word, of one character at least, begins.

    Of all of them the first byte is compared, of those that fit the next: about as quick as to
    search the text for the word, and other threads run meanwhile.
    """
    array = np.frombuffer(data, np.uint8)
    hits: Int64s | None = None
    for offset, byte in enumerate(wanted):
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
    return hits


def _containing(column: SplitColumn, block: int, part: bytes) -> Int64s:
    """The variables in which the part, not ASCII, occurs."""
    data = column.variable_data(block)
    if data.isascii():
        return _NO_CODES
    folded, ends = fold_utf8(data), column.variable_edges(block)[1:]
    found = []
    position = folded.find(part)
    while position >= 0:
        variable = int(np.searchsorted(ends, position, side="right"))
        if position + len(part) <= ends[variable]:
            found.append(variable)
        position = folded.find(part, position + 1)
    return distinct(np.array(found, np.int64))
