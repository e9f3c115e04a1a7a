from collections.abc import Callable

import numpy as np
import pytest
from chunk_rows import DecodedChunk
from format_samples import (
    INT64_MAX,
    INT64_MIN,
    Row,
    batch_of,
)
from zstd_blocks import count_blocks

from logd.entry import Seq
from logd.format.chunk import (
    BLOCK_ENTRIES,
    BY_TEMPLATE,
    MAX_ENTRIES,
    ZIGZAG,
    Part,
    build_chunk,
)

DAY_NS = 86_400_000_000_000


def chunk_of(some: list[Row], block_entries: int = BLOCK_ENTRIES) -> bytes:
    return build_chunk(batch_of(some), Seq(7), block_entries=block_entries).data


# ---------------------------------------------------------------- metas


def metas_chunk(metas: list[bytes]) -> DecodedChunk:
    chunk = DecodedChunk(chunk_of([Row(meta=meta) for meta in metas], block_entries=64))
    assert [row.meta for row in chunk.rows] == metas
    return chunk


def test_metas_of_one_shape_are_templates_and_variables() -> None:
    chunk = metas_chunk([
        b'{"id": %d, "user":"u%d", "ms":[%d]}' % (n, n % 7, n * n % 100) for n in range(200)
    ])  # fmt: skip
    assert chunk.raw[Part.META_TEMPLATES, 0] == b'{"id": \xff, "user":"\xff", "ms":[\xff]}'
    assert {block for kind, block in chunk.raw if kind == Part.META_DATA} == {0, 1, 2, 3}
    assert (Part.METAS, 0) not in chunk.raw


def test_metas_of_no_shape_stay_as_they_are() -> None:
    letters = np.random.default_rng(5).choice(list("abcdefghijklmnopqrstuvwxyz"), (200, 40))
    chunk = metas_chunk([b'{"text":"%s"}' % "".join(line).encode() for line in letters.tolist()])
    assert {block for kind, block in chunk.raw if kind == Part.METAS} == {0, 1, 2, 3}
    assert (Part.META_TEMPLATES, 0) not in chunk.raw


def test_metas_that_change_their_shape_come_back() -> None:
    """The first block decides for all."""
    plain = [
        b'{"key-%d":{"x":[1,2,%d]}, "\\u00e9 \xc3\xa9" : "\\\\"}' % (n, n * n) for n in range(64)
    ]
    prose = [b'{"%s":"%s"}' % (b"a" * n, b"z" * (64 - n)) for n in range(64)]
    mixed = [b"{}", b'{"a":1}', b'{"a": 1}', b'{"a":1,"a":2}'] * 16
    for metas in (plain + prose + mixed, prose + plain + mixed, mixed + prose + plain):
        metas_chunk(metas)


# ---------------------------------------------------------------- times


def times_chunk(*ts_ns: int) -> DecodedChunk:
    return DecodedChunk(chunk_of([Row(ts_ns=ts) for ts in ts_ns]))


@pytest.mark.parametrize(
    "times",
    [
        (0,),
        (INT64_MIN,),
        (INT64_MAX,),
        (INT64_MIN, INT64_MAX),
        (INT64_MAX, INT64_MIN),
        (INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, 0, -1, 1),
        (INT64_MAX, INT64_MAX, INT64_MAX),
        (0, INT64_MIN, INT64_MAX, INT64_MIN + 1),
        (5, 4, 3, 2, 1, 0, -1, -2),
    ],
)
def test_any_times_may_follow_each_other(times: tuple[int, ...]) -> None:
    chunk = times_chunk(*times)
    assert [row.ts_ns for row in chunk.rows] == list(times)
    assert (chunk.head.min_ts_ns, chunk.head.max_ts_ns) == (min(times), max(times))


