"""Looking for words in whole blocks of variables or texts, where no index covers them."""

import itertools
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from logd.format.ascending import among, distinct
from logd.format.block_variables import BlockVariables, Values
from logd.format.folding import fold_utf8
from logd.query.ast import Word, WordKind
from logd.store.page import Check
from logd.store.split_column import SplitColumn

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.integer[Any]]

T = TypeVar("T")

_NO_CODES: Final = np.zeros(0, np.int64)
_LONG_WORD: Final = 5  # is seldom part of another
_FEW_FOUND: Final = 16
_STRETCH_BYTES: Final = 1 << 18
_STRETCH_TEXTS: Final = 256
_CHECK_EVERY: Final = 128
_CHECK_WORDS: Final = 16  # to look into one meta may take 30 ms


def checking(items: Iterable[T], words: Sequence[Word], check: Check) -> Iterator[T]:
    """The same items, each of which is looked at for the words: `check()` is called between."""
    every = max(1, _CHECK_WORDS // len(words))
    for step, item in enumerate(items):
        if step % every == 0:
            check()
        yield item


def candidate_texts(folded: bytes, at: Int64s, needles: Sequence[bytes], check: Check) -> Int64s:
    """Which of the separated texts hold every needle, or an escape that may stand for one."""
    texts = (max(needles, key=len), b"\\")
    return distinct(np.concatenate([texts_holding(folded, at, text, check) for text in texts]))


def texts_holding(folded: bytes, at: Int64s, part: bytes, check: Check) -> Int64s:
    """Which of the separated texts, whose edges are `at`, hold the part, ascending. They are gone
    through in stretches: no other thread runs while one is searched. `check()` is called between
    and raises to end it."""
    found = []
    first, texts = 0, len(at) - 1
    while first < texts:
        check()
        last = int(np.searchsorted(at, at[first] + _STRETCH_BYTES, side="right")) - 1
        stop = min(max(last, first + 1), first + _STRETCH_TEXTS)
        end = int(at[stop])
        position = folded.find(part, int(at[first]), end)
        while position >= 0:
            text = int(np.searchsorted(at, position, side="right")) - 1
            found.append(text)
            position = folded.find(part, int(at[text + 1]), end)
        first = stop
    return np.array(found, np.int64)


class WordSearch:
    """Looks for a word in the variables of a column, block after block. `check()` is called where
    there is much to look at in one, and raises to end it."""

    def __init__(self, column: SplitColumn, word: Word, check: Check) -> None:
        self._column = column
        self._check = check
        self._wanted = word.text.encode()
        self._is_ascii = self._wanted.isascii()
        self._whole = word.kind is WordKind.EXACT
        self._among: dict[Values, Bools | None] = {}

    def places(self, block: int) -> Int64s:
        """The places, in slot order, of the block's variables that match."""
        variables = self._column.variables(block)
        found = [variables.places_of_kept(self._kept(variables))]
        return np.concatenate([*found, *self._coded(variables)]) if variables.coded else found[0]

    def places_among(self, block: int, wanted: Container[int]) -> Int64s:
        """Of those at least that are of a wanted class. Where all of these are coded, no others are
        read."""
        variables = self._column.variables(block)
        of = variables.kinds()
        if of is None or any(kind in wanted for kind in of.kept):
            return self.places(block)
        coded = [at for at, kind in enumerate(of.coded) if kind in wanted]
        return np.concatenate([_NO_CODES, *self._coded(variables, coded)])

    def few_places(self, block: int) -> Int64s | None:
        """The same of an exact word of ASCII; None where it is short, or found so often that arrays
        are quicker."""
        wanted = self._wanted
        if len(wanted) < _LONG_WORD:
            return None
        variables = self._column.variables(block)
        data = variables.kept.data.lower()
        found: list[int] = []
        position = data.find(wanted)
        for _ in range(_FEW_FOUND):
            if position < 0:
                kept = variables.places_of_kept(np.array(found, np.int64))
                return np.concatenate([kept, *self._coded(variables)])
            index, begin, size = variables.kept_at(position)
            if begin == position and size == len(wanted):
                found.append(index)
            position = data.find(wanted, position + 1)
        return None

    def fitting(self, block: int, places: Int64s) -> Int64s:
        """Which of the variables at these places match: indexes of `places`, ascending."""
        variables = self._column.variables(block)
        found = []
        for coded, which, indexes in variables.parted(places):
            if coded is not None:
                fits = self._fitting_values(variables.coded[coded].values)
                hits = _NO_CODES
                if fits is not None:
                    hits = np.flatnonzero(fits.take(variables.codes[coded].take(indexes)))
            elif self._is_ascii:
                hits = self._kept_among(variables, indexes)
            else:
                hits = np.flatnonzero(among(indexes, self._kept(variables)))
            found.append(which[hits])
        return found[0] if len(found) == 1 else np.sort(np.concatenate([_NO_CODES, *found]))

    def _kept(self, variables: BlockVariables) -> Int64s:
        """Which of those that are kept match, ascending."""
        data, lengths = variables.kept.data, variables.kept.lengths
        wanted = self._wanted
        if not self._is_ascii:
            return _containing(data, lengths, wanted, self._check)
        if self._whole:
            hits = np.flatnonzero(lengths == len(wanted))
            return hits[self._beginning_at(variables, hits)]
        hits = _beginning(data, variables.all_starts_of_kept(), wanted)
        return hits[lengths[hits] >= len(wanted)]  # of too short ones the next was looked at

    def _kept_among(self, variables: BlockVariables, indexes: Int64s) -> Int64s:
        """Which of these, that are kept, match; ASCII."""
        sizes, size = variables.kept.lengths.take(indexes), len(self._wanted)
        hits = np.flatnonzero(sizes == size if self._whole else sizes >= size)
        return hits[self._beginning_at(variables, indexes[hits])]

    def _beginning_at(self, variables: BlockVariables, indexes: Int64s) -> Int64s:
        """Which of these, none of which is shorter, begin with the word."""
        if not len(indexes):
            return indexes
        return _beginning(variables.kept.data, variables.starts_of_kept(indexes), self._wanted)

    def _coded(
        self, variables: BlockVariables, which: Iterable[int] | None = None
    ) -> Iterator[Int64s]:
        """The places of those coded that match; `which` of these, None for all."""
        for at in range(len(variables.coded)) if which is None else which:
            some = variables.coded[at]
            fits = self._fitting_values(some.values)
            if fits is not None:
                yield np.flatnonzero(fits.take(variables.codes[at])) + some.begin

    def _fitting_values(self, values: Values) -> Bools | None:
        """Which of the values match, None for none: looked at once for all blocks."""
        if values not in self._among:
            if self._is_ascii:
                fits = values.beginning_with(self._wanted, whole=self._whole)
            else:
                fits = np.zeros(len(values), np.bool_)
                for code, text in enumerate(values.texts()):
                    if code % _CHECK_EVERY == 0:
                        self._check()
                    fits[code] = self._wanted in fold_utf8(text)
            self._among[values] = fits if fits.any() else None
        return self._among[values]


def _beginning(data: bytes, starts: Codes, wanted: bytes) -> Int64s:
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


def _containing(data: bytes, lengths: Codes, part: bytes, check: Check) -> Int64s:
    """The variables in which the part, not ASCII, occurs, ascending: a step for each of them."""
    if data.isascii():
        return _NO_CODES
    folded, ends = fold_utf8(data), np.cumsum(lengths, dtype=np.int64)
    found = []
    position = folded.find(part)
    for step in itertools.count(1):
        if position < 0:
            break
        variable = int(np.searchsorted(ends, position, side="right"))
        end = int(ends[variable])
        if position + len(part) <= end:
            found.append(variable)
        # where the part goes on into the next variable, all that begin behind it here do so, too
        position = folded.find(part, end)
        if step % _CHECK_EVERY == 0:
            check()
    return np.array(found, np.int64)
