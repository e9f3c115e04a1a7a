"""What is decoded of a chunk's parts, in the form in which the cache keeps it."""

from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.marks import counts_between, marks_of, places_of
from logd.format.separated import SEPARATOR
from logd.format.templates import PLACEHOLDER

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.integer[Any]]


class Texts(msgspec.Struct, frozen=True):
    """A dictionary of a chunk: its texts by code, as UTF-8."""

    items: list[bytes]


class Templates:
    """Separated templates by code, and uint32[templates + 1] as `separated.edges`. A list of them
    would take three times the room."""

    def __init__(self, blob: bytes, edges: npt.NDArray[np.uint32]) -> None:
        self.blob = blob
        self.edges = edges

    @cached_property
    def slots(self) -> Int64s:
        """int64[templates]: variables of each. A phrase that no variable completes needs none."""
        marks = marks_of(np.frombuffer(self.blob, np.uint8), PLACEHOLDER[0])
        return counts_between(marks, np.minimum(self.edges, len(self.blob)))

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about, with the slots."""
        return len(self.blob) + self.edges.nbytes + 8 * len(self.edges)

    def text(self, code: int) -> bytes:
        """The template of this code. Raises ValueError where there is none."""
        start, stop = self.edges[code : code + 2].tolist()
        return self.blob[start : stop - 1]

    def texts(self, codes: Rows) -> list[bytes]:
        """The templates of these codes."""
        starts, stops = self.edges[codes].tolist(), self.edges[codes + 1].tolist()
        return [self.blob[start : stop - 1] for start, stop in zip(starts, stops, strict=True)]


class Times(msgspec.Struct, frozen=True):
    """The times of a chunk, a row each: so many units (`unit_ns`) after its earliest."""

    earliest_ns: int
    unit_ns: int
    units: npt.NDArray[np.unsignedinteger[Any]]

    def place(self, ts_ns: int, row: int) -> int:
        """How many rows are earlier, or of that time and before `row`."""
        whole, rest = divmod(ts_ns - self.earliest_ns, self.unit_ns)
        largest = int(np.iinfo(self.units.dtype).max)
        if whole < 0:
            return 0
        if whole >= largest:
            return len(self.units) if rest or whole > largest else self._place(largest, row)
        return self._place(whole, row) if not rest else self._place(whole + 1, 0)

    def _place(self, unit: int, row: int) -> int:
        wanted = self.units.dtype.type(unit)
        same = np.count_nonzero(self.units[: max(row, 0)] == wanted)
        return int(np.count_nonzero(self.units < wanted)) + int(same)

    def at(self, rows: Rows) -> Int64s:
        """int64[rows], ns."""
        base = np.uint64(self.earliest_ns & 0xFFFFFFFFFFFFFFFF)
        units = self.units[rows].astype(np.uint64)
        return (units * np.uint64(self.unit_ns) + base).view(np.int64)


def decode_templates(blob: bytes) -> Templates:
    """Of separated templates, at least one."""
    array = np.frombuffer(blob, np.uint8)
    separators = places_of(marks_of(array, SEPARATOR[0]))
    edges = np.zeros(len(separators) + 2, np.uint32)
    edges[1:-1] = separators
    edges[1:-1] += 1
    edges[-1] = len(blob) + 1
    return Templates(blob, edges)
