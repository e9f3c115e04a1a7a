"""Sets of numbers as ascending arrays. numpy's own functions for them sort what is sorted, and the
first call of one imports what takes as long as a search."""

from typing import Any, Final, TypeVar, cast

import numpy as np
import numpy.typing as npt

_DIGIT: Final = 16  # bits

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

Integers = TypeVar("Integers", bound=npt.NDArray[np.integer[Any]])


def distinct(values: Integers) -> Integers:
    """The set of the values, which are in any order."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return cast(Integers, ordered[first])  # of the same dtype


def sort_by_digits(keys: UInt64s, bits: int) -> None:
    """In place, with twice the room of the keys, which are below 2^bits. Radix sort: numpy sorts
    16-bit numbers so, and a few times that is quicker than to compare."""
    for shift in range(0, bits, _DIGIT):
        keys[:] = keys.take(_digit_order(keys, shift, bits))


def distinct_by_digits(keys: UInt64s, bits: int) -> tuple[UInt64s, Int64s]:
    """(the set of the keys; int64[keys], which of it each is). Keys are below 2^bits."""
    order = np.arange(len(keys))
    ordered = keys
    for shift in range(0, bits, _DIGIT):
        step = _digit_order(ordered, shift, bits)
        order, ordered = order.take(step), ordered.take(step)
    first = np.ones(len(keys), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    numbers = np.empty(len(keys), np.int64)
    numbers[order] = np.cumsum(first) - 1
    return ordered[first], numbers


def _digit_order(keys: UInt64s, shift: int, bits: int) -> Int64s:
    """What puts the keys in the order of one digit, and leaves them else as they are."""
    width = 1 if bits - shift <= 8 else 2
    digits = keys.astype("<u8", copy=False).view(f"<u{width}")[shift // (8 * width) :: 8 // width]
    return np.argsort(digits, kind="stable")


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
