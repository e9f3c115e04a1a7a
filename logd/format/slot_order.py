"""The order in which the variables of a chunk's slots are stored.

A *slot* is a place in a template that a variable fills (`templates.py`). Each slot has a *class*,
by what stands in it: variables of one class have like bytes and like lengths, so they are stored
side by side. The classes of a chunk's slots are a byte each, in the order of the templates and of
the slots in them. They cover the first templates only, where there are very many: the others are
*plain*.

    *slot order*   of the slots with a class: by class, then template, then slot; then the plain
                   templates: by template, then slot; in each slot by entry

Neighbours in that order which belong to one template and follow each other in it are a *run*: their
variables lie as in a plain template, which is a run by itself.
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
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.integer[Any]]


class SlotOrder:
    """`slots`: int64[templates], variables of each; `classes`: uint8[k], of the slots of the first
    templates. Raises ValueError where they do not end with one of these.

    `first`: int64[templates], the slots of all templates before each. `covered`: how many templates
    are not plain.

    `run_templates`, `run_slots`: int32[runs], in slot order: whose slots they are, and how many.
    `class_runs`: int64[k], the runs with which another class begins, ascending; the first one and
    plain ones are not among them.
    """

    def __init__(self, slots: Int64s, classes: Bytes) -> None:
        self.slots = slots
        ends = np.cumsum(slots)
        self.first: Int64s = ends - slots
        covered = int(np.searchsorted(ends, len(classes), side="right")) if len(classes) else 0
        if len(classes) != (int(ends[covered - 1]) if covered else 0):
            raise ValueError(f"{len(classes)} classes do not end with a template's slots")
        self.covered = covered
        order = np.argsort(classes, kind="stable").astype(np.int32)
        templates = np.repeat(np.arange(covered, dtype=np.int32), slots[:covered]).take(order)
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (np.diff(order) != 1) | (templates[1:] != templates[:-1])
        if len(order):
            ordered = classes.take(order)
            is_first[1:] |= ordered[1:] != ordered[:-1]
        heads = np.flatnonzero(is_first)
        self._order, self._is_first, self._heads = order, is_first, heads
        plain = np.arange(covered, len(slots), dtype=np.int32)
        self.run_templates: Int32s = np.concatenate([templates.take(heads), plain])
        of_runs = np.diff(heads, append=len(order)).astype(np.int32)
        self.run_slots: Int32s = np.concatenate([of_runs, slots[covered:].astype(np.int32)])
        kinds = classes.take(order.take(heads))
        self.class_runs = np.flatnonzero(kinds[1:] != kinds[:-1]) + 1

    @cached_property
    def run_numbers(self) -> Int32s:
        """int32[runs]: which of its template's slots a run begins with."""
        numbers = np.zeros(len(self.run_templates), np.int32)
        heads = self._heads
        first = self._order.take(heads)
        numbers[: len(heads)] = first - self.first.take(self.run_templates[: len(heads)])
        return numbers

    @cached_property
    def _run_of_slot(self) -> Int32s:
        """int32[k]: the run of each slot that has a class."""
        runs = np.empty(len(self._order), np.int32)
        runs[self._order] = np.cumsum(self._is_first, dtype=np.int32) - np.int32(1)
        return runs

    def runs_of(self, codes: Ints, numbers: Ints) -> Int64s:
        """int64[k]: the runs of these slots (`numbers`) of these templates."""
        runs = codes.astype(np.int64)
        runs += len(self._heads) - self.covered
        classed = np.flatnonzero(codes < self.covered)
        if len(classed):
            slots = self.first.take(codes[classed]) + numbers[classed]
            runs[classed] = self._run_of_slot.take(slots)
        return runs

    def classed_slots(self) -> tuple[Int32s, Int32s]:
        """int32[k] each: of the slots that have a class the template, and the number in it."""
        slots = self.slots[: self.covered]
        codes = np.repeat(np.arange(self.covered, dtype=np.int32), slots)
        numbers = np.arange(len(codes), dtype=np.int32)
        numbers -= np.repeat(self.first[: self.covered].astype(np.int32), slots)
        return codes, numbers

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about, when all of it is known."""
        return 12 * len(self.run_templates) + 9 * len(self._order) + 16 * len(self.slots) + 500
