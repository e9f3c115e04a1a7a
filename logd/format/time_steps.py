"""The times of a chunk as differences, as narrow as stored: a few times need no more than sums.

The column is that of `chunk.py`; here it is not widened to 8 bytes an entry.
"""

from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.chunk import ZIGZAG, PartRef, time_unit
from logd.format.columns import from_planes, narrowest

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.integer[Any]]
UInt64s = npt.NDArray[np.uint64]

_MASK: Final = 0xFFFFFFFFFFFFFFFF


class TimeSteps(msgspec.Struct, frozen=True):
    """`steps`: int or uint[count], in units of `unit_ns`: from `earliest_ns` to the first entry's
    time, then from entry to entry, modulo 2^64."""

    earliest_ns: int
    unit_ns: int
    steps: npt.NDArray[np.integer[Any]]

    def units(self) -> UInt64s:
        """uint64[count], in row order: units of time since the chunk's earliest."""
        signed = self.steps.dtype.kind == "i"
        return np.cumsum(self.steps, dtype=np.int64 if signed else np.uint64).view(np.uint64)

    def at(self, rows: Rows) -> Int64s:
        """int64[rows], ns: the times of ascending rows, each once, at least one."""
        kind, width = self.steps.dtype.kind, self.steps.dtype.itemsize
        starts = np.zeros(len(rows), np.int64)
        starts[1:] = rows[:-1] + 1
        stretches = self.steps[: int(rows[-1]) + 1]
        # 65,536 items of two bytes add up to no more than four hold, which is twice as quick
        sums = np.add.reduceat(stretches, starts, dtype=f"{kind}{4 if width <= 2 else 8}")
        units = np.cumsum(sums.astype(f"{kind}8").view(np.uint64))
        base = np.uint64(self.earliest_ns & _MASK)
        return (units * np.uint64(self.unit_ns) + base).view(np.int64)


def decode_time_steps(ref: PartRef, raw: bytes, count: int, earliest_ns: int) -> TimeSteps:
    """Raises ValueError where the column does not have so many items."""
    width, rest = divmod(len(raw), count)
    if rest or not 1 <= width <= 8:
        raise ValueError(f"times: {len(raw)} bytes for {count} entries")
    stored = from_planes(raw, count, narrowest(width))
    if ref.encoding < ZIGZAG:
        return TimeSteps(earliest_ns, time_unit(ref), stored)
    one = stored.dtype.type(1)
    signs = np.zeros_like(stored) - (stored & one)
    steps = ((stored >> one) ^ signs).view(f"i{stored.dtype.itemsize}")
    return TimeSteps(earliest_ns, time_unit(ref), steps)
