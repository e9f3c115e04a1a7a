import struct
import zlib

import pytest
from format_samples import INT64_MAX, INT64_MIN, PROJECT, flipped, truncated

from logd.entry import Seq
from logd.format.segment import HEADER_BYTES, VERSION, decode_header, encode_header


@pytest.mark.parametrize("first_seq", [0, 1, 2**48 - 1, 2**64 - 1])
@pytest.mark.parametrize("created_ns", [INT64_MIN, -1, 0, INT64_MAX])
def test_what_was_encoded_is_read(first_seq: int, created_ns: int) -> None:
    header = decode_header(encode_header(PROJECT, Seq(first_seq), created_ns) + b"a chunk")
    assert header.project == PROJECT
    assert (header.first_seq, header.created_ns) == (first_seq, created_ns)
    assert header.version == VERSION


def test_every_truncation_is_detected() -> None:
    for data in truncated(encode_header(PROJECT, Seq(1), 2)):
        with pytest.raises(ValueError, match="not a segment file"):
            decode_header(data)


def test_every_flipped_byte_is_detected() -> None:
    data = encode_header(PROJECT, Seq(1), 2)
    assert len(data) == HEADER_BYTES
    for _, damaged in flipped(data):
        with pytest.raises(ValueError, match=r"not a segment file|checksum"):
            decode_header(damaged)


def changed(offset: int, value: bytes) -> bytes:
    """A header with other bytes at an offset, and a checksum that holds."""
    data = bytearray(encode_header(PROJECT, Seq(1), 2))
    data[offset : offset + len(value)] = value
    struct.pack_into("<I", data, HEADER_BYTES - 4, zlib.crc32(data[: HEADER_BYTES - 4]))
    return bytes(data)


def test_a_newer_header_tells_its_version() -> None:
    assert decode_header(changed(8, b"\x09")).version == 9


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="not a segment file"):
        decode_header(changed(0, b"LOGDWAL\0"))
