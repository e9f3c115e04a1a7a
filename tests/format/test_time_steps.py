"""Times as differences, against the decoder of whole columns."""

import numpy as np
import pytest
from chunk_rows import decode_block_units, decode_time_units
from format_samples import INT64_MAX, INT64_MIN, unhurried
from hypothesis import example, given
from hypothesis import strategies as st

from logd.format.columns import to_planes
from logd.format.part_table import PartRef
from logd.format.time_steps import (
    ZIGZAG,
    TimeSteps,
    decode_block_times,
    decode_time_steps,
    encode_times,
    time_unit,
)

UNITS = [1, 1_000, 1_000_000, 1_000_000_000]
FAR = 2**63 - 1


@st.composite
def steady_times(draw: st.DrawFn) -> list[int]:
    unit = draw(st.sampled_from(UNITS))
    spread = draw(st.sampled_from([1, 200, 40_000, 2**40]))
    start = draw(st.integers(-(2**60), 2**60))
    steps = st.integers(-spread if draw(st.booleans()) else 0, spread)
    at = [start]
    for step in draw(st.lists(steps, max_size=40)):
        at.append(max(-FAR, min(at[-1] + step * unit, FAR)))
    return at


any_times = st.lists(
    st.one_of(st.integers(INT64_MIN, INT64_MAX), st.sampled_from([INT64_MIN, INT64_MAX, -1, 0, 1])),
    min_size=1,
    max_size=40,
)
times = st.one_of(steady_times(), any_times)
sizes = st.integers(1, 45)


def spans(count: int, size: int) -> list[tuple[int, int]]:
    return [(begin, min(begin + size, count)) for begin in range(0, count, size)]


def ref_of(encoding: int) -> PartRef:
    return PartRef(0, 0, 0, 0, encoding)


def encoded(ts_ns: list[int], size: int) -> list[tuple[PartRef, bytes, int]]:
    """(its encoding, bytes, rows) of each block."""
    of_blocks = spans(len(ts_ns), size)
    parts = encode_times(np.array(ts_ns, np.int64), of_blocks)
    return [
        (ref_of(encoding), b"".join(pieces), end - begin)
        for (encoding, pieces), (begin, end) in zip(parts, of_blocks, strict=True)
    ]


def decoded(ts_ns: list[int], size: int) -> list[TimeSteps]:
    """Of each block."""
    return [
        decode_block_times(ref, raw, count, min(ts_ns)) for ref, raw, count in encoded(ts_ns, size)
    ]


@unhurried
@given(times, sizes)
@example([INT64_MIN, INT64_MAX, INT64_MIN], 2)
@example([INT64_MAX, INT64_MIN, INT64_MAX], 2)
def test_units_are_those_of_the_whole_column(ts_ns: list[int], size: int) -> None:
    for (ref, raw, count), steps in zip(encoded(ts_ns, size), decoded(ts_ns, size), strict=True):
        assert steps.units().tolist() == decode_block_units(ref, raw, count).tolist()
        assert steps.unit_ns == time_unit(ref)


@unhurried
@given(times, sizes)
def test_units_are_the_time_since_the_earliest(ts_ns: list[int], size: int) -> None:
    units = [
        unit * steps.unit_ns for steps in decoded(ts_ns, size) for unit in steps.units().tolist()
    ]
    assert units == [moment - min(ts_ns) for moment in ts_ns]


@unhurried
@given(times, sizes, st.data())
def test_a_few_times_are_those_of_the_block(
    ts_ns: list[int], size: int, data: st.DataObject
) -> None:
    of_blocks = spans(len(ts_ns), size)
    block = data.draw(st.integers(0, len(of_blocks) - 1))
    mine = ts_ns[slice(*of_blocks[block])]
    rows = data.draw(st.lists(st.sampled_from(range(len(mine))), min_size=1, unique=True))
    rows.sort()
    steps = decoded(ts_ns, size)[block]
    assert steps.at(np.array(rows)).tolist() == [mine[row] for row in rows]


@unhurried
@given(times, sizes)
def test_every_block_is_read_alone(ts_ns: list[int], size: int) -> None:
    """Its first row is where it says that it begins."""
    firsts = [steps.at(np.array([0])).item() for steps in decoded(ts_ns, size)]
    assert firsts == [ts_ns[begin] for begin, _ in spans(len(ts_ns), size)]


@unhurried
@given(times, sizes)
def test_a_block_is_signed_where_its_own_times_fall(ts_ns: list[int], size: int) -> None:
    fall = [ts_ns[begin:end] != sorted(ts_ns[begin:end]) for begin, end in spans(len(ts_ns), size)]
    assert [ref.encoding >= ZIGZAG for ref, _, _ in encoded(ts_ns, size)] == fall


@pytest.mark.parametrize("step", [127, 128, -128, 32_767, 65_535, -32_768])
def test_the_longest_sums_do_not_run_over(step: int) -> None:
    moments = [(2**40 + n * step) * 10**9 % 2**62 for n in range(65_536)]
    (steps,) = decoded(moments, 65_536)
    assert steps.at(np.array([65_535])).tolist() == [moments[-1]]


@unhurried
@given(times)
def test_a_whole_column_of_an_older_version_is_read(ts_ns: list[int]) -> None:
    """Its first item is where the first row lies."""
    offsets = [moment - min(ts_ns) for moment in ts_ns]
    steps = [
        after - before & 2**64 - 1 for before, after in zip([0, *offsets], offsets, strict=False)
    ]
    raw, count = b"".join(to_planes(np.array(steps, np.uint64))), len(ts_ns)
    found = decode_time_steps(ref_of(0), raw, count, min(ts_ns))
    assert found.units().tolist() == offsets
    assert found.units().tolist() == decode_time_units(ref_of(0), raw, count).tolist()
    assert found.at(np.arange(count)).tolist() == ts_ns


def test_a_column_of_another_length_is_noticed() -> None:
    for raw in (b"", b"1234", b"x" * 30):
        with pytest.raises(ValueError, match="times"):
            decode_time_steps(ref_of(0), raw, 3, 0)


def test_a_block_of_another_length_is_noticed() -> None:
    for raw in (b"", b"1234567", b"12345678", b"12345678" + b"1234", b"12345678" + b"x" * 30):
        with pytest.raises(ValueError, match="times"):
            decode_block_times(ref_of(0), raw, 3, 0)
