"""How many variables the templates of a chunk have, and which block each of them is first in.

Templates are numbered in the order in which they first appear. Of b blocks:

    4 b    the templates that the block and those before it have, 4 bytes each, little-endian
           planes: the variables of each template
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from logd.format.columns import from_planes, narrowest, to_planes

Int64s = npt.NDArray[np.int64]
UInts = npt.NDArray[np.unsignedinteger[Any]]


class SlotCounts:
    """`slots`: uint[templates], the variables of each."""

    def __init__(self, known: Sequence[int], slots: UInts) -> None:
        """`known`: of each block, how many templates it and those before it have."""
        self.slots = slots
        self._known = known

    def first_block(self, code: int) -> int:
        """The block that this template is first in."""
        return bisect_right(self._known, code)

    @property
    def size_bytes(self) -> int:
        """Memory that it takes."""
        return self.slots.nbytes + 40 * len(self._known)


def encode_slot_counts(known: Sequence[int], slots: Int64s) -> list[bytes]:
    """Pieces that differ in their bytes, of at least one template."""
    return [np.array(known, "<u4").tobytes(), *to_planes(slots.astype(np.uint32))]


def decode_slot_counts(raw: bytes, blocks: int) -> SlotCounts:
    """Raises ValueError where they do not hold."""
    begin = 4 * blocks
    if len(raw) < begin:
        raise ValueError(f"{len(raw)} bytes for {blocks} blocks")
    known = np.frombuffer(raw, "<u4", blocks).tolist()
    templates = known[-1] if known else 0
    width = max(1, (len(raw) - begin) // max(templates, 1))
    slots = from_planes(raw[begin:], templates, narrowest(min(width, 8)))
    return SlotCounts(known, slots)
