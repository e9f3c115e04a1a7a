"""Segment files: append-only runs of chunks.

Header, 56 bytes, little-endian:

    offset size
    0      8    magic "LOGDSEG\\0"
    8      2    version, 3: of the segment and of its chunks
    10     2    header size, 56
    12     4    reserved, 0
    16     16   project id, the UUID's bytes
    32     8    sequence number of the first entry of the first chunk
    40     8    time of its creation, signed, ns since the epoch
    48     4    reserved, 0
    52     4    CRC-32 of bytes 0-51

then chunks (`chunk.py`), one behind the other.
"""

import struct
import uuid
from typing import Final

import msgspec

from logd.entry import ProjectId, Seq
from logd.format.checksum import crc32

MAGIC: Final = b"LOGDSEG\0"
VERSION: Final = 3
_HEADER: Final = struct.Struct("<8sHHI16sQqI")
_CRC: Final = struct.Struct("<I")
HEADER_BYTES: Final = _HEADER.size + _CRC.size
assert HEADER_BYTES == 56


class SegmentHeader(msgspec.Struct, frozen=True):
    project: ProjectId
    first_seq: Seq
    created_ns: int
    version: int


def encode_header(project: ProjectId, first_seq: Seq, created_ns: int) -> bytes:
    fixed = _HEADER.pack(
        MAGIC, VERSION, HEADER_BYTES, 0, uuid.UUID(project).bytes, first_seq, created_ns, 0
    )
    return fixed + _CRC.pack(crc32(fixed))


def decode_header(data: bytes) -> SegmentHeader:
    """Raises ValueError where the magic or the checksum does not hold."""
    if len(data) < HEADER_BYTES or data[:8] != MAGIC:
        raise ValueError("not a segment file: no header")
    fixed = data[: _HEADER.size]
    if crc32(fixed) != _CRC.unpack_from(data, _HEADER.size)[0]:
        raise ValueError("header checksum does not match")
    _, version, _, _, project, first_seq, created_ns, _ = _HEADER.unpack(fixed)
    return SegmentHeader(
        ProjectId(str(uuid.UUID(bytes=project))), Seq(first_seq), created_ns, version
    )
