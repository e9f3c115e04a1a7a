"""Running sums of a column, one a stretch: an item takes the sum of one stretch."""

from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

STRETCH: Final = 1024
"""Items."""


def sums_before(items: npt.NDArray[np.integer[Any]]) -> list[int]:
    """What the items add up to before each stretch, and in the end. Sums of 8-byte items are modulo
    2^64."""
    kind, width = items.dtype.kind, items.dtype.itemsize
    # two bytes of each of a stretch add up to no more than four hold, which is quicker
    wide = f"{kind}{4 if width <= 2 else 8}"
    whole = len(items) // STRETCH * STRETCH
    # `reduceat` would first make a wide copy of all
    sums = np.add.reduce(items[:whole].reshape(-1, STRETCH), axis=1, dtype=wide).tolist()
    sums.append(int(np.add.reduce(items[whole:], dtype=wide)))
    return list(accumulate(sums, initial=0))
