"""A term with a meta path on metas that are kept as templates and variables.

Whether the words match in a template alone, wherever its variables stand for something else, is
decided once a template: each variable is one word with a digit. So it is, for a term of one word,
which of the template's variables match if they are that word. Only where neither can be told, as
the template cannot be read as JSON, the metas decide one by one.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.ascending import among
from logd.format.separated import SEPARATOR, fold_separated
from logd.format.slot_rows import SLOT_BITS, slot_keys
from logd.format.templates import PLACEHOLDER
from logd.query.ast import Term, WordKind
from logd.query.match import matches
from logd.store.scan import matching_variables
from logd.store.selection import Bools
from logd.store.split_column import SplitColumn

Int64s = npt.NDArray[np.int64]

_DIGITS: Final = "0123456789"
_CHECK_EVERY: Final = 64
_MANY_SLOTS: Final = 64


class Verdict(msgspec.Struct, frozen=True):
    """What a template says. `sure`: the words match whatever its variables are. `unread`: the
    template does not tell. `slots`: the variables that decide, `doubtful`: those that may."""

    sure: bool = False
    unread: bool = False
    slots: tuple[int, ...] = ()
    doubtful: tuple[int, ...] = ()


class StaticMetas:
    """What a term makes of the templates of a chunk's metas."""

    def __init__(self, column: SplitColumn, term: Term, check: Callable[[], None]) -> None:
        self._column = column
        self._words = term.words
        blob = column.templates().blob
        folded = fold_separated(blob).split(SEPARATOR)
        needles = [word.text.encode() for word in term.words]
        self._holding = [  # with an escape the words of the text are not those of the value
            np.array([needle in text or b"\\" in text for text in folded], np.bool_)
            for needle in needles
        ]
        self._sure = np.zeros(len(folded), np.bool_)
        self._unread = np.zeros(len(folded), np.bool_)
        deciding, doubtful = [], []
        for code, template in enumerate(blob.split(SEPARATOR)):
            if code % _CHECK_EVERY == 0:
                check()
            verdict = _verdict(term, template)
            self._sure[code], self._unread[code] = verdict.sure, verdict.unread
            deciding += [code << SLOT_BITS | slot for slot in verdict.slots]
            doubtful += [code << SLOT_BITS | slot for slot in verdict.doubtful]
        self._deciding = np.array(deciding, np.int64)
        self._doubtful = np.array(doubtful, np.int64)

    def rows(self, block: int, within: slice) -> tuple[Int64s, Int64s]:
        """(rows of a block that match, other rows that may), `within`: where the block lies."""
        codes = self._column.codes()[within]
        sure: Bools = self._sure.take(codes)
        doubtful: Bools = self._unread.take(codes)
        possible = ~sure
        for word, holding in zip(self._words, self._holding, strict=True):
            mine: Bools = holding.take(codes)
            hits = matching_variables(self._column, block, word)
            if len(hits):
                places = self._column.slot_rows(block).locate(hits)
                mine[places.rows] = True
                keys = slot_keys(places.codes, places.slots)
                sure[places.rows[among(keys, self._deciding)]] = True
                doubtful[places.rows[among(keys, self._doubtful)]] = True
            possible &= mine
        return np.flatnonzero(sure), np.flatnonzero(possible & doubtful & ~sure)


@lru_cache(maxsize=4096)
def _verdict(term: Term, template: bytes) -> Verdict:
    """Templates come again in other chunks."""
    stand_in = _stand_in(term)
    if stand_in is None or b"\\" in template:
        return Verdict(unread=True)
    if f'{(term.meta_path or ("",))[-1]}"'.encode() not in template:
        return Verdict()
    variables = template.count(PLACEHOLDER)
    every = tuple(range(variables))
    try:
        if matches(term, "", "", (), template.replace(PLACEHOLDER, stand_in)):
            return Verdict(sure=True)
    except ValueError:  # such as 1E+5, of which each half is a variable
        return Verdict(unread=True)
    if len(term.words) > 1 or variables > _MANY_SLOTS:
        return Verdict(doubtful=every)
    word = term.words[0]
    if word.kind is WordKind.EXACT and not any(digit in word.text for digit in _DIGITS):
        return Verdict()
    pieces = template.split(PLACEHOLDER)
    slots, doubtful = [], []
    for slot in every:
        try:
            if matches(term, "", "", (), _filled(pieces, slot, word.text.encode(), stand_in)):
                slots.append(slot)
        except ValueError:  # in a number: what the word begins, or holds, may be one
            doubtful.append(slot)
    return Verdict(slots=tuple(slots), doubtful=tuple(doubtful))


def _filled(pieces: Sequence[bytes], slot: int, text: bytes, stand_in: bytes) -> bytes:
    """The template whose variable `slot` is the text, and all others the stand-in."""
    before, behind = stand_in.join(pieces[: slot + 1]), stand_in.join(pieces[slot + 1 :])
    return b"".join([before, text, behind])


def _stand_in(term: Term) -> bytes | None:
    """A number that no word of the term matches, for each variable; None where there is none, or
    where the path may lead through a variable."""
    if any(digit in key for key in term.meta_path or () for digit in _DIGITS):
        return None
    words = {word.text for word in term.words}
    return next((digit.encode() for digit in _DIGITS if digit not in words), None)
