import struct
import zlib

import pytest
from chunk_rows import DecodedChunk
from format_samples import (
    Row,
    batch_of,
    costly,
    flipped,
    rows,
    truncated,
)
from hypothesis import given
from hypothesis import strategies as st

from logd.entry import Seq
from logd.format.chunk import (
    BLOCK_ENTRIES,
    HEAD_BYTES,
    MAX_ENTRIES,
    VERSION,
    IdempotencyRecord,
    build_chunk,
    decode_head,
    decode_record_columns,
    decode_records,
    find_record,
    head_size,
)
from logd.format.part_table import Part
from logd.format.wal import Idempotency

DAY_NS = 86_400_000_000_000


def chunk_of(some: list[Row], block_entries: int = BLOCK_ENTRIES) -> bytes:
    return build_chunk(batch_of(some), Seq(7), block_entries=block_entries).data


def typical_rows(count: int) -> list[Row]:
    return [
        Row(
            ts_ns=1_700_000_000_000_000_000 + index * 1_500_000,
            level=index % 4,
            message=f"request {index} from 10.0.{index % 7}.{index % 250} took {index % 90}ms",
            source=f"api-{index % 3}",
            tags=b'["prod","eu"]' if index % 2 else b"[]",
            meta=b'{"id":%d}' % index,
        )
        for index in range(count)
    ]


# ---------------------------------------------------------------- round trips


@costly
@given(
    st.lists(rows, min_size=1, max_size=24),
    st.sampled_from([1, 2, 3, 8, BLOCK_ENTRIES]),
    st.integers(0, 2**48 - 25),
)
def test_what_was_built_is_read(some: list[Row], block_entries: int, first_seq: int) -> None:
    built = build_chunk(batch_of(some), Seq(first_seq), block_entries=block_entries)
    chunk = DecodedChunk(built.data)
    assert chunk.rows == some
    assert chunk.head == built.head
    assert chunk.head.first_seq == first_seq
    assert chunk.head.next_seq == first_seq + len(some)


@pytest.mark.parametrize(
    "count", [1, 2, BLOCK_ENTRIES - 1, BLOCK_ENTRIES, BLOCK_ENTRIES + 1, 3 * BLOCK_ENTRIES + 1]
)
def test_blocks_may_be_full_or_not(count: int) -> None:
    some = typical_rows(count)
    assert DecodedChunk(chunk_of(some)).rows == some


