"""Sets of numbers as ascending arrays. numpy's own functions for them sort what is sorted, and the
first call of one imports what takes as long as a search."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

Integers = TypeVar("Integers", bound=npt.NDArray[np.integer[Any]])


def distinct(values: Integers) -> Integers:
    """The set of the values, which are in any order."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]  # type: ignore[return-value]  # of the same dtype


def steps_in_lists(items: Integers, counts: Int64s) -> Integers:
    """Of ascending lists of these lengths, one behind the other, the differences of items; of each
    list the first as it is."""
    steps = np.diff(items, prepend=items.dtype.type(0))
    heads = (np.cumsum(counts) - counts)[counts > 0]
    steps[heads] = items[heads]
    return steps  # type: ignore[return-value]  # of the same dtype


def among(values: Int64s, wanted: Int64s) -> Bools:
    """bool[values]: which, in any order, are in the set `wanted`."""
    if not len(wanted):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(wanted, values), len(wanted) - 1)
    found: Bools = wanted[at] == values
    return found


def common(some: Int64s, others: Int64s) -> Int64s:
    """What is in both sets; the smaller one is looked for in the larger."""
    if len(some) > len(others):
        some, others = others, some
    return some[among(some, others)]
