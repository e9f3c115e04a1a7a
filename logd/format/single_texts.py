"""A few texts of a block that is kept as templates and variables (`templates.py`), without working
out where all variables of the block lie."""

from collections.abc import Sequence
from itertools import accumulate
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
    per_entry: Int64s,
    data: bytes,
    lengths: Codes,
) -> list[bytes]:
    """The texts of the entries `rows` of a block.

    `codes` and `per_entry`: of the block's entries the templates and how many variables these have;
    `templates[i]`: that of rows[i]; `data` and `lengths`: the block's variables, in slot order.
    Raises ValueError or IndexError where these do not fit together.
    """
    if int(np.add.reduce(per_entry)) != len(lengths):
        raise ValueError("the lengths are not those of the templates' variables")
    out = []
    for row, template in zip(rows, templates, strict=True):
        spans = _spans(lengths, _places(row, codes, per_entry), len(data))
        pieces = [b""] * (2 * len(spans) + 1)
        pieces[::2] = template.split(PLACEHOLDER)
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


def _places(row: int, codes: Codes, per_entry: Int64s) -> list[int]:
    """Where the entry's variables lie in slot order."""
    wanted = int(per_entry[row])
    if not wanted:
        return []
    code = codes[row]
    same = codes == code
    begin = int(np.dot(per_entry, codes < code)) + int(np.count_nonzero(same[:row]))
    step = int(np.count_nonzero(same))
    return list(range(begin, begin + step * wanted, step))


def _spans(lengths: Codes, places: list[int], size: int) -> list[tuple[int, int]]:
    """(start, stop) of the variables at ascending places, each once, in data of `size` bytes."""
    if not len(lengths):
        if size or places:
            raise ValueError("bytes of variables where there are none")
        return []
    # each with all up to the next one that is wanted, and in front what lies before the first
    bounds = places if places and not places[0] else [0, *places]
    sums = np.add.reduceat(lengths, bounds, dtype=np.uint32).tolist()
    ends = list(accumulate(sums))
    if ends[-1] != size:
        raise ValueError("the lengths do not add up to the data")
    if not places:
        return []
    starts = [0, *ends[:-1]][-len(places) :]
    own = lengths.take(places).tolist()
    return [(start, start + length) for start, length in zip(starts, own, strict=True)]
