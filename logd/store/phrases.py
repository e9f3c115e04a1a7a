"""Words side by side in the static text of templates: what `query/match.py` decides for a text,
for many templates at once. Pure."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from logd.format.separated import SEPARATOR, edges, fold_separated
from logd.query.ast import Word
from logd.words import WORD_BYTE

_GAP: Final = rb"[^0-9a-z_\x80-\xf7\xfe\xff]+"
"""Between two words of a template: neither a word, nor a variable, nor the template's end."""

_NO_WORD_FOLLOWS: Final = rb"(?![0-9a-z_\x80-\xf7])"


def holding_phrase(words: Sequence[Word], templates: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """Which of the templates, at least one, hold the exact words, free of digits, side by side:
    their indexes, ascending."""
    folded = fold_separated(SEPARATOR.join(templates))
    search = _pattern(tuple(word.text for word in words)).search
    places = []
    found = search(folded)
    while found is not None:
        at = found.start()
        if at == 0 or not WORD_BYTE[folded[at - 1]]:
            places.append(at)
            at = folded.find(SEPARATOR, at)  # one in a template is enough
            if at < 0:
                break
        found = search(folded, at + 1)
    bounds = edges(folded, len(templates))
    return np.searchsorted(bounds, np.array(places, np.int64), side="right") - 1


@lru_cache(maxsize=256)
def _pattern(words: tuple[str, ...]) -> re.Pattern[bytes]:
    """Begins with the first word as it stands, which `re` finds quickly."""
    return re.compile(_GAP.join([re.escape(word.encode()) for word in words]) + _NO_WORD_FOLLOWS)
