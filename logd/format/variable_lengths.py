"""The lengths of a block's variables, in slot order, and how many are of each class.

Most are short, and the lengths of one class differ little.

    1    classes that the block has variables of: c (a plain template has none)
    c    these, ascending; bit 7 is set where their variables are codes (`coded_values.py`)
    4 c  how many variables each has, 4 bytes each, little-endian

then, of each length that is stored, less 1:

    pairs   the lowest four bits, two lengths a byte, that of the first in the byte's lowest bits
            (a symbol of zstd's takes a bit at least: this way it stands for two lengths)
    planes  what is above, of each length; absent where it is 0 for all

A block without variables has no bytes.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from logd.format.block_variables import ClassSizes
from logd.format.columns import from_planes, narrowest, to_planes

_LOW_BITS: Final = 4
_LOW: Final = 15
_CODED_BIT: Final = 7
_PAIRS: Final = np.array(  # by the byte of a pair: two lengths, a byte each
    [((byte & _LOW) + 1) | (((byte >> _LOW_BITS) + 1) << 8) for byte in range(256)], "<u2"
)

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInts = npt.NDArray[np.unsignedinteger[Any]]


def encode_lengths(
    lengths: Int32s, of: ClassSizes, are_coded: Bools, edges: Sequence[int]
) -> list[bytes]:
    """Pieces that differ in their bytes. `lengths`: at least 1 each, of the variables that are not
    codes; `of`: the classes of all variables of the block; `are_coded`: bool[c]; `edges`: where
    among the lengths another class begins, 0 and their number among these."""
    if not len(lengths) and not len(of.classes):
        return []
    less = (lengths - 1).astype(np.uint32)
    low = np.zeros(len(less) + len(less) % 2, np.uint8)
    low[: len(less)] = less & np.uint32(_LOW)
    pairs = (low[0::2] | (low[1::2] << np.uint8(_LOW_BITS))).tobytes()
    high = less >> np.uint32(_LOW_BITS)
    planes = to_planes(high) if high.any() else []
    classes = of.classes | (are_coded.astype(np.uint8) << np.uint8(_CODED_BIT))
    head = bytes([len(classes)]) + classes.tobytes() + of.sizes.astype("<u4").tobytes()
    cuts = [*[edge // 2 for edge in edges[:-1]], len(pairs)]
    return [head, *[pairs[begin:end] for begin, end in pairwise(cuts)], *planes]


def decode_class_sizes(raw: bytes) -> tuple[ClassSizes, Bools]:
    """What stands before the lengths: (the classes, bool[c], which of them are coded). Raises
    ValueError where it is cut short."""
    count = raw[0] if raw else 0
    if len(raw) < 1 + 5 * count and raw:
        raise ValueError(f"{len(raw)} bytes for {count} classes")
    classes = np.frombuffer(raw, np.uint8, count, 1 if count else 0)
    sizes = np.frombuffer(raw, "<u4", count, 1 + count if count else 0).astype(np.int64)
    coded = classes >> np.uint8(_CODED_BIT)
    return ClassSizes(classes & np.uint8((1 << _CODED_BIT) - 1), sizes), coded.astype(np.bool_)


def decode_lengths(raw: bytes, count: int) -> UInts:
    """uint[count], as narrow as they are. Raises ValueError where the bytes are not those of so
    many lengths."""
    begin = 1 + 5 * raw[0] if raw else 0
    size = (count + 1) // 2
    if count < 0 or len(raw) < begin + size or (count and not raw):
        raise ValueError(f"{len(raw)} bytes for {count} lengths")
    out: UInts = _PAIRS.take(np.frombuffer(raw, np.uint8)[begin : begin + size]).view(np.uint8)
    out = out[:count]
    planes = raw[begin + size :]
    if planes:
        width = max(1, len(planes) // max(count, 1))
        high = from_planes(planes, count, narrowest(min(width + 1, 8)))
        out = (high << high.dtype.type(_LOW_BITS)) + out
    return out
