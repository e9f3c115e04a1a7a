"""The entries of a frame, as columns."""

import numpy as np
import pytest
from format_samples import INT64_MAX, INT64_MIN, Row, batch_of, rows_of, unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format.wal import MARKER
from logd.format.wal_columns import decode_columns, encode_columns

MARKER_TIMES = [
    int.from_bytes(bytes(before) + MARKER + bytes(4 - before), "little", signed=True)
    for before in range(5)
]
"""Times that hold the marker."""

texts = st.text(st.characters(exclude_categories=["Cs"]))
rows = st.builds(
    Row,
    ts_ns=st.integers(INT64_MIN, INT64_MAX) | st.sampled_from(MARKER_TIMES),
    level=st.integers(0, 3),
    message=texts,
    source=texts,
    tags=st.sampled_from([b"[]", b'["a"]', '["é"]'.encode()]),
    meta=st.sampled_from([b"{}", b'{"a":1}', '{"a":"用户"}'.encode()]),
)


@unhurried
@given(st.lists(rows, min_size=1, max_size=9))
def test_what_was_encoded_is_decoded_and_holds_no_marker(some: list[Row]) -> None:
    body = encode_columns(batch_of(some))
    assert MARKER not in body
    batch = decode_columns(body, len(some))
    assert rows_of(batch) == some
    assert (batch.count, batch.ts.dtype) == (len(some), np.dtype(np.int64))


@pytest.mark.parametrize("ts_ns", MARKER_TIMES)
def test_a_time_that_holds_the_marker_is_masked(ts_ns: int) -> None:
    some = [Row(ts_ns), Row(1), Row(-1)]
    batch = batch_of(some)
    body = encode_columns(batch)
    assert batch.ts.tobytes() not in body
    assert MARKER not in body
    assert rows_of(decode_columns(body, 3)) == some


def test_a_marker_across_two_times_is_masked() -> None:
    times = np.frombuffer(bytes(6) + MARKER + bytes(6), "<i8").tolist()
    some = [Row(ts_ns) for ts_ns in times]
    body = encode_columns(batch_of(some))
    assert MARKER not in body
    assert rows_of(decode_columns(body, 2)) == some


def test_what_is_not_masked_lies_there_as_it_is() -> None:
    batch = batch_of([Row(5, 2, "one", "a"), Row(6, 3, "two", "b")])
    sizes = b"".join(size.to_bytes(4, "little") for size in (7, 3, 5, 5))
    times = (5).to_bytes(8, "little") + (6).to_bytes(8, "little")
    joined = b"one\xfetwoa\xfeb[]\xfe[]{}\xfe{}"
    assert encode_columns(batch) == sizes + bytes(8) + times + b"\2\3" + joined


def test_a_body_of_another_count_or_length_is_refused() -> None:
    body = encode_columns(batch_of([Row(1), Row(2, message="other")]))
    for count in (1, 3, 10**6):
        with pytest.raises(ValueError, match="columns"):
            decode_columns(body, count)
    for size in range(len(body)):
        with pytest.raises(ValueError, match="columns"):
            decode_columns(body[:size], 2)
    with pytest.raises(ValueError, match="columns"):
        decode_columns(body + b"x", 2)


def test_texts_of_another_number_and_unknown_levels_are_refused() -> None:
    body = encode_columns(batch_of([Row(1, message="one"), Row(2, message="two")]))
    with pytest.raises(ValueError, match="not 2 texts"):
        decode_columns(body.replace(b"one\xfetwo", b"one-two"), 2)
    with pytest.raises(ValueError, match="level"):
        decode_columns(body.replace(b"\1\1one", b"\1\4one"), 2)
