"""The times of a chunk as differences, as narrow as stored: a few times need no more than sums.

The column is that of `chunk.py`; here it is not widened to 8 bytes an entry.
"""

from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.chunk import ZIGZAG, PartRef, time_unit
from logd.format.columns import from_planes, narrowest
from logd.format.running_sums import STRETCH, sums_before

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.integer[Any]]
UInt64s = npt.NDArray[np.uint64]

_SLICE: Final = 1 << 14
_MASK: Final = 0xFFFFFFFFFFFFFFFF


class TimeSteps(msgspec.Struct, frozen=True):
    """`steps`: int or uint[count], in units of `unit_ns`: from `earliest_ns` to the first entry's
    time, then from entry to entry, modulo 2^64. `before`: what they add up to before each stretch
    of entries, and in the end, so that a time takes the sum of one stretch."""

    earliest_ns: int
    unit_ns: int
    steps: npt.NDArray[np.integer[Any]]
    before: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about."""
        return self.steps.nbytes + 40 * len(self.before)

    def units(self) -> UInt64s:
        """uint64[count], in row order: units of time since the chunk's earliest."""
        signed = self.steps.dtype.kind == "i"
        return np.cumsum(self.steps, dtype=np.int64 if signed else np.uint64).view(np.uint64)

    def at(self, rows: Rows) -> Int64s:
        """int64[rows], ns: the times of a few rows."""
        found = [self._at(row) for row in rows.tolist()]
        return np.array(found, np.uint64).view(np.int64)

    def _at(self, row: int) -> int:
        stretch = row // STRETCH
        inside = self.steps[stretch * STRETCH : row + 1]
        wide = np.int64 if inside.dtype.kind == "i" else np.uint64
        units = self.before[stretch] + int(np.add.reduce(inside, dtype=wide))
        return ((units & _MASK) * self.unit_ns + self.earliest_ns) & _MASK


def decode_time_steps(ref: PartRef, raw: bytes, count: int, earliest_ns: int) -> TimeSteps:
    """Raises ValueError where the column does not have so many items."""
    width, rest = divmod(len(raw), count)
    if rest or not 1 <= width <= 8:
        raise ValueError(f"times: {len(raw)} bytes for {count} entries")
    steps: npt.NDArray[np.integer[Any]] = from_planes(raw, count, narrowest(width))
    if ref.encoding >= ZIGZAG:
        steps = _signed(steps)
    return TimeSteps(earliest_ns, time_unit(ref), steps, tuple(sums_before(steps)))


def _signed(zigzag: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.integer[Any]]:
    """A slice at a time: memory that no cache holds costs more than the work."""
    out = np.empty_like(zigzag)
    one = zigzag.dtype.type(1)
    for at in range(0, len(zigzag), _SLICE):
        some, signed = zigzag[at : at + _SLICE], out[at : at + _SLICE]
        signs = some & one
        np.negative(signs, out=signs)
        np.right_shift(some, one, out=signed)
        signed ^= signs
    return out.view(f"i{out.dtype.itemsize}")
