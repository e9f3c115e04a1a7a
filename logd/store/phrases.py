"""Words side by side in texts that are kept as templates: what `query/match.py` decides for a text,
for many templates at once. Pure.

A variable stands in its template as one byte, and is one word with a digit. So where a template
holds a phrase but for some variables, those have to be the words that are missing.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.ascending import distinct
from logd.format.folding import fold_utf8
from logd.format.separated import SEPARATOR
from logd.format.templates import PLACEHOLDER
from logd.query.ast import Word, WordKind
from logd.words import WORD_BYTE

Int64s = npt.NDArray[np.int64]

_GAP: Final = rb"[^0-9A-Za-z_\x80-\xf7\xfe\xff]++"
"""Between two words of a template: neither a word, nor a variable, nor the template's end."""

_IN_WORD: Final = rb"[0-9A-Za-z_\x80-\xf7]"
_VARIABLE: Final = rb"(\xff)"
_ALONE: Final = "alone"
"""A group that is there where the first word of a phrase stands, and the others do not follow."""
_PATTERNS: Final = 64
"""Are kept: one of a long phrase takes 100 KB, which no cache counts."""

_IS_WORD_BYTE: Final = np.frombuffer(WORD_BYTE, np.bool_)


class Gaps(msgspec.Struct, frozen=True):
    """Places at which templates hold a phrase but for `words`, each of which a variable has to be.

    `templates`, `slots`: int64[k]: the template's index, and which of its variables has to be the
    first word; the variables behind it have to be the others.
    """

    words: tuple[Word, ...]
    templates: Int64s
    slots: Int64s


def joined(gaps: Sequence[Gaps]) -> Gaps:
    """All of these, at least one, of the same words."""
    templates = np.concatenate([gap.templates for gap in gaps])
    return Gaps(gaps[0].words, templates, np.concatenate([gap.slots for gap in gaps]))


class PhrasePlaces(msgspec.Struct, frozen=True):
    """`whole`: int64[k], ascending: indexes of the templates that hold the phrase by themselves."""

    whole: Int64s
    gaps: tuple[Gaps, ...]


def find_phrase(words: Sequence[Word], templates: bytes) -> PhrasePlaces:
    """Where in the separated templates, at least one, the words may match side by side."""
    # where all words are variables' there is nothing to compare in the templates but their gaps
    folded = fold_utf8(templates) if any(map(may_be_static, words)) else templates
    pattern = _pattern(tuple(words))
    able = [word for word in words if may_be_variable(word)]
    found: dict[tuple[Word, ...], list[int]] = {}
    if pattern.groups == sum(not may_be_static(word) for word in words):  # no word has two forms
        found[tuple(able)] = [match.start() for match in pattern.finditer(folded)]
    else:
        may_be_alone = _ALONE in pattern.groupindex
        for match in pattern.finditer(folded):
            if may_be_alone and match[_ALONE] is not None:
                continue
            missing = zip(able, match.groups(), strict=False)  # the last group may be `_ALONE`
            key = tuple([word for word, there in missing if there])
            found.setdefault(key, []).append(match.start())
    where = _Places(folded, begins_in_word=words[0].kind is WordKind.SUBSTRING)
    whole, _ = where.of(found.pop((), []))
    gaps = []
    for missing_words, starts in found.items():
        indexes, slots = where.of(starts)
        if len(indexes):
            gaps.append(Gaps(missing_words, indexes, slots))
    return PhrasePlaces(distinct(whole), tuple(gaps))


class _Places:
    """From places in separated templates, folded, to templates and variables."""

    def __init__(self, folded: bytes, *, begins_in_word: bool) -> None:
        self._array = np.frombuffer(folded, np.uint8)
        self._begins_in_word = begins_in_word
        self._separators = np.flatnonzero(self._array == SEPARATOR[0])
        self._variables = np.flatnonzero(self._array == PLACEHOLDER[0])

    def of(self, starts: Sequence[int]) -> tuple[Int64s, Int64s]:
        """Of the places where a word begins: (the template's index, how many of its variables
        stand before the place)."""
        at = np.array(starts, np.int64)
        if not self._begins_in_word and len(at):
            before = _IS_WORD_BYTE[self._array[np.maximum(at - 1, 0)]]
            at = at[(at == 0) | ~before | (self._array[at] == PLACEHOLDER[0])]
        indexes = np.searchsorted(self._separators, at)
        begins = np.zeros(len(self._separators) + 1, np.int64)
        begins[1:] = np.searchsorted(self._variables, self._separators)
        return indexes, np.searchsorted(self._variables, at) - begins[indexes]


def may_be_static(word: Word) -> bool:
    """A word of a template, which has no digit, can match it."""
    return not any("0" <= character <= "9" for character in word.text)


def may_be_variable(word: Word) -> bool:
    """A variable, which is one word with a digit, can match it."""
    return word.kind is not WordKind.EXACT or not may_be_static(word)


@lru_cache(maxsize=_PATTERNS)
def _pattern(words: tuple[Word, ...]) -> re.Pattern[bytes]:
    """Finds where the phrase begins, or within its first word. What it takes is that word alone,
    lest it miss a phrase that begins within another. An exact one stands there as it is, which
    `re` finds quickly. A group for each word that a variable may be: it is there if one is.

    No way leads back into a word or a gap that was gone through. To find a part of a word at
    another place of the same word changes nothing of what follows: with a way back, a phrase of n
    such parts would be tried in 2**n ways, and a first one again at each of its places.
    """
    parts = []
    for place, word in enumerate(words):
        forms = []
        if may_be_static(word):
            forms.append(_static(word, is_first=not place))
        if may_be_variable(word):
            forms.append(_VARIABLE)
        parts.append(forms[0] if len(forms) == 1 else rb"(?:%b)" % rb"|".join(forms))
    rest = b"".join([_GAP + part for part in parts[1:]])
    if not rest:
        return re.compile(parts[0])
    if words[0].kind is WordKind.SUBSTRING:  # even in vain it takes the word, to look behind it
        return re.compile(rb"%b(?:(?=%b)|(?P<%b>))" % (parts[0], rest, _ALONE.encode()))
    return re.compile(rb"%b(?=%b)" % (parts[0], rest))


def _static(word: Word, *, is_first: bool) -> bytes:
    """A word of a template that the word matches, from its begin on; of the first one of a phrase,
    from where the part that is asked for begins."""
    text = re.escape(word.text.encode())
    if word.kind is WordKind.EXACT:
        return rb"%b(?!%b)" % (text, _IN_WORD)
    if word.kind is WordKind.PREFIX or is_first:
        return rb"%b%b*+" % (text, _IN_WORD)
    return rb"(?>%b*?%b%b*+)" % (_IN_WORD, text, _IN_WORD)
