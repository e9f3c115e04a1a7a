"""The order in which the variables of a chunk's slots are stored.

A *slot* is a place in a template that a variable fills (`templates.py`). Each slot has a *class*,
by what stands in it: variables of one class have like bytes and like lengths, so they are stored
side by side. The classes of a chunk's slots are a byte each, in the order of the templates and of
the slots in them. They cover the first templates only, where there are very many: the others are
*plain*.

    *slot order*   of the slots with a class: by class, then template, then slot; then the plain
                   templates: by template, then slot; in each slot by entry
"""

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

MOST_CLASSED: Final = 1 << 16
"""Slots of a chunk that have a class, at most: what is known of each takes memory while the chunk
is read."""

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt16s = npt.NDArray[np.uint16]
Bytes = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.integer[Any]]


class ClassedSlots:
    """The slots of a chunk. `counts`: int or uint[templates], of each; `classes`: uint8[k], those
    of the slots of the first templates.

    `ends`: int32[templates], where the slots of each end, counted through all; `covered`: how many
    templates are not plain; `are_whole`: the classes end with one of these.
    """

    def __init__(self, counts: Counts, classes: Bytes) -> None:
        self.counts = counts
        self.classes = classes
        self.ends: Int32s = np.cumsum(counts, dtype=np.int32)
        self.covered = (
            int(self.ends.searchsorted(len(classes), side="right")) if len(classes) else 0
        )
        self.are_whole = len(classes) == (self.ends.item(self.covered - 1) if self.covered else 0)
        self._of_class: dict[int, UInt16s] = {}

    @cached_property
    def templates(self) -> UInt16s:
        """uint16[k]: of each slot that has a class."""
        codes = np.arange(self.covered, dtype=np.uint16)
        return np.repeat(codes, self.counts[: self.covered])

    def slots_of(self, kind: int) -> UInt16s:
        """uint16[n], ascending: the slots of a class, counted through all templates."""
        found = self._of_class.get(kind)
        if found is None:
            found = self._of_class[kind] = np.flatnonzero(self.classes == kind).astype(np.uint16)
        return found

    def templates_of(self, kind: int) -> UInt16s:
        """uint16[n], ascending: the template of each of these."""
        return self.templates.take(self.slots_of(kind))

    def first_slot(self, code: int) -> int:
        """Of a template, counted through all."""
        return self.ends.item(code) - self.counts.item(code)

    def class_of(self, code: int, number: int) -> int | None:
        """Of a template's slot; None of a plain one."""
        if code >= self.covered:
            return None
        return self.classes.item(self.first_slot(code) + number)

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about, when all of it is known."""
        return 500 + self.ends.nbytes + 4 * len(self.classes)


class SlotOrder:
    """`slots`: int64[templates], variables of each; `classes`: uint8[k], of the slots of the first
    templates. Raises ValueError where they do not end with one of these.

    `first`: int32[templates], the slots of all templates before each. `covered`: how many templates
    are not plain. `slots_in_order`: uint16[k], the slots that have a class, counted through all
    templates, in slot order; `templates_in_order`: uint16[k], the templates of these.
    `class_codes`: uint8[c], the classes that occur, ascending; `class_edges`: int64[c + 1], where
    in that order the slots of each begin, and where those of the last end.
    """

    def __init__(self, slots: Int64s, classes: Bytes) -> None:
        classed = ClassedSlots(slots, classes)
        if not classed.are_whole:
            raise ValueError(f"{len(classes)} classes do not end with a template's slots")
        self.slots = slots
        self.first: Int32s = (classed.ends - slots).astype(np.int32)
        self.covered = classed.covered
        order = np.argsort(classes, kind="stable")
        # narrow, as those of many chunks are kept
        self.templates_in_order: UInt16s = classed.templates.take(order)
        self.slots_in_order: UInt16s = order.astype(np.uint16)
        counts = np.bincount(classes)
        self.class_codes: Bytes = np.flatnonzero(counts).astype(np.uint8)
        self.class_edges: Int64s = np.zeros(len(self.class_codes) + 1, np.int64)
        np.cumsum(counts[self.class_codes], out=self.class_edges[1:])

    @cached_property
    def _places(self) -> UInt16s:
        """uint16[k]: which in slot order each slot that has a class is."""
        places = np.empty(len(self.slots_in_order), np.uint16)
        places[self.slots_in_order] = np.arange(len(places), dtype=np.uint16)
        return places

    def places_of(self, slots: Int64s) -> Int64s:
        """int64[n]: which in slot order slots that have a class are."""
        return self._places.take(slots).astype(np.int64)

    def sizes_by_class(self, classes: Bytes, sizes: Int64s) -> Int64s:
        """int64[c]: the numbers that belong to some of the classes, ascending, for all of them.
        Raises IndexError where a class does not occur."""
        out = np.zeros(len(self.class_codes), np.int64)
        at = np.searchsorted(self.class_codes, classes)
        if not np.array_equal(self.class_codes.take(at), classes):
            raise IndexError("a class that no slot has")
        out[at] = sizes
        return out

    @property
    def has_plain(self) -> bool:
        return self.covered < len(self.slots)

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about, when all of it is known."""
        return 500 + 12 * len(self.slots) + 6 * len(self.slots_in_order)
