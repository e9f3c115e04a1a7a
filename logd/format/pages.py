"""Paged values: what the index stores per chunk, of which a look-up decodes one page.

Little-endian:

    offset size
    0      4    magic, 4 bytes, the kind of value
    4      2    version, 3
    6      2    reserved, 0
    8      4    pages: n
    12     4    head size in bytes: h
    16     4    CRC-32 of bytes 0-15, the directory and the head
    20     16 n directory, a row a page: first key, raw bytes, stored bytes, CRC-32 of those
    ...    h    head: what a look-up needs of every page; its meaning is the kind's
    ...         the pages, zstd frames, one behind the other

A value is derived: one that fails a check is rebuilt from its chunk.
"""

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

from logd.format.checksum import crc32
from logd.format.columns import compress, decompress

VERSION: Final = 3
_HEADER: Final = struct.Struct("<4sHHIII")
assert _HEADER.size == 20
_ROW: Final = np.dtype([("key", "<u4"), ("raw", "<u4"), ("stored", "<u4"), ("crc", "<u4")])
assert _ROW.itemsize == 16


def encode_pages(
    magic: bytes, head: bytes, keys: Sequence[int], pages: Sequence[Sequence[bytes]]
) -> bytes:
    """A page is given as pieces that differ in their bytes, see `compress`."""
    frames = [compress(*page) for page in pages]
    directory = np.zeros(len(pages), _ROW)
    directory["key"] = keys
    directory["raw"] = [sum(map(len, page)) for page in pages]
    directory["stored"] = [len(frame) for frame in frames]
    directory["crc"] = [crc32(frame) for frame in frames]
    rows = directory.tobytes()
    fields = (magic, VERSION, 0, len(pages), len(head))
    crc = crc32(head, crc32(rows, crc32(_HEADER.pack(*fields, 0)[:16])))
    return b"".join([_HEADER.pack(*fields, crc), rows, head, *frames])


class PageDirectory:
    """What stands before the pages of a value, checked; it does not hold on to the value.

    Raises ValueError where a check fails. `keys`: uint32[pages], the first key of each.
    """

    def __init__(self, magic: bytes, value: bytes | memoryview) -> None:
        if len(value) < _HEADER.size:
            raise ValueError("paged value: no header")
        found, version, _, count, head_size, crc = _HEADER.unpack_from(value)
        start = _HEADER.size + count * _ROW.itemsize
        if found != magic or version != VERSION or start + head_size > len(value):
            raise ValueError("paged value: the header does not hold")
        rows = bytes(value[_HEADER.size : start])
        self.head = bytes(value[start : start + head_size])
        if crc32(self.head, crc32(rows, crc32(value[:16]))) != crc:
            raise ValueError("paged value: checksum of the directory does not match")
        self._rows = np.frombuffer(rows, _ROW)
        self.keys = np.ascontiguousarray(self._rows["key"])
        stored = self._rows["stored"].astype(np.int64)
        self._offsets = start + head_size + np.cumsum(stored) - stored
        if int(start + head_size + stored.sum()) != len(value):
            raise ValueError("paged value: its length does not match")

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about."""
        return 500 + len(self.head) + 28 * len(self._rows)

    def page(self, value: bytes | memoryview, index: int) -> bytes:
        """A page of the value that this is the directory of. Raises ValueError if the page is
        damaged."""
        _, raw, stored, crc = self._rows[index].item()
        offset = int(self._offsets[index])
        frame = value[offset : offset + stored]
        if crc32(frame) != crc:
            raise ValueError(f"paged value: checksum of page {index} does not match")
        return decompress(frame, raw)
