"""Texts in UTF-8, many of them at once, in the form in which they are compared (`words.fold`)."""

from functools import lru_cache
from typing import Final

import numpy as np

from logd.words import fold

_REMEMBERED_BYTES: Final = 64


def fold_utf8(blob: bytes) -> bytes:
    """`fold` of all texts, at the same places: folding keeps lengths. Bytes that never occur in
    UTF-8, such as separators and placeholders, stay as they are.

    Letters of ASCII fold by themselves; what else there is, is folded run by run.
    """
    lower = blob.lower()
    if blob.isascii():
        return lower
    array = np.frombuffer(lower, np.uint8)
    places = np.flatnonzero((array >= 0x80) & (array < 0xF8))
    if not len(places):
        return lower
    last = np.append(np.flatnonzero(np.diff(places) > 1), len(places) - 1)
    stops = places[last] + 1
    starts = places[np.append(0, last[:-1] + 1)]
    out = bytearray(lower)
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        run = lower[start:stop]
        out[start:stop] = _fold_short(run) if len(run) <= _REMEMBERED_BYTES else _fold_run(run)
    return bytes(out)


def _fold_run(run: bytes) -> bytes:
    return fold(run.decode()).encode()


_fold_short: Final = lru_cache(maxsize=4096)(_fold_run)
"""Words come again."""
