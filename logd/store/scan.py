"""Looking for words in whole blocks of variables or texts, where no index covers them."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from logd.query.ast import Word, WordKind
from logd.store.chunk_reader import SplitColumn
from logd.words import fold_utf8

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]

_NO_CODES: Final = np.zeros(0, np.int64)
_MANY_TIMES: Final = 1000
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
    """Which of a block's variables, in slot order, match the word."""
    wanted = word.text.encode()
    data = column.variable_data(block)
    if word.kind is WordKind.SUBSTRING and data.isascii():
        return _NO_CODES
    folded = fold_utf8(data)
    times = folded.count(wanted)
    if not times:
        return _NO_CODES
    ends = column.variable_ends(block)
    if word.kind is WordKind.SUBSTRING:
        return _containing(folded, ends, wanted)
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1]
    if times <= _MANY_TIMES:
        return _at_starts(folded, starts, ends, wanted, word.kind)
    lengths = ends - starts
    exact = word.kind is WordKind.EXACT
    hits = np.flatnonzero(lengths == len(wanted) if exact else lengths >= len(wanted))
    return _beginning(folded, starts, hits, wanted)


def _beginning(folded: bytes, starts: Codes, hits: Int64s, prefix: bytes) -> Int64s:
    """Those of the variables `hits`, each long enough, that begin with the prefix."""
    array = np.frombuffer(folded, np.uint8)
    for offset, byte in enumerate(prefix):
        if not len(hits):
            break
        hits = hits[array[starts[hits] + offset] == byte]
    return hits


def _at_starts(folded: bytes, starts: Codes, ends: Codes, wanted: bytes, kind: WordKind) -> Int64s:
    """The variables that are, or begin with, what is wanted; for what seldom occurs."""
    found = []
    position = folded.find(wanted)
    while position >= 0:
        found.append(position)
        position = folded.find(wanted, position + 1)
    places = np.array(found, starts.dtype)
    hits = np.searchsorted(ends, places, side="right")
    stops = places + len(wanted)
    fits = ends[hits] == stops if kind is WordKind.EXACT else ends[hits] >= stops
    matching: Int64s = hits[(starts[hits] == places) & fits]
    return matching


def _containing(folded: bytes, ends: Codes, part: bytes) -> Int64s:
    found = []
    position = folded.find(part)
    while position >= 0:
        variable = int(np.searchsorted(ends, position, side="right"))
        if position + len(part) <= ends[variable]:
            found.append(variable)
        position = folded.find(part, position + 1)
    return np.array(found, np.int64)
