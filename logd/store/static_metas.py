"""A term with a meta path on metas that are kept as templates and variables.

Whether the words match in a template alone, wherever its variables stand for something else, is
decided once a template: each variable is one word with a digit. So it is, for a term of one word,
what follows where one of the template's variables is that word. Only where neither can be told, as
the template cannot be read as JSON, the metas decide one by one.
"""

import enum
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.ascending import among, distinct
from logd.format.folding import fold_utf8
from logd.format.separated import SEPARATOR
from logd.format.slot_layout import SLOT_BITS, slot_keys
from logd.format.templates import PLACEHOLDER
from logd.query.ast import Term
from logd.query.match import matches
from logd.store.scan import WordSearch, checking
from logd.store.selection import Bools
from logd.store.split_column import SplitColumn

Int64s = npt.NDArray[np.int64]

_DIGITS: Final = "0123456789"
_OF_NUMBERS: Final = _DIGITS + "e"
_FEW_WORDS: Final = 8
_FEW_SLOTS: Final = 256
_SHORT_BYTES: Final = 1024
_SLOT: Final = (1 << SLOT_BITS) - 1


class _Verdict(enum.Enum):
    NO = 0
    YES = 1
    UNKNOWN = 2
    """The metas have to say themselves."""


class _Found(NamedTuple):
    """Of variables that match a word, in any order: the rows that they belong to, and uint8[n],
    what follows from where they stand."""

    rows: Int64s
    verdicts: npt.NDArray[np.uint8]

    def decided(self, verdict: _Verdict) -> Int64s:
        chosen: Int64s = self.rows[self.verdicts == verdict.value]
        return chosen


_NOTHING: Final = _Found(np.zeros(0, np.int64), np.zeros(0, np.uint8))


