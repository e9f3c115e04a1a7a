"""The write-ahead log: the entries of requests, framed.

File header, 48 bytes, little-endian:

    offset size
    0      8    magic "LOGDWAL\\0"
    8      2    version, 2
    10     2    header size, 48
    12     4    reserved, 0
    16     16   project id, the UUID's bytes
    32     8    first sequence number of the file
    40     4    reserved, 0
    44     4    CRC-32 of bytes 0-43

then frames, 36 bytes and the body: a request, or several that came together, of one entry each:

    0      4    marker FE 57 46 FF, which no body holds
    4      1    flags: bit 0 the body is NDJSON, bit 1 an idempotency record follows the header,
                bit 2 the body is columns (`wal_columns.py`); neither 0 nor 2: it is JSON
    5      3    reserved, 0
    8      4    body length in bytes
    12     4    count of entries
    16     8    sequence number of the first entry
    24     8    receipt time, signed, ns since the epoch
    32     4    CRC-32 of bytes 0-31, the idempotency record and the body
    36     32   if flag bit 1: BLAKE2b-128 of the Idempotency-Key, BLAKE2b-128 of the request
    ...         the body

A file of version 1 has bodies as they were sent, UTF-8, and so never bit 2.

A frame is valid if its marker, its CRC and its body length within the file hold. A reader meeting
an invalid frame looks for the next valid one: if there is none, the file ends in a torn frame,
which was never acknowledged; if there is one, what lies between is damage. Zeros to the end of the
file are room that was not written to yet.
"""

import struct
import uuid
from collections.abc import Iterator
from enum import Enum
from typing import Final

import msgspec

from logd.entry import ProjectId, Seq
from logd.format.checksum import crc32

MAGIC: Final = b"LOGDWAL\0"
VERSION: Final = 2
_HEADER: Final = struct.Struct("<8sHHI16sQI")
HEADER_BYTES: Final = _HEADER.size + 4
assert HEADER_BYTES == 48

MARKER: Final = b"\xfeWF\xff"
_FRAME: Final = struct.Struct("<4sB3xIIQq")
_CHECKED: Final = struct.Struct(_FRAME.format + "I")
FRAME_BYTES: Final = _CHECKED.size
assert FRAME_BYTES == 36

_NDJSON: Final = 1
_IDEMPOTENT: Final = 2
_COLUMNS: Final = 4
DIGEST_BYTES: Final = 16
_CRC: Final = struct.Struct("<I")


class Form(Enum):
    """What a body is. The values are flags."""

    JSON = 0
    NDJSON = _NDJSON
    COLUMNS = _COLUMNS


_FORMS: Final = {form.value: form for form in Form}


class Idempotency(msgspec.Struct, frozen=True, gc=False):
    """What makes a retry recognisable: digests of the Idempotency-Key and of the request."""

    key_digest: bytes
    request_digest: bytes


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One request. `body` is at least one entry."""

    first_seq: Seq
    count: int
    received_ns: int
    form: Form
    body: bytes | memoryview
    idempotency: Idempotency | None = None


class Damage(msgspec.Struct, frozen=True):
    """Bytes that are no frame. `torn`: nothing valid follows them."""

    offset: int
    length: int
    torn: bool


def encode_header(project: ProjectId, first_seq: Seq) -> bytes:
    fixed = _HEADER.pack(MAGIC, VERSION, HEADER_BYTES, 0, uuid.UUID(project).bytes, first_seq, 0)
    return fixed + _CRC.pack(crc32(fixed))


def decode_header(data: bytes) -> tuple[ProjectId, Seq, int]:
    """(project, first sequence number, format version). Raises ValueError.

    The magic and the checksum are looked at first: a version is believed only then.
    """
    if len(data) < HEADER_BYTES or data[:8] != MAGIC:
        raise ValueError("not a WAL file: no header")
    fixed = data[: HEADER_BYTES - 4]
    if crc32(fixed) != _CRC.unpack_from(data, HEADER_BYTES - 4)[0]:
        raise ValueError("header checksum does not match")
    _, version, _, _, project, first_seq, _ = _HEADER.unpack(fixed)
    return ProjectId(str(uuid.UUID(bytes=project))), Seq(first_seq), version


def encode_frame(frame: Frame) -> list[bytes]:
    """The buffers to write, in order; the body is not copied."""
    flags: int = frame.form.value
    extra = b""
    if frame.idempotency is not None:
        flags |= _IDEMPOTENT
        extra = frame.idempotency.key_digest + frame.idempotency.request_digest
    fixed = _FRAME.pack(
        MARKER, flags, len(frame.body), frame.count, frame.first_seq, frame.received_ns
    )
    crc = crc32(frame.body, crc32(extra, crc32(fixed)))
    return [fixed + _CRC.pack(crc) + extra, bytes(frame.body)]


def decode_frames(data: bytes | memoryview, offset: int) -> Iterator[tuple[int, Frame | Damage]]:
    """(offset, what is there), from `offset` to the end of the data."""
    whole = data if isinstance(data, bytes) else bytes(data)
    while offset < len(whole):
        found = _frame_at(whole, offset)
        if found is not None:
            yield offset, found[0]
            offset = found[1]
            continue
        following = _next_frame(whole, offset + 1)
        stop = len(whole) if following is None else following
        yield offset, Damage(offset, stop - offset, torn=following is None)
        offset = stop


def _next_frame(data: bytes, offset: int) -> int | None:
    while (offset := data.find(MARKER, offset)) >= 0:
        if _frame_at(data, offset) is not None:
            return offset
        offset += 1
    return None


def _frame_at(data: bytes, offset: int) -> tuple[Frame, int] | None:
    """(frame, offset behind it), or None where no valid frame begins."""
    if len(data) - offset < FRAME_BYTES:
        return None
    marker, flags, length, count, first_seq, received_ns, crc = _CHECKED.unpack_from(data, offset)
    start = offset + FRAME_BYTES
    if flags & _IDEMPOTENT:
        start += 2 * DIGEST_BYTES
    stop = start + length
    form = _FORMS.get(flags & ~_IDEMPOTENT)
    if marker != MARKER or form is None or stop > len(data) or count == 0:
        return None
    body = memoryview(data)[start:stop]  # a copy costs as much as all else of it
    found = crc32(data[offset : offset + _FRAME.size])
    idempotency = None
    if flags & _IDEMPOTENT:
        extra = data[offset + FRAME_BYTES : start]
        found = crc32(extra, found)
        idempotency = Idempotency(extra[:DIGEST_BYTES], extra[DIGEST_BYTES:])
    if crc32(body, found) != crc:
        return None
    return Frame(first_seq, count, received_ns, form, body, idempotency), stop
