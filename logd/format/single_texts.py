"""A few texts of a block that is kept as templates and variables (`templates.py`), without working
out where all variables of the block lie."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from logd.format.templates import PLACEHOLDER

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]


def join_few_texts(
    rows: Sequence[int],
    codes: Codes,
    templates: Sequence[bytes],
    slots: Int64s,
    data: bytes,
    lengths: Codes,
) -> list[bytes]:
    """The texts of the entries `rows` of a block.

    `codes`: of the block's entries; `templates[i]`: that of rows[i]; `slots`: variables per
    template; `data` and `lengths`: the block's variables, in slot order. Raises ValueError or
    IndexError where these do not fit together.
    """
    per_entry = slots.take(codes)
    if int(per_entry.sum()) != len(lengths):
        raise ValueError("the lengths are not those of the templates' variables")
    out = []
    for row, template in zip(rows, templates, strict=True):
        starts, stops = _spans(lengths, _places(row, codes, per_entry), len(data))
        pieces = [b""] * (2 * len(starts) + 1)
        pieces[::2] = template.split(PLACEHOLDER)
        spans = zip(starts.tolist(), stops.tolist(), strict=True)
        pieces[1::2] = [data[start:stop] for start, stop in spans]
        out.append(b"".join(pieces))
    return out


def starts_of(lengths: Codes, places: Int64s) -> Int64s:
    """Where the variables at ascending places, each once, begin in the data."""
    if not len(places) or not places[-1]:
        return np.zeros(len(places), np.int64)
    begins = np.zeros(len(places), np.int64)
    begins[1:] = places[:-1]
    sums = np.add.reduceat(lengths[: int(places[-1])], begins, dtype=np.uint32).astype(np.int64)
    if not places[0]:
        sums[0] = 0  # nothing lies before it; `reduceat` gives an item
    return np.cumsum(sums)


def _places(row: int, codes: Codes, per_entry: Int64s) -> Int64s:
    """int64[variables of the entry]: where they lie in slot order."""
    code, wanted = codes[row], int(per_entry[row])
    if not wanted:
        return np.zeros(0, np.int64)
    same = codes == code
    begin = int(np.dot(per_entry, codes < code)) + int(np.count_nonzero(same[:row]))
    step = int(np.count_nonzero(same))
    return begin + step * np.arange(wanted)


def _spans(lengths: Codes, places: Int64s, size: int) -> tuple[Int64s, Int64s]:
    """(starts, stops) of the variables at ascending places, each once, in data of `size` bytes."""
    if not len(lengths):
        if size:
            raise ValueError("bytes of variables where there are none")
        return places, places
    # what lies before a variable, then the variable with all up to the next one that is wanted
    bounds = np.zeros(2 * len(places) + 1, np.int64)
    bounds[1::2] = places
    bounds[2::2] = places + 1
    inside = bounds[: np.searchsorted(bounds, len(lengths))]
    sums = np.zeros(len(bounds), np.int64)
    sums[: len(inside)] = np.add.reduceat(lengths, inside, dtype=np.uint32)
    sums[:-1][bounds[:-1] >= bounds[1:]] = 0  # a stretch of no items; `reduceat` gives one
    ends = np.cumsum(sums)
    if int(ends[-1]) != size:
        raise ValueError("the lengths do not add up to the data")
    return ends[:-1:2], ends[1::2]
