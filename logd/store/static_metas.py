"""A term with a meta path on metas that are kept as templates and variables.

Whether the words match in a template alone, wherever its variables stand for something else, is
decided once a template: each variable is one word with a digit. Only where a variable itself may be
one of the words, or where the template cannot be read as JSON, the metas decide one by one.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from logd.format.separated import SEPARATOR, fold_separated
from logd.format.templates import PLACEHOLDER
from logd.query.ast import Term
from logd.query.match import matches
from logd.store.chunk_reader import SplitColumn
from logd.store.scan import matching_variables
from logd.store.selection import Bools

Int64s = npt.NDArray[np.int64]

_DIGITS: Final = "0123456789"
_CHECK_EVERY: Final = 256


class StaticMetas:
    """What a term makes of the templates of a chunk's metas."""

    def __init__(self, column: SplitColumn, term: Term, check: Callable[[], None]) -> None:
        self._column = column
        self._words = term.words
        blob = column.templates().blob
        folded = fold_separated(blob).split(SEPARATOR)
        escaped = np.array([b"\\" in text for text in folded], np.bool_)
        needles = [word.text.encode() for word in term.words]
        self._holding = [  # with an escape the words of the text are not those of the value
            escaped | np.array([needle in text for text in folded], np.bool_) for needle in needles
        ]
        self._sure = np.zeros(len(folded), np.bool_)
        self._unread = escaped
        stand_in = _stand_in(term)
        if stand_in is None:
            self._unread = np.ones(len(folded), np.bool_)
            return
        possible = np.flatnonzero(np.logical_and.reduce(self._holding) & ~escaped)
        for step, code in enumerate(possible.tolist()):
            if step % _CHECK_EVERY == 0:
                check()
            template = column.templates().texts(np.array([code]))[0]
            try:
                meta = template.replace(PLACEHOLDER, stand_in)
                self._sure[code] = matches(term, "", "", (), meta)
            except ValueError:  # such as 1E+5, of which each half is a variable
                self._unread[code] = True

    def rows(self, block: int, within: slice) -> tuple[Int64s, Int64s]:
        """(rows of a block that match, other rows that may), `within`: where the block lies."""
        codes = self._column.codes()[within]
        sure: Bools = self._sure[codes]
        doubtful: Bools = self._unread[codes]
        possible = ~sure
        for word, holding in zip(self._words, self._holding, strict=True):
            mine: Bools = holding[codes]
            hits = matching_variables(self._column, block, word)
            if len(hits):
                rows = self._column.layout(block).rows_of(hits)
                mine[rows] = True
                doubtful[rows] = True
            possible &= mine
        return np.flatnonzero(sure), np.flatnonzero(possible & doubtful)


def _stand_in(term: Term) -> bytes | None:
    """A number that no word of the term matches, for each variable; None where there is none, or
    where the path may lead through a variable."""
    if any(digit in key for key in term.meta_path or () for digit in _DIGITS):
        return None
    words = {word.text for word in term.words}
    return next((digit.encode() for digit in _DIGITS if digit not in words), None)
