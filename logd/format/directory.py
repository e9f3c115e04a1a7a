"""Rows of the chunk directory: what the index knows of a chunk without reading its segment.

Value, 100 bytes, little-endian (the key is the first sequence number, 8 bytes big-endian):

    offset size
    0      8    first sequence number of the segment's file name
    8      4    number in the segment's file name
    12     4    head size of the chunk
    16     8    offset of the chunk in the segment
    24     8    chunk size
    32     8    first sequence number of the chunk
    40     4    entries
    44     4    idempotency records in the chunk
    48     8    earliest time, signed, ns since the epoch
    56     8    latest time
    64     16   entries of each level, 4 bytes each
    80     8    bytes of the entries before encoding
    88     8    receipt time of the latest of them, 0 where there is none
    96     4    CRC-32 of bytes 0-95
"""

import struct
from collections.abc import Sequence
from typing import Final

import msgspec

from logd.entry import LevelCounts, Seq
from logd.format.checksum import crc32
from logd.format.chunk import ChunkHead, IdempotencyRecord

_ROW: Final = struct.Struct("<QIIQQQIIqq4IQq")
_CRC: Final = struct.Struct("<I")
ROW_BYTES: Final = _ROW.size + _CRC.size
assert ROW_BYTES == 100


class ChunkRow(msgspec.Struct, frozen=True, gc=False):
    """Where a chunk lies and what it spans."""

    segment_seq: Seq
    segment_number: int
    offset: int
    head_bytes: int
    chunk_bytes: int
    first_seq: Seq
    count: int
    min_ts_ns: int
    max_ts_ns: int
    level_counts: LevelCounts
    source_bytes: int
    records: int
    last_record_ns: int

    @property
    def next_seq(self) -> Seq:
        return Seq(self.first_seq + self.count)

    @property
    def end(self) -> int:
        """Offset behind the chunk in its segment."""
        return self.offset + self.chunk_bytes


def row_of(
    head: ChunkHead,
    records: Sequence[IdempotencyRecord],
    segment_seq: Seq,
    segment_number: int,
    offset: int,
) -> ChunkRow:
    return ChunkRow(
        segment_seq=segment_seq,
        segment_number=segment_number,
        offset=offset,
        head_bytes=head.head_bytes,
        chunk_bytes=head.chunk_bytes,
        first_seq=head.first_seq,
        count=head.count,
        min_ts_ns=head.min_ts_ns,
        max_ts_ns=head.max_ts_ns,
        level_counts=head.level_counts,
        source_bytes=head.source_bytes,
        records=len(records),
        last_record_ns=max((record.received_ns for record in records), default=0),
    )


def encode_row(row: ChunkRow) -> bytes:
    fixed = _ROW.pack(
        row.segment_seq,
        row.segment_number,
        row.head_bytes,
        row.offset,
        row.chunk_bytes,
        row.first_seq,
        row.count,
        row.records,
        row.min_ts_ns,
        row.max_ts_ns,
        *row.level_counts,
        row.source_bytes,
        row.last_record_ns,
    )
    return fixed + _CRC.pack(crc32(fixed))


def decode_row(value: bytes) -> ChunkRow:
    """Raises ValueError where the checksum does not match."""
    if len(value) != ROW_BYTES or crc32(value[: _ROW.size]) != _CRC.unpack_from(value, 96)[0]:
        raise ValueError("directory row: checksum does not match")
    (
        segment_seq, number, head_bytes, offset, chunk_bytes, first_seq, count, records,
        min_ts_ns, max_ts_ns, debug, info, warn, error, source_bytes, last_record_ns,
    ) = _ROW.unpack_from(value)  # fmt: skip
    return ChunkRow(
        segment_seq=Seq(segment_seq),
        segment_number=number,
        offset=offset,
        head_bytes=head_bytes,
        chunk_bytes=chunk_bytes,
        first_seq=Seq(first_seq),
        count=count,
        min_ts_ns=min_ts_ns,
        max_ts_ns=max_ts_ns,
        level_counts=(debug, info, warn, error),
        source_bytes=source_bytes,
        records=records,
        last_record_ns=last_record_ns,
    )
