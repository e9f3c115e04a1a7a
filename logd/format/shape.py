"""The shape of a JSON text: how deep it nests and how many values it holds, before it is decoded.

Decoding is no way to find out. The decoder goes as deep as the stack has room, so what one caller
accepts another, with less room left, could not read again; and eight megabytes of `{},{},{},...`
take gigabytes once they are objects. Here they are counted, a slice at a time.
"""

from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

_SLICE_BYTES: Final = 1 << 20
_OTHER, _QUOTE, _OPEN, _CLOSE, _COMMA, _BLANK = range(6)
_CLASSES: Final = bytes(
    _QUOTE if c in b'"'
    else _OPEN if c in b"[{"
    else _CLOSE if c in b"]}"
    else _COMMA if c in b","
    else _BLANK if c in b": \t\r\n"
    else _OTHER
    for c in range(256)
)  # fmt: skip


class Shape(msgspec.Struct, frozen=True):
    """`depth`: levels of arrays and objects in the deepest value; `values`: how many there are;
    `commas`: how many stand directly within them, between members or elements. Exact for valid
    JSON; of any other text they are some numbers."""

    depth: int
    values: int
    commas: int


def shape_of(text: bytes, *, in_array: bool) -> Shape:
    """The shape of the values of an array, or else of values one behind the other."""
    if b"\\" in text:  # then no quote is left within a string
        text = text.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
    tally = _Tally(1 if in_array else 0)
    for start in range(0, len(text), _SLICE_BYTES):
        piece = text[start : start + _SLICE_BYTES].translate(_CLASSES)
        tally.add(np.frombuffer(piece, np.uint8))
    return Shape(max(tally.deepest - tally.level, 0), tally.values, tally.commas)


class _Tally:
    """Counts so far. `level`: the nesting at which the values stand."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.deepest = 0
        self.values = 0
        self.commas = 0
        self._nesting = 0
        self._quotes = 0
        self._last = np.full(1, _BLANK, np.uint8)

    def add(self, classes: npt.NDArray[np.uint8]) -> None:
        quotes = np.cumsum(classes == _QUOTE, dtype=np.int64) + self._quotes
        seen = np.where(quotes & 1, np.uint8(_BLANK), classes)  # of a string only its end
        opens = seen == _OPEN
        steps = opens.view(np.int8) - (seen == _CLOSE).view(np.int8)
        nesting = np.cumsum(steps, dtype=np.int64) + self._nesting
        literal = (seen == _OTHER) & (np.concatenate([self._last, seen[:-1]]) != _OTHER)
        self.values += int(np.count_nonzero(opens & (nesting == self.level + 1)))
        self.values += int(np.count_nonzero((literal | (seen == _QUOTE)) & (nesting == self.level)))
        self.commas += int(np.count_nonzero((seen == _COMMA) & (nesting == self.level + 1)))
        self.deepest = max(self.deepest, int(nesting.max()))
        self._nesting = int(nesting[-1])
        self._quotes = int(quotes[-1])
        self._last = seen[-1:]
