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

_SLOT_BITS: Final = 16
MOST_CLASSED: Final = 1 << _SLOT_BITS
"""Slots of a chunk that have a class, at most: what is known of each takes memory while the chunk
is read."""

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt32s = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]


class SlotOrder:
    """`slots`: int64[templates], variables of each; `classes`: uint8[k], of the slots of the first
    templates. Raises ValueError where they do not end with one of these.

    `first`: int64[templates], the slots of all templates before each. `covered`: how many templates
    are not plain. `templates_in_order`: int32[k], in slot order, the templates of the slots that
    have a class. `class_codes`: uint8[c], the classes that occur, ascending; `class_edges`:
    int64[c + 1], where in that order the slots of each begin, and where those of the last end.
    """

    def __init__(self, slots: Int64s, classes: Bytes) -> None:
        self.slots = slots
        ends = np.cumsum(slots)
        self.first: Int64s = ends - slots
        self.covered = int(np.searchsorted(ends, len(classes), side="right")) if len(classes) else 0
        if len(classes) != (int(ends[self.covered - 1]) if self.covered else 0):
            raise ValueError(f"{len(classes)} classes do not end with a template's slots")
        self._classes = classes
        order = np.argsort(classes, kind="stable")
        self._keys = self._keys_of(order)
        codes = np.repeat(np.arange(self.covered, dtype=np.int32), slots[: self.covered])
        self.templates_in_order: Int32s = codes.take(order)
        counts = np.bincount(classes)
        self.class_codes: Bytes = np.flatnonzero(counts).astype(np.uint8)
        self.class_edges: Int64s = np.zeros(len(self.class_codes) + 1, np.int64)
        np.cumsum(counts[self.class_codes], out=self.class_edges[1:])

    def _keys_of(self, slots: Int64s) -> UInt32s:
        """Of slots that have a class: these sort as they stand in slot order."""
        keys = self._classes.take(slots).astype(np.uint32)
        keys <<= np.uint32(_SLOT_BITS)
        keys |= slots.astype(np.uint32)
        return keys

    def sizes_by_class(self, classes: Bytes, sizes: Int64s) -> Int64s:
        """int64[c]: the numbers that belong to some of the classes, ascending, for all of them.
        Raises IndexError where a class does not occur."""
        out = np.zeros(len(self.class_codes), np.int64)
        at = np.searchsorted(self.class_codes, classes)
        if not np.array_equal(self.class_codes.take(at), classes):
            raise IndexError("a class that no slot has")
        out[at] = sizes
        return out

    def slots_in_order(self) -> Int64s:
        """int64[k]: the slots that have a class, counted through all templates, in slot order."""
        return (self._keys & np.uint32(MOST_CLASSED - 1)).astype(np.int64)

    def slots_at(self, places: Int64s) -> Int64s:
        """Of these of them."""
        return (self._keys.take(places) & np.uint32(MOST_CLASSED - 1)).astype(np.int64)

    def places_of(self, slots: Int64s) -> Int64s:
        """Which in slot order slots that have a class are."""
        return np.searchsorted(self._keys, self._keys_of(slots))

    @property
    def has_plain(self) -> bool:
        return self.covered < len(self.slots)

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about, when all of it is known."""
        return 500 + 16 * len(self.slots) + 9 * len(self._keys)
