"""The times of a chunk as differences, as narrow as stored: a few times need no more than sums.

Of a block, little-endian:

    8      time of its first row since the chunk's earliest, in units of 10^e ns
           planes: 0, then the differences from row to row, in the same units

encoding e, or e + 16 where times also fall: zigzag. Sums and differences are modulo 2^64, so that
any two times may follow each other.

In chunks of versions 1 and 2 a part stands for all rows: planes, the first row's time and then the
differences.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.columns import from_planes, narrowest, to_planes
from logd.format.part_table import PartRef
from logd.format.running_sums import STRETCH, sums_before

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.integer[Any]]
UInt64s = npt.NDArray[np.uint64]

ZIGZAG: Final = 16
_FIRST: Final = struct.Struct("<Q")
_FEW: Final = 8
_FEW_STRETCHES: Final = 4  # so many are added up sooner than their sums are told apart
_SLICE: Final = 1 << 14
_MASK: Final = 0xFFFFFFFFFFFFFFFF


class TimeSteps(msgspec.Struct, frozen=True):
    """`steps`: int or uint[count], in units of `unit_ns`: from the time `first` units after
    `earliest_ns` to the first entry's, then from entry to entry, modulo 2^64. `before`: what they
    add up to before each stretch of entries, and in the end, so that a time takes the sum of one
    stretch; of few entries only what they add up to before the first."""

    earliest_ns: int
    unit_ns: int
    first: int
    steps: npt.NDArray[np.integer[Any]]
    before: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about."""
        return self.steps.nbytes + 40 * len(self.before)

    def units(self) -> UInt64s:
        """uint64[count], in row order: units of time since the chunk's earliest."""
        signed = self.steps.dtype.kind == "i"
        units = np.cumsum(self.steps, dtype=np.int64 if signed else np.uint64).view(np.uint64)
        units += np.uint64(self.first)
        return units

    def at(self, rows: Rows) -> Int64s:
        """int64[rows], ns: the times of rows."""
        if len(rows) > _FEW:
            units = self.units().take(rows) * np.uint64(self.unit_ns)
            return (units + np.uint64(self.earliest_ns & _MASK)).view(np.int64)
        found = [self._at(row) for row in rows.tolist()]
        return np.array(found, np.uint64).view(np.int64)

    def _at(self, row: int) -> int:
        stretch = row // STRETCH if len(self.before) > 1 else 0
        inside = self.steps[stretch * STRETCH : row + 1]
        wide = np.int64 if inside.dtype.kind == "i" else np.uint64
        units = self.first + self.before[stretch] + int(np.add.reduce(inside, dtype=wide))
        return ((units & _MASK) * self.unit_ns + self.earliest_ns) & _MASK


def encode_times(ts: Int64s, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, list[bytes]]]:
    """Of each block, from row to row: its encoding, and pieces that differ in their bytes."""
    offsets = (ts - ts.min()).view(np.uint64)
    exponent = next(e for e in (9, 6, 3, 0) if not np.any(offsets % np.uint64(10**e)))
    units = offsets // np.uint64(10**exponent)
    for begin, end in spans:
        first = _FIRST.pack(units.item(begin))
        steps = np.diff(units[begin:end], prepend=units[begin])
        if not np.any(ts[begin + 1 : end] < ts[begin : end - 1]):
            yield exponent, [first, *to_planes(steps)]
        else:
            signed = steps.view(np.int64)
            zigzag = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
            yield exponent + ZIGZAG, [first, *to_planes(zigzag)]


def time_unit(ref: PartRef) -> int:
    """ns."""
    return int(10 ** (ref.encoding % ZIGZAG))


def decode_block_times(ref: PartRef, raw: bytes, count: int, earliest_ns: int) -> TimeSteps:
    """Of a block of so many rows. Raises ValueError where they do not hold."""
    if len(raw) < _FIRST.size:
        raise ValueError(f"times: {len(raw)} bytes for {count} entries")
    (first,) = _FIRST.unpack_from(raw)
    return decode_time_steps(ref, raw[_FIRST.size :], count, earliest_ns, first)


def decode_time_steps(
    ref: PartRef, raw: bytes, count: int, earliest_ns: int, first: int = 0
) -> TimeSteps:
    """Of planes alone. Raises ValueError where they do not have so many items."""
    width, rest = divmod(len(raw), count)
    if rest or not 1 <= width <= 8:
        raise ValueError(f"times: {len(raw)} bytes for {count} entries")
    steps: npt.NDArray[np.integer[Any]] = from_planes(raw, count, narrowest(width))
    if ref.encoding >= ZIGZAG:
        steps = _signed(steps)
    before = (0,) if count <= _FEW_STRETCHES * STRETCH else tuple(sums_before(steps))
    return TimeSteps(earliest_ns, time_unit(ref), first, steps, before)


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