@pytest.mark.parametrize(
    ("unit", "exponent"), [(1, 0), (999, 0), (1_000, 3), (1_000_000, 6), (DAY_NS, 9)]
)
def test_times_are_stored_in_the_largest_unit_that_holds_them(unit: int, exponent: int) -> None:
    rising = times_chunk(17, 17 + unit, 17 + 3 * unit)
    falling = times_chunk(17 + 3 * unit, 17, 17 + unit)
    assert rising.encoding(Part.TIMES) == exponent
    assert falling.encoding(Part.TIMES) == exponent + ZIGZAG
    assert [row.ts_ns - 17 for row in falling.rows] == [3 * unit, 0, unit]


def test_equal_times_cost_a_byte_each() -> None:
    chunk = times_chunk(*[INT64_MIN] * 100)
    assert chunk.raw[Part.TIMES, 0] == bytes(100)


# ---------------------------------------------------------------- code columns


def alternating_chunk(source_of: Callable[[int], str]) -> tuple[DecodedChunk, list[Row]]:
    """300 entries in which three templates alternate at random."""
    random = np.random.default_rng(3).integers(0, 3, 300).tolist()
    words = ["connect", "query", "close"]
    some = [
        Row(message=f"{words[kind]} {index}", source=source_of(kind), level=kind)
        for index, kind in enumerate(random)
    ]
    return DecodedChunk(chunk_of(some)), some


def test_columns_that_follow_the_template_are_sorted_by_it() -> None:
    chunk, some = alternating_chunk(lambda kind: f"source {kind}")
    assert chunk.encoding(Part.SOURCE_CODES) == BY_TEMPLATE
    assert chunk.encoding(Part.LEVELS) == BY_TEMPLATE
    assert chunk.rows == some


def test_other_columns_stay_in_the_order_of_the_rows() -> None:
    chunk, some = alternating_chunk(lambda kind: "source")
    assert chunk.encoding(Part.SOURCE_CODES) == 0
    assert chunk.rows == some


def tagged(templates: int, count: int, sizes: int) -> list[Row]:
    """Entries of templates that alternate, each with `sizes` tag lists of its own at random."""
    random = np.random.default_rng(3)
    kinds = random.permutation(np.arange(count) % templates).tolist()
    return [
        Row(message="word" * (kind + 1), tags=b'["%d"]' % (kind * sizes + number))
        for kind, number in zip(kinds, random.integers(0, sizes, count).tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    ("templates", "count", "blocks"),
    [(1, 5000, 1), (2, 6000, 2), (5, 5 * 600, 5), (5, 5 * 511, 1), (2, 1300, 2)],
)
def test_large_templates_have_statistics_of_their_own(
    templates: int, count: int, blocks: int
) -> None:
    some = tagged(templates, count, 11)
    data = chunk_of(some)
    chunk = DecodedChunk(data)
    assert chunk.rows == some
    assert chunk.encoding(Part.TAG_CODES) == (BY_TEMPLATE if blocks > 1 else 0)
    part = chunk.head.parts[Part.TAG_CODES, 0]
    assert count_blocks(data[part.offset : part.offset + part.stored_bytes]) == blocks


def test_what_does_not_differ_by_template_is_one_piece() -> None:
    some = [Row(message="ab"[index % 2], level=index // 2 % 2) for index in range(4000)]
    data = chunk_of(some)
    part = DecodedChunk(data).head.parts[Part.LEVELS, 0]
    assert count_blocks(data[part.offset : part.offset + part.stored_bytes]) == 1


def test_a_column_may_hold_more_than_65535_distinct_texts() -> None:
    some = [Row(source=f"s{index}", tags=b'["%d"]' % index) for index in range(MAX_ENTRIES)]
    assert DecodedChunk(chunk_of(some)).rows == some


def test_tag_lists_that_are_written_differently_stay_different() -> None:
    written = [b'["a"]', b'[ "a" ]', b'["\\u0061"]', b"[]", b"[ ]", b'["a","a"]']
    some = [Row(tags=tags) for tags in written]
    assert DecodedChunk(chunk_of(some)).rows == some
