import itertools
import struct
import zlib

import pytest
from format_samples import INT64_MAX, INT64_MIN, PROJECT, flipped, truncated, unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.entry import Seq
from logd.format.wal import (
    DIGEST_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    MARKER,
    VERSION,
    Damage,
    Form,
    Frame,
    Idempotency,
    decode_frames,
    decode_header,
    encode_frame,
    encode_header,
)

FRAMES = [
    Frame(Seq(0), 1, 1_700_000_000_000_000_000, Form.JSON, b'{"a":1}'),
    Frame(Seq(1), 2, 1_700_000_000_000_000_001, Form.NDJSON, b'{"b":1}\n{"c":"\xc3\xa9"}\n'),
    Frame(Seq(3), 7, -5, Form.JSON, b"[]", Idempotency(b"k" * DIGEST_BYTES, b"r" * DIGEST_BYTES)),
    Frame(Seq(10), 1, 0, Form.COLUMNS, b"columns"),
]

digests = st.binary(min_size=DIGEST_BYTES, max_size=DIGEST_BYTES)
frames = st.builds(
    Frame,
    first_seq=st.integers(0, 2**64 - 1).map(Seq),
    count=st.integers(1, 2**32 - 1),
    received_ns=st.integers(INT64_MIN, INT64_MAX),
    form=st.sampled_from(Form),
    body=st.text(st.characters(exclude_categories=["Cs"])).map(str.encode),
    idempotency=st.none() | st.builds(Idempotency, digests, digests),
)


def written(some: list[Frame]) -> bytes:
    return b"".join(buffer for frame in some for buffer in encode_frame(frame))


def offsets(some: list[Frame]) -> list[int]:
    """Where each frame begins, and where the last one ends."""
    return [0, *itertools.accumulate(len(written([frame])) for frame in some)]


def read(data: bytes) -> list[tuple[int, Frame | Damage]]:
    return list(decode_frames(data, 0))


def whole(some: list[Frame]) -> list[tuple[int, Frame | Damage]]:
    return list(zip(offsets(some), some, strict=False))


# ---------------------------------------------------------------- header


@pytest.mark.parametrize("first_seq", [0, 1, 2**48 - 1, 2**64 - 1])
def test_what_the_header_says_is_read(first_seq: int) -> None:
    data = encode_header(PROJECT, Seq(first_seq))
    assert len(data) == HEADER_BYTES
    assert decode_header(data + b"frames") == (PROJECT, first_seq, VERSION)


def changed(offset: int, value: bytes) -> bytes:
    """A header with other bytes at an offset, and a checksum that holds."""
    data = bytearray(encode_header(PROJECT, Seq(1)))
    data[offset : offset + len(value)] = value
    struct.pack_into("<I", data, HEADER_BYTES - 4, zlib.crc32(data[: HEADER_BYTES - 4]))
    return bytes(data)


def test_a_newer_header_tells_its_version() -> None:
    assert decode_header(changed(8, b"\x09"))[2] == 9


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="not a WAL file"):
        decode_header(changed(0, b"LOGDSEG\0"))


def test_every_truncated_header_is_detected() -> None:
    for data in truncated(encode_header(PROJECT, Seq(1))):
        with pytest.raises(ValueError, match="not a WAL file"):
            decode_header(data)


def test_every_flipped_byte_of_the_header_is_detected() -> None:
    for _, data in flipped(encode_header(PROJECT, Seq(1))):
        with pytest.raises(ValueError, match=r"not a WAL file|checksum"):
            decode_header(data)


# ---------------------------------------------------------------- frames


@unhurried
@given(st.lists(frames, max_size=5))
def test_what_was_written_is_read(some: list[Frame]) -> None:
    data = written(some)
    assert read(data) == whole(some)
    assert list(decode_frames(memoryview(data), 0)) == whole(some)


def test_reading_begins_at_the_offset() -> None:
    data = encode_header(PROJECT, Seq(0)) + written(FRAMES)
    found = list(decode_frames(data, HEADER_BYTES))
    assert [frame for _, frame in found] == FRAMES
    assert [at - HEADER_BYTES for at, _ in found] == offsets(FRAMES)[:-1]


def test_a_body_is_not_copied_to_be_written() -> None:
    body = b"[" + b" " * 1000 + b"]"
    assert encode_frame(Frame(Seq(0), 1, 0, Form.COLUMNS, body))[-1] is body


def test_no_frames_are_read_from_nothing() -> None:
    assert read(b"") == []


