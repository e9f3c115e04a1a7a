import numpy as np
import pytest
from format_samples import flipped, truncated, unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format.columns import byte_width, compress, decompress, from_planes, to_planes


@unhurried
@given(st.sampled_from([1, 2, 4, 8]), st.data())
def test_a_column_comes_back_from_its_planes(item_bytes: int, data: st.DataObject) -> None:
    dtype = np.dtype(f"u{item_bytes}")
    bits = data.draw(st.integers(0, 8 * item_bytes))
    values = np.array(data.draw(st.lists(st.integers(0, 2**bits - 1))), dtype)
    raw = to_planes(values)
    assert from_planes(raw, len(values), dtype).tolist() == values.tolist()
    assert from_planes(raw, len(values), np.uint64).tolist() == values.tolist()


@pytest.mark.parametrize(
    ("largest", "width"),
    [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 3), (2**32, 5), (2**56, 8), (2**64 - 1, 8)],
)
def test_a_column_is_as_wide_as_its_largest_value(largest: int, width: int) -> None:
    assert byte_width(largest) == width
    assert len(to_planes(np.array([largest, 0, 1], np.uint64))) == 3 * width


def test_planes_are_the_lowest_bytes_first() -> None:
    assert to_planes(np.array([0x0102, 0x0304, 0x05], np.uint32)) == bytes([2, 4, 5, 1, 3, 0])


def test_planes_that_do_not_fit_the_count_are_refused() -> None:
    for raw, count in [(b"abc", 2), (b"", 1), (b"a", 0), (bytes(10), 2)]:
        with pytest.raises(ValueError, match="planes"):
            from_planes(raw, count, np.uint32)


@unhurried
@given(st.binary())
def test_a_frame_decompresses_to_what_was_compressed(raw: bytes) -> None:
    assert decompress(compress(raw), len(raw)) == raw
    assert decompress(memoryview(compress(raw)), len(raw)) == raw


@pytest.mark.parametrize("announced", [0, 1, 999, 1001, 2**31])
def test_a_frame_of_another_size_than_announced_is_refused(announced: int) -> None:
    with pytest.raises(ValueError, match="announced"):
        decompress(compress(b"x" * 1000), announced)


def test_every_truncated_frame_is_refused() -> None:
    raw = b"some bytes that repeat, some bytes that do not: 0123456789"
    for data in truncated(compress(raw)):
        with pytest.raises(ValueError, match=r"zstd|announced"):
            decompress(data, len(raw))


def test_a_flipped_frame_is_refused_or_has_the_announced_size() -> None:
    raw = b"some bytes that repeat, some bytes that do not: 0123456789"
    for _, data in flipped(compress(raw)):
        try:
            assert len(decompress(data, len(raw))) == len(raw)
        except ValueError as error:
            assert str(error)  # noqa: PT017
