"""Columns of codes that mostly follow from a row's template: level, source, tags, kind of metas.

What comes together with a template, a code of each of these columns, is stored once a chunk, what
comes most often first. A row has its *choice* among what comes with its template: 0 as a rule,
which takes next to nothing.

Little-endian:

    4      templates: t
    4      what comes with all of them: n
    1      bytes of a number: v
    1      columns: c
    2 c    of each column the kind of its part (`part_table.py`), and the bytes of a code: w
    v t    planes: how many choices each template has
    w n    of each column: planes, the codes, template by template
"""

import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from logd.format.columns import from_planes, narrowest, to_planes
from logd.format.part_table import Part

_HEAD: Final = struct.Struct("<IIBB")

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Ints = npt.NDArray[np.integer[Any]]
UInts = npt.NDArray[np.unsignedinteger[Any]]


class Chosen(NamedTuple):
    """`counts`: int64[templates], of each how many choices it has; `codes`: of each kind uint[n],
    what they are; `choices`: uint32[rows], that of each row."""

    counts: Int64s
    codes: dict[Part, UInts]
    choices: npt.NDArray[np.uint32]


def choose(templates: Int32s, count: int, columns: Mapping[Part, Ints]) -> Chosen:
    """Of at least one row. `templates`: those of all rows, `count` different ones; `columns`: of
    each kind a code a row, less than 2^16."""
    keys = [templates.astype(np.uint16), *(codes.astype(np.uint16) for codes in columns.values())]
    order = np.lexsort(keys[::-1])  # the template counts most
    ordered = [key.take(order) for key in keys]
    begins = np.zeros(len(order), np.bool_)
    begins[0] = True
    for key in ordered:
        begins[1:] |= key[1:] != key[:-1]
    first = np.flatnonzero(begins)
    rows = np.diff(first, append=len(order))
    of_template = ordered[0].take(first)
    counts = np.bincount(of_template, minlength=count)
    by_rank = np.lexsort((-rows, of_template))
    ranks = np.empty(len(first), np.uint32)
    before = np.cumsum(counts) - counts
    ranks[by_rank] = np.arange(len(first)) - before.take(of_template)
    choices = np.empty(len(order), np.uint32)
    choices[order] = np.repeat(ranks, rows)
    codes = [key.take(first[by_rank]) for key in ordered[1:]]
    return Chosen(counts, dict(zip(columns, codes, strict=True)), choices)


def encode_choices(chosen: Chosen) -> list[bytes]:
    """Pieces that differ in their bytes."""
    counts = to_planes(chosen.counts.astype(np.uint32))
    columns = {kind: to_planes(codes) for kind, codes in chosen.codes.items()}
    total = int(chosen.counts.sum())
    head = _HEAD.pack(len(chosen.counts), total, len(counts), len(columns))
    head += b"".join([bytes([kind, len(planes)]) for kind, planes in columns.items()])
    return [head, *counts, *(plane for planes in columns.values() for plane in planes)]


class Choices:
    """What comes with the templates of a chunk. `codes`: of each kind uint[n]."""

    def __init__(self, counts: UInts, codes: dict[Part, UInts], total: int) -> None:
        """Raises ValueError where the numbers do not add up."""
        ends = np.cumsum(counts, dtype=np.int64)
        if (ends.item(-1) if len(ends) else 0) != total:
            raise ValueError("choices: the numbers do not add up")
        self._begins: UInts = (ends - counts).astype(np.uint16 if total < 1 << 16 else np.uint32)
        self.codes = codes

    def places(self, templates: Ints, choices: Ints) -> Ints:
        """uint[rows]: where among the codes those of the rows are. Raises IndexError where a row
        has no template."""
        return self._begins.take(templates) + choices

    @property
    def size_bytes(self) -> int:
        """Memory that it takes."""
        return self._begins.nbytes + sum(codes.nbytes for codes in self.codes.values())


NO_CHOICES: Final = Choices(np.zeros(0, np.uint8), {}, 0)
"""Of a chunk whose columns do not follow from the templates."""


def decode_choices(raw: bytes) -> Choices:
    """Raises ValueError where they do not hold."""
    try:
        templates, total, of_counts, columns = _HEAD.unpack_from(raw)
    except struct.error:
        raise ValueError("choices: cut short") from None
    at = _HEAD.size + 2 * columns
    kinds = raw[_HEAD.size : at]
    if len(kinds) != 2 * columns:
        raise ValueError("choices: cut short")
    found: list[UInts] = []
    for count, width in [(templates, of_counts), *((total, width) for width in kinds[1::2])]:
        end = at + count * width
        if end > len(raw) or not 1 <= width <= 4:
            raise ValueError("choices: cut short")
        found.append(from_planes(raw[at:end], count, narrowest(width)))
        at = end
    if at != len(raw):
        raise ValueError("choices: more bytes than codes")
    return Choices(found[0], dict(zip(map(Part, kinds[::2]), found[1:], strict=True)), total)
