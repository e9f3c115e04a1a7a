"""Which rows of a part of the log match: kept as coarse as the search allows.

A selection is exact. While a search only touched words of one dictionary (templates, say) it
stays a set of that dictionary's texts, whose rows are counted without being looked at.
"""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]


class Everything(msgspec.Struct, frozen=True):
    """Every row."""


class Nothing(msgspec.Struct, frozen=True):
    """No row."""


class ByText(msgspec.Struct, frozen=True):
    """The rows that refer to the texts of one dictionary kind (`format/vocabulary.py`) for which
    `texts`, bool[texts of the kind], is true."""

    kind: int
    texts: Bools


class Rows(msgspec.Struct, frozen=True):
    """The rows for which `mask`, bool[count], is true."""

    mask: Bools


class Counted(msgspec.Struct, frozen=True):
    """So many rows, at least one; `find()` looks for them, and gives the mask."""

    count: int
    find: Callable[[], Bools]


Selection = Everything | Nothing | ByText | Rows | Counted

ALL = Everything()
NONE = Nothing()


class FewRows(msgspec.Struct, frozen=True):
    """Rows, remembered: uint32[k]."""

    rows: npt.NDArray[np.uint32]


class ManyRows(msgspec.Struct, frozen=True):
    """Rows, remembered: a bit a row."""

    bits: npt.NDArray[np.uint8]


Remembered = Everything | Nothing | ByText | FewRows | ManyRows | int
"""A selection as a cache keeps it; an int for so many rows of a Counted."""

_HEADER_BYTES: Final = 200


def remember(selection: Selection) -> tuple[Remembered, int]:
    """(what to keep of it, bytes that takes)."""
    if isinstance(selection, Counted):
        return selection.count, _HEADER_BYTES
    if isinstance(selection, ByText):
        return selection, _HEADER_BYTES + selection.texts.nbytes
    if not isinstance(selection, Rows):
        return selection, _HEADER_BYTES
    rows = np.flatnonzero(selection.mask)
    if len(rows) < len(selection.mask) // 32:
        few = rows.astype(np.uint32)
        return FewRows(few), _HEADER_BYTES + few.nbytes
    bits = np.packbits(selection.mask)
    return ManyRows(bits), _HEADER_BYTES + bits.nbytes


def recall(remembered: Remembered, count: int, find: Callable[[], Bools]) -> Selection:
    """The selection again, of a part of `count` rows; `find()`: as in Counted."""
    if isinstance(remembered, int):
        return Counted(remembered, find)
    if isinstance(remembered, FewRows):
        mask = np.zeros(count, np.bool_)
        mask[remembered.rows] = True
        return Rows(mask)
    if isinstance(remembered, ManyRows):
        return Rows(np.unpackbits(remembered.bits, count=count).view(np.bool_))
    return remembered


class Expand(Protocol):
    def __call__(self, selection: ByText) -> Bools:
        """bool[count]: the rows that refer to the texts."""


def both(a: Selection, b: Selection, expand: Expand) -> Selection:
    if isinstance(a, Nothing) or isinstance(b, Nothing):
        return NONE
    if isinstance(a, Everything):
        return b
    if isinstance(b, Everything):
        return a
    if isinstance(a, ByText) and isinstance(b, ByText) and a.kind == b.kind:
        return _by_text(a.kind, a.texts & b.texts)
    return _rows(_mask(a, expand) & _mask(b, expand))


def either(a: Selection, b: Selection, expand: Expand) -> Selection:
    if isinstance(a, Everything) or isinstance(b, Everything):
        return ALL
    if isinstance(a, Nothing):
        return b
    if isinstance(b, Nothing):
        return a
    if isinstance(a, ByText) and isinstance(b, ByText) and a.kind == b.kind:
        return ByText(a.kind, a.texts | b.texts)
    return Rows(_mask(a, expand) | _mask(b, expand))


def inverse(a: Selection) -> Selection:
    if isinstance(a, Everything):
        return NONE
    if isinstance(a, Nothing):
        return ALL
    if isinstance(a, ByText):
        return _by_text(a.kind, ~a.texts)
    return _rows(~a.mask if isinstance(a, Rows) else ~a.find())


def _mask(a: ByText | Rows | Counted, expand: Expand) -> Bools:
    if isinstance(a, Counted):
        return a.find()
    return a.mask if isinstance(a, Rows) else expand(a)


def _by_text(kind: int, texts: Bools) -> Selection:
    return ByText(kind, texts) if texts.any() else NONE


def _rows(mask: Bools) -> Selection:
    return Rows(mask) if mask.any() else NONE
