"""The journal's bytes <-> transactions. Byte tables: `docs/format/control.md`.

A journal is a header and then frames, one a transaction, numbered without gaps. The numbering goes
on when the journal is rewritten: the new file's first frames state all live records again.

A reader takes every frame whose checksums hold and whose number is higher than the one before. At
bytes that are no such frame it looks for the next marker at which one begins; what it skipped is a
`Gap`. Bytes after the last good frame are the `Tail`: a transaction whose writing was cut short,
or damage; the reader can't know which, `recovery` decides.
"""

import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from logd.errors import UnsupportedFormat

MAGIC: Final = b"logdctrl"
VERSION: Final = 1
HEADER: Final = struct.Struct("<8sIQI")  # magic, version, first sequence, CRC-32 of all before
assert HEADER.size == 24

MARKER: Final = b"\xff\xfeLC"  # no UTF-8 text contains it, so no name or address can
FRAME: Final = struct.Struct("<4sIQII")  # marker, payload length, sequence, two CRC-32s
assert FRAME.size == 24
_FRAME_CHECKED: Final = struct.Struct("<4sIQI")  # what the frame header's own CRC-32 covers
assert _FRAME_CHECKED.size == FRAME.size - 4

RECORDS_A_FRAME: Final = 128  # in a rewritten journal: one damaged frame loses no more than these

Changes = Mapping[str, bytes | None]
"""Of one transaction: the new value of each key, None where the key is deleted."""


class Frame(msgspec.Struct, frozen=True):
    """One transaction. `end`: the offset of the byte after it."""

    sequence: int
    changes: dict[str, bytes | None]
    end: int


class Gap(msgspec.Struct, frozen=True):
    """Damage before a good frame: the bytes skipped, the transactions that were to be there.

    `first_missing` > `last_missing` where the numbering shows no transaction to be missing.
    """

    offset: int
    end: int
    reason: str
    first_missing: int
    last_missing: int


class Tail(msgspec.Struct, frozen=True):
    """Bytes after the last good frame. `torn`: they look like an append that was cut short."""

    offset: int
    reason: str
    torn: bool


class Scan(msgspec.Struct, frozen=True):
    """What a journal holds. `first_sequence` is None where the header is unreadable."""

    first_sequence: int | None
    frames: tuple[Frame, ...]
    gaps: tuple[Gap, ...]
    tail: Tail | None

    @property
    def whole(self) -> bool:
        return self.first_sequence is not None and not self.gaps and self.tail is None

    @property
    def last_sequence(self) -> int:
        if self.frames:
            return self.frames[-1].sequence
        return self.first_sequence - 1 if self.first_sequence is not None else 0


class _Unreadable(Exception):
    """No good frame begins here."""

    def __init__(self, reason: str, torn: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.torn = torn


def encode_header(first_sequence: int) -> bytes:
    checked = HEADER.pack(MAGIC, VERSION, first_sequence, 0)[:-4]
    return checked + struct.pack("<I", zlib.crc32(checked))


def encode_frame(sequence: int, changes: Changes) -> bytes:
    payload = msgspec.msgpack.encode(changes)
    checked = _FRAME_CHECKED.pack(MARKER, len(payload), sequence, zlib.crc32(payload))
    return checked + struct.pack("<I", zlib.crc32(checked)) + payload


def encode_all(first_sequence: int, records: Mapping[str, bytes]) -> tuple[bytes, int]:
    """A whole journal that states these records, and its last sequence."""
    parts = [encode_header(first_sequence)]
    sequence = first_sequence - 1
    for changes in _batches(records.items()):
        sequence += 1
        parts.append(encode_frame(sequence, changes))
    return b"".join(parts), sequence


def _batches(items: Iterable[tuple[str, bytes]]) -> Iterable[dict[str, bytes]]:
    batch: dict[str, bytes] = {}
    for key, value in items:
        batch[key] = value
        if len(batch) == RECORDS_A_FRAME:
            yield batch
            batch = {}
    if batch:
        yield batch


def scan(data: bytes) -> Scan:
    """Every transaction that can be read, and what cannot. Raises UnsupportedFormat only."""
    first_sequence = _decode_header(data)
    frames: list[Frame] = []
    gaps: list[Gap] = []
    expected, offset = first_sequence, HEADER.size
    if expected is None:
        expected = _first_sequence_found(data)
    while offset < len(data):
        start, reason = offset, "transactions are missing"
        try:
            frame = _decode_frame(data, offset, expected)
        except _Unreadable as unreadable:
            found = _next_frame(data, offset + 1, expected)
            if found is None:
                tail = Tail(offset, unreadable.reason, unreadable.torn)
                return Scan(first_sequence, tuple(frames), tuple(gaps), tail)
            reason = unreadable.reason
            start, frame = found
        if start != offset or frame.sequence != expected:
            gaps.append(Gap(offset, start, reason, expected, frame.sequence - 1))
        frames.append(frame)
        expected, offset = frame.sequence + 1, frame.end
    return Scan(first_sequence, tuple(frames), tuple(gaps), None)


def _first_sequence_found(data: bytes) -> int:
    """With an unreadable header: what the first frame says if it is whole, else 1."""
    try:
        return _decode_frame(data, HEADER.size, 1).sequence
    except _Unreadable:
        return 1


def _decode_header(data: bytes) -> int | None:
    """The first sequence, or None where this is no good header."""
    if len(data) < HEADER.size:
        return None
    magic, version, first_sequence, checksum = HEADER.unpack_from(data)
    if magic != MAGIC or zlib.crc32(data[: HEADER.size - 4]) != checksum:
        return None
    if version > VERSION:
        raise UnsupportedFormat(f"the control journal has version {version}, this is {VERSION}")
    return int(first_sequence)


def _decode_frame(data: bytes, offset: int, at_least: int) -> Frame:
    if len(data) - offset < FRAME.size:
        raise _Unreadable("a frame header is cut short", torn=True)
    marker, length, sequence, payload_sum, header_sum = FRAME.unpack_from(data, offset)
    if zlib.crc32(data[offset : offset + _FRAME_CHECKED.size]) != header_sum or marker != MARKER:
        zeros = not data[offset:].strip(b"\0")  # size extended, data never written: power loss
        raise _Unreadable("a frame header fails its checksum", torn=zeros)
    if sequence < at_least:
        raise _Unreadable("the numbering of the transactions goes back")
    start, end = offset + FRAME.size, offset + FRAME.size + length
    if end > len(data):
        raise _Unreadable("a frame is cut short", torn=True)
    payload = data[start:end]
    if zlib.crc32(payload) != payload_sum:
        raise _Unreadable("a frame fails its checksum")
    try:
        changes = msgspec.msgpack.decode(payload, type=dict[str, bytes | None])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _Unreadable("a frame's payload is not a list of changes") from None
    return Frame(sequence, changes, end)


def _next_frame(data: bytes, offset: int, at_least: int) -> tuple[int, Frame] | None:
    """The next good frame from `offset` on, and where it begins."""
    while (offset := data.find(MARKER, offset)) >= 0:
        try:
            return offset, _decode_frame(data, offset, at_least)
        except _Unreadable:
            offset += 1
    return None