class StaticMetas:
    """What a term makes of the templates of a chunk's metas."""

    def __init__(self, column: SplitColumn, term: Term, check: Callable[[], None]) -> None:
        self._column = column
        self._term = term
        blob = column.templates.whole().blob
        self._templates = blob.split(SEPARATOR)
        folded = fold_utf8(blob).split(SEPARATOR)
        escaped = np.array([b"\\" in text for text in folded], np.bool_)
        different = list(dict.fromkeys(term.words))
        self._holding = []
        for word in different:
            check()
            needle = word.text.encode()
            holding = np.array([needle in text for text in folded], np.bool_)
            # with an escape the words of the text are not those of the value
            self._holding.append(escaped | holding)
        self._sure = np.zeros(len(folded), np.bool_)
        self._unread = escaped
        self._stand_in = _stand_in(term)
        self._check = check
        self._of_slots: dict[int, _Verdict] = {}
        self._searches = [WordSearch(column, word, check) for word in different]
        self._wanted: frozenset[int] | None = None
        self._says_something = True
        if self._stand_in is None:
            self._unread = np.ones(len(folded), np.bool_)
            return
        possible = np.flatnonzero(np.logical_and.reduce(self._holding) & ~escaped)
        for code in checking(possible.tolist(), term.words, check):
            verdict = _judged(term, self._templates[code], self._stand_in, None)
            self._sure[code] = verdict is _Verdict.YES
            self._unread[code] = verdict is _Verdict.UNKNOWN
        self._wanted = self._classes_that_matter()
        of_templates = self._sure.any() or self._unread.any()
        self._says_something = len(self._searches) > 1 or bool(of_templates)

    def _classes_that_matter(self) -> frozenset[int] | None:
        """Of the slots where something follows if the word is there; None where it takes long to
        tell, or they are not among the classes."""
        key = self._term.meta_path[-1].encode() if self._term.meta_path else b""
        if len(self._term.words) > 1:
            return None
        slots = self._column.templates.slots()
        codes = [
            code
            for code in np.flatnonzero(slots).tolist()
            if self._unread[code] or key in self._templates[code]
        ]
        if int(slots.take(codes).sum()) > _FEW_SLOTS:
            return None
        found = set()
        for code in codes:
            for number in range(slots.item(code)):
                self._check()
                if self._of_slot(code << SLOT_BITS | number) is not _Verdict.NO:
                    kind = self._column.class_of(code, number)
                    if kind is None:
                        return None
                    found.add(kind)
        return frozenset(found)

    def rows(self, block: int, within: slice) -> tuple[Int64s, Int64s]:
        """(rows of a block that match, other rows that may), `within`: where the block lies."""
        if not self._says_something:
            return self._rows_of_hits(self._searches[0], block)
        codes = self._column.codes()[within]
        sure: Bools = self._sure.take(codes)
        doubtful: Bools = self._unread.take(codes)
        possible = ~sure
        for search, holding in zip(self._searches, self._holding, strict=True):
            self._check()
            mine: Bools = holding.take(codes)
            found = self._found(search, block)
            mine[found.rows] = True
            sure[found.decided(_Verdict.YES)] = True
            doubtful[found.decided(_Verdict.UNKNOWN)] = True
            possible &= mine
        return np.flatnonzero(sure), np.flatnonzero(possible & doubtful & ~sure)

    def _rows_of_hits(self, search: WordSearch, block: int) -> tuple[Int64s, Int64s]:
        """The same, where no template says anything without its variables."""
        self._check()
        found = self._found(search, block)
        sure = distinct(found.decided(_Verdict.YES))
        doubtful = distinct(found.decided(_Verdict.UNKNOWN))
        return sure, doubtful[~among(doubtful, sure)]

    def _found(self, search: WordSearch, block: int) -> "_Found":
        hits = self._hits(search, block)
        if not len(hits):
            return _NOTHING
        places = self._column.locate(block, hits)
        return _Found(places.rows, self._verdicts(slot_keys(places.codes, places.numbers)))

    def _hits(self, search: WordSearch, block: int) -> Int64s:
        if self._wanted is not None:
            return search.places_among(block, self._wanted)
        self._column.variables(block)  # half of the work of a block
        self._check()
        return search.places(block)

    def _verdicts(self, keys: Int64s) -> npt.NDArray[np.uint8]:
        """uint8[keys]: what follows where the variable at a slot of a template is the word."""
        different = distinct(keys)
        found = [self._of_slot(key).value for key in different.tolist()]
        return np.array(found, np.uint8)[np.searchsorted(different, keys)]

    def _of_slot(self, key: int) -> _Verdict:
        found = self._of_slots.get(key)
        if found is None:
            code, slot = key >> SLOT_BITS, key & _SLOT
            if len(self._term.words) > 1 or self._unread[code] or self._stand_in is None:
                found = _Verdict.UNKNOWN
            else:
                found = _judged(self._term, self._templates[code], self._stand_in, slot)
            self._of_slots[key] = found
        return found


def _judged(term: Term, template: bytes, stand_in: bytes, slot: int | None) -> _Verdict:
    """Whether the term matches metas of a template, all of whose variables are the stand-in, but
    for the one at `slot`, which is the term's only word."""
    if len(template) <= _SHORT_BYTES and len(term.words) <= _FEW_WORDS:
        return _remembered(term, template, stand_in, slot)
    return _judge(term, template, stand_in, slot)


def _judge(term: Term, template: bytes, stand_in: bytes, slot: int | None) -> _Verdict:
    if slot is None:
        meta = template.replace(PLACEHOLDER, stand_in)
    else:
        meta = _filled(template.split(PLACEHOLDER), slot, term.words[0].text.encode(), stand_in)
    try:
        return _Verdict.YES if matches(term, "", "", (), meta) else _Verdict.NO
    except ValueError:  # 1E+5, of which each half is a variable; or a number begins with the word
        if slot is not None and not _may_be_in_number(term.words[0].text):
            # where only that word breaks it, a number stands there, and never the word
            return _Verdict.NO if _is_sound(template, stand_in) else _Verdict.UNKNOWN
        return _Verdict.UNKNOWN


def _may_be_in_number(word: str) -> bool:
    """A number of JSON may have the word, folded, in it."""
    return all(character in _OF_NUMBERS for character in word)


def _is_sound(template: bytes, stand_in: bytes) -> bool:
    try:
        msgspec.json.decode(template.replace(PLACEHOLDER, stand_in), type=msgspec.Raw)
    except ValueError:
        return False
    return True


_remembered: Final = lru_cache(maxsize=512)(_judge)
"""Short templates come again in other chunks."""


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
