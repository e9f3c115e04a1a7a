"""Texts in UTF-8, many of them at once, in the form in which they are compared (`words.fold`)."""

from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from logd.words import fold, fold_table

_REMEMBERED_BYTES: Final = 64
_FEW_RUNS: Final = 64
_STRETCH_BYTES: Final = 1 << 18
"""What is worked out of the bytes on the way takes many times their room."""

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]


def fold_utf8(blob: bytes) -> bytes:
    """`fold` of all texts, at the same places: folding keeps lengths. Bytes that never occur in
    UTF-8, such as separators and placeholders, stay as they are."""
    if len(blob) <= _STRETCH_BYTES:
        return _fold_stretch(blob)
    stretches = []
    begin = 0
    while begin < len(blob):
        end = begin + _STRETCH_BYTES
        while end < len(blob) and 0x80 <= blob[end] < 0xC0:  # within a character
            end += 1
        stretches.append(_fold_stretch(blob[begin:end]))
        begin = end
    return b"".join(stretches)


def _fold_stretch(blob: bytes) -> bytes:
    """Letters of ASCII fold by themselves; what else there is, is folded run by run where that is
    little, else all characters of a length at once."""
    lower = blob.lower()
    if blob.isascii():
        return lower
    array = np.frombuffer(lower, np.uint8)
    places = np.flatnonzero((array >= 0x80) & (array < 0xF8))
    if not len(places):
        return lower
    last = np.append(np.flatnonzero(np.diff(places) > 1), len(places) - 1)
    if len(last) > _FEW_RUNS:
        return _fold_characters(array, places)
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


class _Form(NamedTuple):
    """Of the characters that take so many bytes: how their first ones begin, and where those of
    the next form do."""

    size: int
    mark: int
    end: int


_FORMS: Final = (_Form(2, 0xC0, 0xE0), _Form(3, 0xE0, 0xF0), _Form(4, 0xF0, 0xF8))


def _fold_characters(array: Bytes, places: Int64s) -> bytes:
    """`places`: where the array has bytes of characters that are not ASCII."""
    table, out, firsts = _folded_codes(), array.copy(), array.take(places)
    for size, mark, end in _FORMS:
        at = places[(firsts >= mark) & (firsts < end)]
        codes = array.take(at).astype(np.int64) - mark
        for step in range(1, size):
            codes = (codes << 6) | (array.take(at + step) & 0x3F)
        folded = table.take(codes, mode="clip")
        differ = np.flatnonzero((folded != codes) & (codes < len(table)))
        at, rest = at.take(differ), folded.take(differ)
        for step in range(size - 1, 0, -1):
            out[at + step] = (rest & 0x3F) | 0x80
            rest = rest >> 6
        out[at] = rest | mark
    return out.tobytes()


@cache
def _folded_codes() -> npt.NDArray[np.integer[Any]]:
    """By code point: the folded one, of all that there may be another for."""
    table = fold_table()
    codes = np.arange(max(table) + 1, dtype=np.uint32)
    codes[list(table)] = list(table.values())
    return codes
