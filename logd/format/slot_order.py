"""The order in which the variables of a chunk's slots are stored.

A *slot* is a place in a template that a variable fills (`templates.py`). Each slot has a *class*,
by what stands in it: variables of one class have like bytes and like lengths, so they are stored
side by side. The classes of a chunk's slots are a byte each, in the order of the templates and of
the slots in them. They cover the first templates only, where there are very many: the others are
*plain*.

    *slot order*   of the slots with a class: by class, then template, then slot; then the plain
                   templates: by template, then slot; in each slot by entry
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from logd.format.ascending import distinct

MOST_CLASSED: Final = 1 << 16
"""Slots of a chunk that have a class, at most: what is known of each takes memory while the chunk
is read."""

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]


class SlotOrder:
    """`slots`: int64[templates], variables of each; `classes`: uint8[k], of the slots of the first
    templates. Raises ValueError where they do not end with one of these.

    `first`: int64[templates], the slots of all templates before each. `covered`: how many templates
    are not plain. `slots_in_order`: int32[k], the slots that have a class, counted through all
    templates, in slot order; `templates_in_order`: int32[k], the templates of these.
    """

    def __init__(self, slots: Int64s, classes: Bytes) -> None:
        self.slots = slots
        ends = np.cumsum(slots)
        self.first: Int64s = ends - slots
        self.covered = int(np.searchsorted(ends, len(classes), side="right")) if len(classes) else 0
        if len(classes) != (int(ends[self.covered - 1]) if self.covered else 0):
            raise ValueError(f"{len(classes)} classes do not end with a template's slots")
        self._classes = classes
        self.slots_in_order: Int32s = np.argsort(classes, kind="stable").astype(np.int32)
        codes = np.repeat(np.arange(self.covered, dtype=np.int32), slots[: self.covered])
        self.templates_in_order: Int32s = codes.take(self.slots_in_order)

    def class_heads(self) -> Int64s:
        """int64[c]: places in `slots_in_order` with which another class begins, ascending; not the
        first."""
        heads = distinct(np.cumsum(np.bincount(self._classes))[:-1])
        return heads[heads > 0]

    @property
    def has_plain(self) -> bool:
        return self.covered < len(self.slots)

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about, when all of it is known."""
        return 500 + 16 * len(self.slots) + 9 * len(self.slots_in_order)