OF_BLOCKS = {
    Part.TIMES, Part.TEMPLATE_CODES, Part.VAR_LENGTHS, Part.VAR_DATA,
}  # fmt: skip
OF_COLUMNS = {Part.LEVELS, Part.SOURCE_CODES, Part.TAG_CODES}
OF_SPLIT_METAS = {Part.META_LENGTHS, Part.META_DATA}


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 17])
def test_every_block_has_its_parts(count: int) -> None:
    chunk = DecodedChunk(chunk_of(typical_rows(count), block_entries=8))
    columns = {Part.ROW_CHOICES} if (Part.CHOICES, 0) in chunk.raw else set()
    columns |= {kind for kind in OF_COLUMNS if (kind, 0) in chunk.raw}
    assert columns >= {Part.ROW_CHOICES} or columns == OF_COLUMNS
    for kind in OF_BLOCKS | columns | {Part.METAS}:
        blocks = {block for known, block in chunk.head.parts if known == kind}
        assert blocks == set(range(-(-count // 8)))
    assert chunk.rows == typical_rows(count)


def test_what_is_there_once_comes_first_and_then_block_by_block_what_each_has() -> None:
    """Whoever reads a row reads most of what its block has: at once, where it lies together."""
    some = [
        Row(message=f"user {n}", meta=b'{"id":%d,"of":"u%d"}' % (n * n * 7919 % 99_991, n))
        for n in range(750)
    ]
    head = build_chunk(batch_of(some), Seq(7), records(2), block_entries=250).head
    keys = [key for key, _ in sorted(head.parts.items(), key=lambda part: part[1].offset)]
    of_blocks = [key for key in keys if (key[0], 2) in head.parts]
    expected = OF_BLOCKS | OF_SPLIT_METAS | {Part.ROW_CHOICES}
    assert {kind for kind, _ in of_blocks} >= expected
    once = keys[: -len(of_blocks)]
    assert {Part.IDEMPOTENCY, Part.CHOICES, Part.TEMPLATES} <= {kind for kind, _ in once}
    assert {block for _, block in once} == {0}
    assert keys == once + of_blocks == list(head.parts)
    assert [block for _, block in of_blocks] == sorted(block for _, block in of_blocks)


def test_a_full_chunk_may_have_a_template_for_each_entry() -> None:
    letters = "abcdefghijklmnop"
    some = [
        Row(message="".join(letters[(index >> shift) & 15] for shift in (12, 8, 4, 0)))
        for index in range(MAX_ENTRIES)
    ]
    chunk = DecodedChunk(chunk_of(some))
    assert len(chunk.templates) == MAX_ENTRIES
    assert chunk.rows == some


@pytest.mark.parametrize(
    ("templates", "pages"), [(1, 1), (1023, 1), (1024, 1), (1025, 2), (2049, 3)]
)
def test_templates_are_in_pages(templates: int, pages: int) -> None:
    """Of metas too, which are as many texts here."""
    words = [
        "".join("abcdefghijklmnop"[n >> shift & 15] for shift in (8, 4, 0)) for n in range(2049)
    ]
    some = [
        Row(message=f"{word} {index}", meta=b'{"%s":%d,"n":%d}' % (word.encode(), index, n))
        for index, word in enumerate(words[:templates] * (2 if templates > 1 else 900))
        for n in [index * index * 7919 % 99_991]
    ]
    chunk = DecodedChunk(chunk_of(some))
    assert chunk.rows == some
    for kind in (Part.TEMPLATES, Part.META_TEMPLATES):
        numbers = [number for known, number in chunk.head.parts if known == kind]
        assert numbers == list(range(pages))
    assert chunk.raw[Part.TEMPLATES, pages - 1].count(b"\xfe") == (templates - 1) % 1024


def test_templates_that_are_empty_have_pages() -> None:
    some = [Row(message="")] * 3
    chunk = DecodedChunk(chunk_of(some, block_entries=2))
    assert chunk.raw[Part.TEMPLATES, 0] == b""
    assert chunk.rows == some


@pytest.mark.parametrize(
    "message",
    ["", "\0", "no digit at all", "12345678901234567890", "9" * 256, "9" * 8192, "a" * 8191 + "1",
     "用户7" * 800, "1\n2\r\n3\0004"],
)  # fmt: skip
@pytest.mark.parametrize("count", [1, 2, 9])
def test_all_messages_may_be_the_same(message: str, count: int) -> None:
    some = [Row(message=message)] * count
    assert DecodedChunk(chunk_of(some, block_entries=4)).rows == some


def test_messages_of_one_template_keep_their_variables_apart() -> None:
    some = [Row(message=f"{index} of {'9' * (index % 5 + 1)}{index}") for index in range(50)]
    chunk = DecodedChunk(chunk_of(some, block_entries=8))
    assert chunk.templates == [b"\xff of \xff"]
    assert chunk.rows == some


# ---------------------------------------------------------------- the head


def test_the_head_counts_levels_and_bytes() -> None:
    some = [Row(ts_ns=ts, level=level) for ts, level in [(3, 0), (1, 3), (2, 3), (9, 1)]]
    batch = batch_of(some)
    built = build_chunk(batch, Seq(100))
    head = built.head
    assert head.level_counts == (1, 1, 0, 2)
    assert (head.min_ts_ns, head.max_ts_ns, head.count) == (1, 9, 4)
    assert head.source_bytes == batch.size_bytes
    assert head.chunk_bytes == len(built.data)
    assert head.head_bytes == head_size(built.data[:HEAD_BYTES])
    assert decode_head(built.data[: head.head_bytes]) == head


def records(count: int) -> list[IdempotencyRecord]:
    return [
        IdempotencyRecord(Idempotency(bytes([n] * 16), bytes([255 - n] * 16)), Seq(7 + n), n, -n)
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_idempotency_records_travel_with_the_chunk(count: int) -> None:
    built = build_chunk(batch_of(typical_rows(9)), Seq(7), records(count))
    chunk = DecodedChunk(built.data)
    assert chunk.records == records(count)
    assert list(built.records) == records(count)
    assert ((Part.IDEMPOTENCY, 0) in chunk.head.parts) == bool(count)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_of_idempotency_records_columns_and_each_one_are_read_alone(count: int) -> None:
    built = build_chunk(batch_of(typical_rows(9)), Seq(7), records(count))
    raw = DecodedChunk(built.data).raw.get((Part.IDEMPOTENCY, 0), b"")
    columns = decode_record_columns(raw)
    assert [row.tobytes() for row in columns.key_digests] == [bytes([n] * 16) for n in range(count)]
    assert columns.first_seqs.tolist() == [7 + n for n in range(count)]
    assert columns.received_ns.tolist() == [-n for n in range(count)]
    for record in records(count):
        assert find_record(raw, record.first_seq) == record
    assert find_record(raw, Seq(6)) is None
    assert find_record(raw, Seq(7 + count)) is None


@pytest.mark.parametrize("size", [1, 79, 81])
def test_idempotency_records_that_are_cut_short_are_detected(size: int) -> None:
    for decode in (decode_records, decode_record_columns, lambda raw: find_record(raw, Seq(0))):
        with pytest.raises(ValueError, match=f"{size} bytes of idempotency records"):
            decode(bytes(size))


# ---------------------------------------------------------------- damage


def small_chunk() -> bytes:
    return build_chunk(batch_of(typical_rows(5)), Seq(7), records(1), block_entries=3).data


def test_every_truncation_is_detected() -> None:
    for data in truncated(small_chunk()):
        with pytest.raises(ValueError, match=r"chunk|checksum"):
            DecodedChunk(data)


def test_every_flipped_byte_is_detected() -> None:
    for _, data in flipped(small_chunk()):
        with pytest.raises(ValueError, match=r"chunk|checksum"):
            DecodedChunk(data)


def test_a_damaged_part_leaves_the_others_readable() -> None:
    data = bytearray(small_chunk())
    head = decode_head(bytes(data))
    metas = head.parts[Part.METAS, 0]
    data[metas.offset + metas.stored_bytes // 2] ^= 0x10
    assert decode_head(bytes(data)) == head
    with pytest.raises(ValueError, match="checksum"):
        DecodedChunk(bytes(data))


def sealed(data: bytearray) -> bytes:
    """With a checksum that holds."""
    size = head_size(bytes(data))
    crc = zlib.crc32(data[HEAD_BYTES:size], zlib.crc32(data[: HEAD_BYTES - 4]))
    struct.pack_into("<I", data, HEAD_BYTES - 4, crc)
    return bytes(data)


def test_a_newer_version_is_refused_by_its_number() -> None:
    data = bytearray(small_chunk())
    struct.pack_into("<H", data, 4, VERSION + 1)
    with pytest.raises(ValueError, match=f"version {VERSION + 1}"):
        decode_head(sealed(data))


def test_parts_must_add_up_to_the_size_of_the_chunk() -> None:
    data = bytearray(small_chunk())
    struct.pack_into("<I", data, 12, len(data) + 1)
    with pytest.raises(ValueError, match="do not add up"):
        decode_head(sealed(data))


def test_the_size_of_the_head_must_fit_its_table() -> None:
    data = bytearray(small_chunk())
    struct.pack_into("<H", data, 6, 3)
    with pytest.raises(ValueError, match="size does not hold"):
        decode_head(sealed(data))


@pytest.mark.parametrize(("offset", "number"), [(24, 0), (24, 65_537), (24, 2**32 - 1), (28, 0)])
def test_a_head_without_entries_or_with_too_many_is_refused(offset: int, number: int) -> None:
    data = bytearray(small_chunk())
    struct.pack_into("<I", data, offset, number)
    with pytest.raises(ValueError, match="a block"):
        decode_head(sealed(data))


def test_records_that_do_not_fill_their_part_are_refused() -> None:
    assert decode_records(b"") == []
    for size in (1, 79, 81):
        with pytest.raises(ValueError, match=f"{size} bytes"):
            decode_records(bytes(size))


def test_a_part_must_decompress_to_the_size_that_the_table_states() -> None:
    data = bytearray(small_chunk())
    (raw_bytes,) = struct.unpack_from("<I", data, HEAD_BYTES + 4)
    struct.pack_into("<I", data, HEAD_BYTES + 4, raw_bytes + 1)
    with pytest.raises(ValueError, match="announced"):
        DecodedChunk(sealed(data))


def test_bytes_that_begin_no_chunk_are_refused() -> None:
    for data in (b"", bytes(200), b"\xfeCK", small_chunk()[1:]):
        with pytest.raises(ValueError, match="no chunk begins here"):
            head_size(data)
