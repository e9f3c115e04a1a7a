"""Times as differences, against the decoder of whole columns."""

import numpy as np
import pytest
from chunk_rows import decode_time_units, decode_times
from format_samples import Row, batch_of, unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.entry import Seq
from logd.format.chunk import Part, build_chunk, decode_head, decode_part
from logd.format.time_steps import TimeSteps, decode_time_steps

UNITS = [1, 1_000, 1_000_000, 1_000_000_000]
FAR = 2**63 - 1


@st.composite
def times(draw: st.DrawFn) -> list[int]:
    unit = draw(st.sampled_from(UNITS))
    spread = draw(st.sampled_from([1, 200, 40_000, 2**40]))
    start = draw(st.integers(-(2**60), 2**60))
    steps = st.integers(-spread if draw(st.booleans()) else 0, spread)
    at = [start]
    for step in draw(st.lists(steps, max_size=40)):
        at.append(max(-FAR, min(at[-1] + step * unit, FAR)))
    return at


def stored(ts_ns: list[int]) -> tuple[TimeSteps, list[int], list[int]]:
    """(the times as steps, their units and ns as the decoder of the column has them)."""
    data = build_chunk(batch_of([Row(moment) for moment in ts_ns]), Seq(0)).data
    head = decode_head(data)
    ref = head.parts[Part.TIMES, 0]
    raw = decode_part(ref, data[ref.offset : ref.offset + ref.stored_bytes])
    steps = decode_time_steps(ref, raw, head.count, head.min_ts_ns)
    units = decode_time_units(ref, raw, head.count).tolist()
    return steps, units, decode_times(ref, raw, head).tolist()


@unhurried
@given(times())
def test_units_are_those_of_the_whole_column(ts_ns: list[int]) -> None:
    steps, units, _ = stored(ts_ns)
    assert steps.units().tolist() == units


@unhurried
@given(times(), st.data())
def test_a_few_times_are_those_of_the_whole_column(ts_ns: list[int], data: st.DataObject) -> None:
    steps, _, expected = stored(ts_ns)
    rows = data.draw(st.lists(st.sampled_from(range(len(ts_ns))), min_size=1, unique=True))
    rows.sort()
    assert steps.at(np.array(rows)).tolist() == [expected[row] for row in rows]
    assert expected == ts_ns


@pytest.mark.parametrize("step", [127, 128, -128, 32_767, 65_535, -32_768])
def test_the_longest_sums_do_not_run_over(step: int) -> None:
    moments = [(2**40 + n * step) * 10**9 for n in range(65_536)]
    steps, _, _ = stored([moment % 2**62 for moment in moments])
    assert steps.at(np.array([65_535])).tolist() == [moments[-1] % 2**62]


def test_a_column_of_another_length_is_noticed() -> None:
    data = build_chunk(batch_of([Row(5), Row(6), Row(7)]), Seq(0)).data
    ref = decode_head(data).parts[Part.TIMES, 0]
    for raw in (b"", b"1234", b"x" * 30):
        with pytest.raises(ValueError, match="times"):
            decode_time_steps(ref, raw, 3, 0)
