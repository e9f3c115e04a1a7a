import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.control import frames
from logd.errors import UnsupportedFormat

TRANSACTIONS: list[dict[str, bytes | None]] = [
    {"org/1": b"one", "member/1/2": b""},
    {"org/1": None},
    {"org/2": b"\0" * 40, "doomed/7": b"7"},
    {"user/\u65e5\u672c": b"last"},
]
FIRST = 5


def journal() -> bytes:
    data = frames.encode_header(FIRST)
    for sequence, changes in enumerate(TRANSACTIONS, FIRST):
        data += frames.encode_frame(sequence, changes)
    return data


def starts() -> list[int]:
    """The offset of each frame, and that of the end."""
    return [frames.HEADER.size, *(frame.end for frame in frames.scan(journal()).frames)]


def test_what_was_written_is_read() -> None:
    scan = frames.scan(journal())
    assert scan.whole
    assert (scan.first_sequence, scan.last_sequence) == (FIRST, FIRST + 3)
    assert [frame.changes for frame in scan.frames] == TRANSACTIONS


def test_the_golden_bytes_of_version_1() -> None:
    assert frames.encode_header(1).hex() == "6c6f67646374726c0100000001000000000000007a361289"
    frame = frames.encode_frame(1, {"org/1": b"x", "org/2": None})
    assert frame[:24].hex() == "fffe4c431100000001000000000000003a86ffeec8062174"
    assert frame[24:].hex() == "82a56f72672f31c40178a56f72672f32c0"


def test_an_empty_journal_goes_on_where_the_one_before_ended() -> None:
    scan = frames.scan(frames.encode_header(9))
    assert scan.whole
    assert scan.last_sequence == 8


def test_a_newer_version_is_refused() -> None:
    newer = bytearray(frames.encode_header(1))
    newer[8] = 2
    newer[-4:] = zlib.crc32(newer[:-4]).to_bytes(4, "little")
    with pytest.raises(UnsupportedFormat, match="version 2"):
        frames.scan(bytes(newer))


def test_every_truncation_yields_the_frames_that_are_complete() -> None:
    data, ends = journal(), starts()
    for size in range(frames.HEADER.size, len(data)):
        scan = frames.scan(data[:size])
        complete = sum(end <= size for end in ends[1:])
        assert [frame.changes for frame in scan.frames] == TRANSACTIONS[:complete]
        assert scan.gaps == ()
        if size in ends:
            assert scan.whole
        else:
            assert scan.tail is not None
            assert scan.tail.torn
            assert scan.tail.offset == ends[complete]


def test_every_truncated_header_is_seen() -> None:
    for size in range(frames.HEADER.size):
        scan = frames.scan(journal()[:size])
        assert not scan.whole
        assert scan.frames == ()


def test_every_flipped_byte_is_seen_and_costs_its_own_frame_only() -> None:
    data, ends = journal(), starts()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x41
        scan = frames.scan(bytes(damaged))
        assert not scan.whole
        hit = sum(end <= position for end in ends) - 1  # -1: the header
        left = [changes for n, changes in enumerate(TRANSACTIONS) if n != hit]
        assert [frame.changes for frame in scan.frames] == left
        if 0 <= hit < len(TRANSACTIONS) - 1:
            [gap] = scan.gaps
            assert (gap.offset, gap.end) == (ends[hit], ends[hit + 1])
            assert gap.first_missing == gap.last_missing == FIRST + hit


def test_a_removed_frame_is_seen_by_the_numbering() -> None:
    data, ends = journal(), starts()
    scan = frames.scan(data[: ends[1]] + data[ends[2] :])
    [gap] = scan.gaps
    assert gap.offset == gap.end
    assert gap.first_missing == gap.last_missing == FIRST + 1
    assert len(scan.frames) == 3


def test_a_repeated_frame_is_not_applied_twice() -> None:
    data, ends = journal(), starts()
    scan = frames.scan(data[: ends[2]] + data[ends[0] :])
    assert [frame.changes for frame in scan.frames] == TRANSACTIONS
    [gap] = scan.gaps
    assert gap.first_missing > gap.last_missing


def test_zeros_at_the_end_are_an_append_that_was_cut_short() -> None:
    tail = frames.scan(journal() + bytes(100)).tail
    assert tail is not None
    assert tail.torn


def test_a_frame_inside_a_name_is_not_a_frame() -> None:
    """Nobody can get one stored: the marker is no UTF-8."""
    with pytest.raises(UnicodeDecodeError):
        frames.MARKER.decode()


@given(st.binary(max_size=200), st.integers(0, 300))
def test_foreign_bytes_in_the_middle_hide_nothing(noise: bytes, at: int) -> None:
    data, ends = journal(), starts()
    cut = ends[at % len(ends)]
    scan = frames.scan(data[:cut] + noise + data[cut:])
    assert [frame.changes for frame in scan.frames] == TRANSACTIONS


@given(st.binary())
def test_any_bytes_can_be_scanned(data: bytes) -> None:
    assert frames.scan(data).frames == ()


def test_records_are_stated_in_small_frames_that_are_numbered_on() -> None:
    records = {f"org/{n}": b"%d" % n for n in range(300)}
    data, last = frames.encode_all(50, records)
    scan = frames.scan(data)
    assert scan.whole
    assert (scan.first_sequence, scan.last_sequence, last) == (50, 52, 52)
    assert {k: v for frame in scan.frames for k, v in frame.changes.items()} == records
    assert frames.encode_all(50, {}) == (frames.encode_header(50), 49)