def test_every_truncation_tears_the_last_frame_only() -> None:
    data, at = written(FRAMES), offsets(FRAMES)
    for size in range(len(data)):
        complete = sum(end <= size for end in at[1:])
        expected = whole(FRAMES)[:complete]
        if size > at[complete]:
            torn = Damage(at[complete], size - at[complete], torn=True)
            expected.append((at[complete], torn))
        assert read(data[:size]) == expected


def test_every_flipped_byte_damages_its_frame_only() -> None:
    at = offsets(FRAMES)
    for position, data in flipped(written(FRAMES)):
        index = sum(end <= position for end in at[1:])
        last = index == len(FRAMES) - 1
        expected = whole(FRAMES)
        damage = Damage(at[index], at[index + 1] - at[index], torn=last)
        expected[index] = (at[index], damage)
        assert read(data) == expected


def test_zeros_behind_the_last_frame_are_torn() -> None:
    """A file system may have allocated what it never wrote."""
    end = offsets(FRAMES)[-1]
    for size in (1, FRAME_BYTES - 1, FRAME_BYTES, 5000):
        torn = Damage(end, size, torn=True)
        assert read(written(FRAMES) + bytes(size)) == [*whole(FRAMES), (end, torn)]


def test_neighbouring_damage_is_one_stretch() -> None:
    data, at = bytearray(written(FRAMES)), offsets(FRAMES)
    data[at[1] + 40] ^= 1
    data[at[2] + 40] ^= 1
    damage = Damage(at[1], at[3] - at[1], torn=False)
    assert read(bytes(data)) == [whole(FRAMES)[0], (at[1], damage), whole(FRAMES)[3]]


def test_damage_in_the_middle_and_a_torn_end_are_told_apart() -> None:
    data, at = bytearray(written(FRAMES)), offsets(FRAMES)
    data[at[1]] ^= 1
    assert read(bytes(data[:-1])) == [
        whole(FRAMES)[0],
        (at[1], Damage(at[1], at[2] - at[1], torn=False)),
        whole(FRAMES)[2],
        (at[3], Damage(at[3], at[4] - at[3] - 1, torn=True)),
    ]


@pytest.mark.parametrize("hole", [1, 4, 36, 100])
def test_what_follows_inserted_or_lost_bytes_is_found(hole: int) -> None:
    data, at = written(FRAMES), offsets(FRAMES)
    inserted = data[: at[2]] + b"\xfe" * hole + data[at[2] :]
    assert [found for _, found in read(inserted) if isinstance(found, Frame)] == FRAMES
    lost = data[: at[1]] + data[at[1] + hole :]
    frames_left = [found for _, found in read(lost) if isinstance(found, Frame)]
    assert frames_left[0] == FRAMES[0]
    assert frames_left[-1] == FRAMES[3]


def test_a_marker_that_begins_no_frame_is_passed_over() -> None:
    noise = MARKER * 9 + bytes(40) + MARKER
    assert read(noise + written(FRAMES))[1:] == [
        (at + len(noise), frame) for at, frame in whole(FRAMES)
    ]
    assert read(noise) == [(0, Damage(0, len(noise), torn=True))]


def test_a_damaged_length_swallows_no_frame_behind() -> None:
    data, at = bytearray(written(FRAMES)), offsets(FRAMES)
    for length in (0, 1, len(data), 2**32 - 1):
        struct.pack_into("<I", data, at[1] + 8, length)
        assert [at for at, found in read(bytes(data)) if isinstance(found, Frame)] == [
            at[0], at[2], at[3],
        ]  # fmt: skip


def test_a_frame_inside_the_body_of_a_whole_frame_is_not_looked_at() -> None:
    """No body can hold one; the reader does not depend on it."""
    outer = [Frame(Seq(0), 1, 0, Form.JSON, written(FRAMES[:1])), FRAMES[1]]
    assert read(written(outer)) == whole(outer)


def sealed(frame: bytearray) -> bytes:
    crc = zlib.crc32(frame[FRAME_BYTES:], zlib.crc32(frame[: FRAME_BYTES - 4]))
    struct.pack_into("<I", frame, FRAME_BYTES - 4, crc)
    return bytes(frame)


def test_frames_of_unknown_flags_or_no_entries_are_damage() -> None:
    for offset, value in [(4, 5), (4, 8), (4, 0x80), (12, 0)]:
        frame = bytearray(written(FRAMES[:1]))
        frame[offset] = value
        data = sealed(frame)
        assert read(data) == [(0, Damage(0, len(data), torn=True))]


def test_the_marker_is_in_no_utf8_text() -> None:
    for byte in (MARKER[:1], MARKER[-1:]):
        every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
        assert byte not in every.encode()
