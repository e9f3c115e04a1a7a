"""A few texts of a block that is kept as templates and variables (`templates.py`), without working
out where all variables of the block lie."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from logd.format.running_sums import STRETCH, sums_before
from logd.format.templates import PLACEHOLDER

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]


class Lengths:
    """Of the variables of a block the lengths, in slot order."""

    def __init__(self, items: Codes) -> None:
        self.items = items

    @cached_property
    def before(self) -> list[int]:
        """What they add up to before each stretch of them, and in the end: where one variable
        begins takes the sum of one stretch."""
        return sums_before(self.items)

    def holding(self, offset: int) -> tuple[int, int, int]:
        """(which, where it begins, length) of the variable that holds this byte of all; there is
        one."""
        stretch = bisect_right(self.before, offset) - 1
        begin = stretch * STRETCH
        some = self.items[begin : begin + STRETCH]
        ends = np.cumsum(some, dtype=np.int64)
        at = int(ends.searchsorted(offset - self.before[stretch], side="right"))
        length = some.item(at)
        return begin + at, self.before[stretch] + ends.item(at) - length, length

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about, with the sums."""
        return self.items.nbytes + 200 + 40 * (len(self.items) // STRETCH)


def join_few_texts(
    rows: Sequence[int],
    codes: Codes,
    templates: Sequence[bytes],
    per_entry: Int64s,
    data: bytes,
    lengths: Lengths,
) -> list[bytes]:
    """The texts of the entries `rows` of a block.

    `codes` and `per_entry`: of the block's entries the templates and how many variables these have;
    `templates[i]`: that of rows[i]; `data` and `lengths`: the block's variables, in slot order.
    Raises ValueError or IndexError where these do not fit together.
    """
    if int(np.add.reduce(per_entry)) != len(lengths.items):
        raise ValueError("the lengths are not those of the templates' variables")
    if len(data) != lengths.before[-1]:
        raise ValueError("the lengths do not add up to the data")
    out = []
    for row, template in zip(rows, templates, strict=True):
        places = _places(row, codes, per_entry)
        pieces = [b""] * (2 * len(places) + 1)
        pieces[::2] = template.split(PLACEHOLDER)
        if places:
            pieces[1::2] = _variables(data, lengths, places)
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


def _places(row: int, codes: Codes, per_entry: Int64s) -> range:
    """Where the entry's variables lie in slot order."""
    wanted = per_entry.item(row)
    if not wanted:
        return range(0)
    code = codes.item(row)
    same = codes == code
    begin = int(np.dot(per_entry, codes < code)) + int(np.count_nonzero(same[:row]))
    step = int(np.count_nonzero(same))
    return range(begin, begin + step * wanted, step)


def _variables(data: bytes, lengths: Lengths, places: range) -> list[bytes]:
    """The variables at these places, at least one."""
    first = places[0]
    stretch = first // STRETCH
    begin = stretch * STRETCH
    items = lengths.items
    start = lengths.before[stretch]
    start += int(np.add.reduce(items[begin:first], dtype=np.uint32))
    own = items[first : places[-1] + 1 : places.step].tolist()
    if places.step == 1:  # side by side
        steps = own[:-1]
    else:
        inside = [place - first for place in places[:-1]]
        steps = np.add.reduceat(items[first : places[-1]], inside, dtype=np.uint32).tolist()
    starts = accumulate(steps, initial=start)
    return [data[at : at + length] for at, length in zip(starts, own, strict=True)]
