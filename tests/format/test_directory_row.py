import msgspec
import pytest
from format_samples import INT64_MAX, INT64_MIN, Row, batch_of, flipped, truncated

from logd.entry import Seq
from logd.format.chunk import IdempotencyRecord, build_chunk
from logd.format.directory import ROW_BYTES, ChunkRow, decode_row, encode_row, row_of
from logd.format.wal import Idempotency

ROW = ChunkRow(
    segment_seq=Seq(1),
    segment_number=2,
    offset=3,
    head_bytes=4,
    chunk_bytes=5,
    first_seq=Seq(6),
    count=7,
    min_ts_ns=-8,
    max_ts_ns=9,
    level_counts=(10, 11, 12, 13),
    source_bytes=14,
    records=15,
    last_record_ns=-16,
)


def test_what_was_encoded_is_read() -> None:
    assert len(encode_row(ROW)) == ROW_BYTES
    assert decode_row(encode_row(ROW)) == ROW


def test_every_field_holds_its_extremes() -> None:
    most = 2**32 - 1
    row = ChunkRow(
        Seq(2**64 - 1), most, 2**64 - 1, most, 2**64 - 1, Seq(2**64 - 1), most,
        INT64_MIN, INT64_MAX, (most, most, most, most), 2**64 - 1, most, INT64_MIN,
    )  # fmt: skip
    assert decode_row(encode_row(row)) == row


def test_a_row_knows_where_its_chunk_ends() -> None:
    assert ROW.next_seq == 13
    assert ROW.end == 8


def test_the_row_of_a_chunk_repeats_its_head() -> None:
    keys = Idempotency(bytes(16), bytes(16))
    records = [IdempotencyRecord(keys, Seq(40), 1, 30), IdempotencyRecord(keys, Seq(41), 1, 20)]
    built = build_chunk(batch_of([Row(ts_ns=5), Row(ts_ns=3)]), Seq(40), records)
    row = row_of(built.head, built.records, Seq(32), 1, 56)
    assert (row.segment_seq, row.segment_number, row.offset) == (32, 1, 56)
    assert (row.records, row.last_record_ns) == (2, 30)
    shared = set(row.__struct_fields__) & set(built.head.__struct_fields__)
    assert shared >= {"first_seq", "count", "min_ts_ns", "max_ts_ns", "level_counts"}
    for name in shared:
        assert getattr(row, name) == getattr(built.head, name)


def test_a_row_without_records_names_no_time_of_one() -> None:
    built = build_chunk(batch_of([Row()]), Seq(0))
    assert row_of(built.head, (), Seq(0), 1, 56).last_record_ns == 0


def test_every_truncation_is_detected() -> None:
    for value in (*truncated(encode_row(ROW)), encode_row(ROW) + b"\0"):
        with pytest.raises(ValueError, match="directory row"):
            decode_row(value)


def test_every_flipped_byte_is_detected() -> None:
    for _, value in flipped(encode_row(ROW)):
        with pytest.raises(ValueError, match="directory row"):
            decode_row(value)


def test_rows_that_differ_in_one_field_differ_in_their_bytes() -> None:
    for name in ROW.__struct_fields__:
        value = (1, 1, 1, 1) if name == "level_counts" else 99
        changed = msgspec.structs.replace(ROW, **{name: value})
        assert encode_row(changed) != encode_row(ROW)
        assert decode_row(encode_row(changed)) == changed
