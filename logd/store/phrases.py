"""Words side by side in texts that are kept as templates: what `query/match.py` decides for a text,
for many templates at once. Pure.

A variable stands in its template as one byte, and is one word with a digit. So where a template
holds a phrase but for some variables, those have to be the words that are missing.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.separated import SEPARATOR, fold_separated
from logd.format.templates import PLACEHOLDER
from logd.query.ast import Word, WordKind
from logd.words import WORD_BYTE

Int64s = npt.NDArray[np.int64]

_GAP: Final = rb"[^0-9a-z_\x80-\xf7\xfe\xff]+"
"""Between two words of a template: neither a word, nor a variable, nor the template's end."""

_IN_WORD: Final = rb"[0-9a-z_\x80-\xf7]"
_VARIABLE: Final = rb"(\xff)"


class Gaps(msgspec.Struct, frozen=True):
    """Places at which templates hold a phrase but for `words`, each of which a variable has to be.

    `templates`, `slots`: int64[k]: the template's index, and which of its variables has to be the
    first word; the variables behind it have to be the others.
    """

    words: tuple[Word, ...]
    templates: Int64s
    slots: Int64s


class PhrasePlaces(msgspec.Struct, frozen=True):
    """`whole`: int64[k], ascending: indexes of the templates that hold the phrase by themselves."""

    whole: Int64s
    gaps: tuple[Gaps, ...]


def find_phrase(words: Sequence[Word], templates: Sequence[bytes]) -> PhrasePlaces:
    """Where in the templates, at least one, the words may match side by side."""
    folded = fold_separated(SEPARATOR.join(templates))
    pattern, begins_in_word = _pattern(tuple(words))
    found: defaultdict[tuple[int, ...], dict[tuple[int, int], None]] = defaultdict(dict)
    index = start = 0
    match = pattern.search(folded)
    while match is not None:
        at = match.start()
        index += folded.count(SEPARATOR, start, at)
        start = max(start, folded.rfind(SEPARATOR, start, at) + 1)
        again = at + 1
        if begins_in_word or at == 0 or not WORD_BYTE[folded[at - 1]]:
            missing = tuple([n for n, group in enumerate(match.groups()) if group])
            slot = folded.count(PLACEHOLDER, start, at) if missing else 0
            found[missing][index, slot] = None
            if not missing:  # one in a template is enough
                again = folded.find(SEPARATOR, at)
                if again < 0:
                    break
        match = pattern.search(folded, again)
    whole = [index for index, _ in found.pop((), {})]
    able = [word for word in words if _may_be_variable(word)]
    gaps = []
    for missing, places in found.items():
        columns = np.array(list(places), np.int64)
        gaps.append(Gaps(tuple([able[n] for n in missing]), columns[:, 0], columns[:, 1]))
    return PhrasePlaces(np.array(whole, np.int64), tuple(gaps))


def may_be_static(word: Word) -> bool:
    """A word of a template, which has no digit, can match it."""
    return not any("0" <= character <= "9" for character in word.text)


def _may_be_variable(word: Word) -> bool:
    return word.kind is not WordKind.EXACT or not may_be_static(word)


@lru_cache(maxsize=256)
def _pattern(words: tuple[Word, ...]) -> tuple[re.Pattern[bytes], bool]:
    """(the words, whether what it finds may begin within a word). An exact word that comes first
    stands as it is, which `re` finds quickly."""
    parts = []
    for place, word in enumerate(words):
        forms = []
        if may_be_static(word):
            text = re.escape(word.text.encode())
            before = rb"" if word.kind is not WordKind.SUBSTRING or not place else _IN_WORD + rb"*"
            behind = rb"(?!%b)" if word.kind is WordKind.EXACT else rb"%b*+"
            forms.append(before + text + behind % _IN_WORD)
        if _may_be_variable(word):
            forms.append(_VARIABLE)
        parts.append(forms[0] if len(forms) == 1 else rb"(?:%b)" % rb"|".join(forms))
    begins_in_word = words[0].kind is WordKind.SUBSTRING
    return re.compile(_GAP.join(parts)), begins_in_word
