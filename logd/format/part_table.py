"""The table of a chunk's parts: what each is, how many bytes, and their checksum.

A row is 16 bytes, little-endian:

    offset size
    0      1    kind
    1      1    encoding
    2      2    block, or page; 0 of what is there once
    4      4    raw bytes
    8      4    stored bytes
    12     4    CRC-32 of the stored bytes

The parts lie in the order of the table, one behind the other.
"""

import enum
import struct
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import numpy as np

_ROW: Final = struct.Struct("<BBHIII")
ROW_BYTES: Final = _ROW.size
assert ROW_BYTES == 16
_COLUMNS: Final = np.dtype([("kind", "u1"), ("", "u1"), ("block", "<u2"), ("", "<u4"),
                            ("stored", "<u4"), ("", "<u4")])  # fmt: skip
_BLOCK_BITS: Final = 32  # of a key: no number of a block reaches into the kind


class Part(enum.IntEnum):
    TIMES = 1
    LEVELS = 3
    SOURCES = 4
    SOURCE_CODES = 5
    TAG_LISTS = 6
    TAG_CODES = 7
    TEMPLATES = 8
    TEMPLATE_CODES = 9
    VAR_LENGTHS = 10
    VAR_DATA = 11
    METAS = 12
    IDEMPOTENCY = 13
    META_TEMPLATES = 14
    META_CODES = 15
    META_LENGTHS = 16
    META_DATA = 17
    SLOT_CLASSES = 18
    META_SLOT_CLASSES = 19
    VALUES = 20
    VALUE_CODES = 21
    META_VALUES = 22
    META_VALUE_CODES = 23
    CHOICES = 24
    SLOT_COUNTS = 25
    META_SLOT_COUNTS = 26
    ROW_CHOICES = 27


class SplitParts(msgspec.Struct, frozen=True):
    """The parts of a column of texts that is kept as templates and variables."""

    templates: Part
    codes: Part
    lengths: Part
    data: Part
    counts: Part
    classes: Part
    values: Part
    value_codes: Part


MESSAGE_PARTS: Final = SplitParts(
    Part.TEMPLATES,
    Part.TEMPLATE_CODES,
    Part.VAR_LENGTHS,
    Part.VAR_DATA,
    Part.SLOT_COUNTS,
    Part.SLOT_CLASSES,
    Part.VALUES,
    Part.VALUE_CODES,
)
META_PARTS: Final = SplitParts(
    Part.META_TEMPLATES,
    Part.META_CODES,
    Part.META_LENGTHS,
    Part.META_DATA,
    Part.META_SLOT_COUNTS,
    Part.META_SLOT_CLASSES,
    Part.META_VALUES,
    Part.META_VALUE_CODES,
)


class PartRef(msgspec.Struct, frozen=True, gc=False):
    """Where a part lies: `offset` from the chunk's beginning."""

    offset: int
    stored_bytes: int
    raw_bytes: int
    crc: int
    encoding: int


def encode_row(kind: Part, encoding: int, block: int, ref: tuple[int, int, int]) -> bytes:
    """`ref`: raw bytes, stored bytes, CRC-32."""
    return _ROW.pack(kind, encoding, block, *ref)


class PartTable(Mapping[tuple[int, int], PartRef]):
    """The parts by (kind, block). Of a few hundred a search asks for some."""

    def __init__(self, table: bytes, first: int) -> None:
        """`first`: where the first part lies, from the chunk's beginning."""
        rows = np.frombuffer(table, _COLUMNS)
        ends = np.cumsum(rows["stored"], dtype=np.int64)
        ends += first
        self._table = table
        self._ends: list[int] = ends.tolist()
        keys = (rows["kind"].astype(np.uint64) << np.uint64(_BLOCK_BITS)) | rows["block"]
        self._at = dict(zip(keys.tolist(), range(len(rows)), strict=True))
        self.end = self._ends[-1] if self._ends else first

    def __getitem__(self, key: tuple[int, int]) -> PartRef:
        kind, block = key
        at = self._at.get(kind << _BLOCK_BITS | block)
        if at is None:
            raise KeyError(key)
        _, encoding, _, raw, stored, crc = _ROW.unpack_from(self._table, at * ROW_BYTES)
        return PartRef(self._ends[at] - stored, stored, raw, crc, encoding)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and key[0] << _BLOCK_BITS | key[1] in self._at

    def __iter__(self) -> Iterator[tuple[int, int]]:
        low = (1 << _BLOCK_BITS) - 1
        return ((key >> _BLOCK_BITS, key & low) for key in self._at)

    def __len__(self) -> int:
        return len(self._at)

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about."""
        return len(self._table) + 120 * len(self._at)
