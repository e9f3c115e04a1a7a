import numpy as np
import pytest
import zstandard
from format_samples import flipped, truncated, unhurried
from hypothesis import given
from hypothesis import strategies as st
from zstd_blocks import count_blocks

from logd.format.columns import byte_width, compress, decompress, from_planes, to_planes


@unhurried
@given(st.sampled_from([1, 2, 4, 8]), st.data())
def test_a_column_comes_back_from_its_planes(item_bytes: int, data: st.DataObject) -> None:
    dtype = np.dtype(f"u{item_bytes}")
    bits = data.draw(st.integers(0, 8 * item_bytes))
    values = np.array(data.draw(st.lists(st.integers(0, 2**bits - 1))), dtype)
    planes = to_planes(values)
    raw = b"".join(planes)
    assert [len(plane) for plane in planes] == [len(values)] * len(planes)
    assert len(planes) == (byte_width(max(values.tolist())) if len(values) else 0)
    assert from_planes(raw, len(values), dtype).tolist() == values.tolist()
    assert from_planes(raw, len(values), np.uint64).tolist() == values.tolist()


@pytest.mark.parametrize(
    ("largest", "width"),
    [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 3), (2**32, 5), (2**56, 8), (2**64 - 1, 8)],
)
def test_a_column_is_as_wide_as_its_largest_value(largest: int, width: int) -> None:
    assert byte_width(largest) == width
    planes = to_planes(np.array([largest, 0, 1], np.uint64))
    assert [len(plane) for plane in planes] == [3] * width


def test_planes_are_the_lowest_bytes_first() -> None:
    planes = to_planes(np.array([0x0102, 0x0304, 0x05], np.uint32))
    assert planes == [bytes([2, 4, 5]), bytes([1, 3, 0])]


def test_an_empty_column_has_no_planes() -> None:
    assert to_planes(np.zeros(0, np.uint32)) == []
    assert from_planes(b"", 0, np.uint32).tolist() == []


def test_planes_that_do_not_fit_the_count_are_refused() -> None:
    for raw, count in [(b"abc", 2), (b"", 1), (b"a", 0), (bytes(10), 2)]:
        with pytest.raises(ValueError, match="planes"):
            from_planes(raw, count, np.uint32)


@unhurried
@given(st.binary())
def test_a_frame_decompresses_to_what_was_compressed(raw: bytes) -> None:
    assert decompress(compress(raw), len(raw)) == raw
    assert decompress(memoryview(compress(raw)), len(raw)) == raw


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=600),
        st.builds(
            lambda some, size: (some * size)[:size],
            st.binary(min_size=1, max_size=40),
            st.sampled_from([511, 512, 513, 5000, 1 << 17, 150_000]),
        ),
    ),
    max_size=6,
)


@unhurried
@given(PIECES)
def test_pieces_become_one_frame_of_all_their_bytes(pieces: list[bytes]) -> None:
    raw, frame = b"".join(pieces), compress(*pieces)
    assert decompress(frame, len(raw)) == raw
    stated = zstandard.get_frame_parameters(frame)
    assert stated.content_size == len(raw)
    assert not stated.has_checksum
    reader = zstandard.ZstdDecompressor().decompressobj()
    assert reader.decompress(frame) == raw
    assert reader.eof
    assert reader.unused_data == b""


@pytest.mark.parametrize(
    ("sizes", "blocks"),
    [
        ([], 1), ([0], 1), ([0, 0], 1), ([1], 1), ([5000], 1), ([5, 5], 1), ([511, 0], 1),
        ([512, 512], 2), ([512, 1], 2), ([1, 512], 1), ([512, 0], 1), ([0, 512, 0, 512], 2),
        ([511, 511], 1), ([511, 1, 512], 2), ([511, 511, 511], 2), ([5000, 3, 5000, 5000], 3),
        ([100] * 12, 2), ([512] * 12, 12),
    ],
)  # fmt: skip
def test_pieces_are_blocks_of_their_own_unless_they_are_short(
    sizes: list[int], blocks: int
) -> None:
    random = np.random.default_rng(3)
    pieces = [random.integers(97, 123, size, np.uint8).tobytes() for size in sizes]
    assert count_blocks(compress(*pieces)) == blocks
    assert count_blocks(compress(b"".join(pieces))) == 1


def test_pieces_of_different_bytes_take_less_room_than_one() -> None:
    random = np.random.default_rng(7)
    hexadecimal = random.bytes(4096).hex().encode()
    decimal = random.integers(48, 58, 8192, np.uint8).tobytes()
    apart, together = compress(hexadecimal, decimal), compress(hexadecimal + decimal)
    assert len(apart) < 0.97 * len(together)


def test_frames_of_pieces_leave_no_trace_in_the_next_frame() -> None:
    alone = compress(b"one frame" * 100)
    assert compress(b"x" * 1000, b"y" * 1000) == compress(b"x" * 1000, b"y" * 1000)
    assert compress(b"one frame" * 100) == alone


@pytest.mark.parametrize("announced", [0, 1, 999, 1001, 2**31])
def test_a_frame_of_another_size_than_announced_is_refused(announced: int) -> None:
    with pytest.raises(ValueError, match="announced"):
        decompress(compress(b"x" * 1000), announced)


SOME = [
    [b"some bytes that repeat, some bytes that do not: 0123456789"],
    [b"some bytes that repeat " * 30, b"0123456789" * 60, b"and do not"],
]


@pytest.mark.parametrize("pieces", SOME)
def test_every_truncated_frame_is_refused(pieces: list[bytes]) -> None:
    raw = b"".join(pieces)
    for data in truncated(compress(*pieces)):
        with pytest.raises(ValueError, match=r"zstd|announced"):
            decompress(data, len(raw))


@pytest.mark.parametrize("pieces", SOME)
def test_a_flipped_frame_is_refused_or_has_the_announced_size(pieces: list[bytes]) -> None:
    raw = b"".join(pieces)
    for _, data in flipped(compress(*pieces)):
        try:
            assert len(decompress(data, len(raw))) == len(raw)
        except ValueError as error:
            assert str(error)  # noqa: PT017
