"""The blocks of a zstd frame, as RFC 8878 lays them out."""

import zstandard

_RLE = 1


def count_blocks(frame: bytes) -> int:
    """How many blocks a frame without a checksum has."""
    at, count, is_last = zstandard.frame_header_size(frame), 0, False
    while not is_last:
        header = int.from_bytes(frame[at : at + 3], "little")
        is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        at += 3 + (1 if kind == _RLE else size)
        count += 1
    assert at == len(frame)
    return count
