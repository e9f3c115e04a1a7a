import itertools
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

from logd.entry import Seq
from logd.format.chunk import BLOCK_ENTRIES, MAX_ENTRIES, build_chunk
from logd.format.part_table import Part
from logd.format.time_steps import ZIGZAG

DAY_NS = 86_400_000_000_000


def chunk_of(some: list[Row], block_entries: int = BLOCK_ENTRIES) -> bytes:
    return build_chunk(batch_of(some), Seq(7), block_entries=block_entries).data


# ---------------------------------------------------------------- metas


def metas_chunk(metas: list[bytes], block_entries: int = 64) -> DecodedChunk:
    chunk = DecodedChunk(chunk_of([Row(meta=meta) for meta in metas], block_entries))
    assert [row.meta for row in chunk.rows] == metas
    return chunk


def test_metas_of_one_shape_are_templates_and_variables() -> None:
    metas = [b'{"id": %d, "user":"u%d", "ms":[%d]}' % (n, n % 7, n * n % 100) for n in range(800)]
    chunk = metas_chunk(metas, block_entries=256)
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


def times_chunk(*ts_ns: int, block_entries: int = BLOCK_ENTRIES) -> DecodedChunk:
    return DecodedChunk(chunk_of([Row(ts_ns=ts) for ts in ts_ns], block_entries))


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
@pytest.mark.parametrize("block_entries", [1, 2, 3, 100])
def test_any_times_may_follow_each_other(times: tuple[int, ...], block_entries: int) -> None:
    chunk = times_chunk(*times, block_entries=block_entries)
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


def test_a_block_says_whether_its_own_times_fall() -> None:
    times = [100, 200, 300, 50, 40, 60, 70, 80, 90, 10]
    chunk = times_chunk(*times, block_entries=3)
    assert [chunk.encoding(Part.TIMES, block) for block in range(4)] == [0, ZIGZAG, 0, 0]
    assert [row.ts_ns for row in chunk.rows] == times


def test_all_blocks_have_the_unit_of_the_chunk() -> None:
    chunk = times_chunk(0, 5_000_000, 7_000_000, 7_000_001_000, block_entries=2)
    assert [chunk.encoding(Part.TIMES, block) for block in range(2)] == [3, 3]


def test_a_block_says_where_it_begins() -> None:
    """So that nothing is read of the blocks before it; the first row's difference is 0."""
    chunk = times_chunk(1_000, 1_001, 1_300, 1_303, 900, 904, block_entries=2)
    begins = [int.from_bytes(raw[:8], "little") for raw in chunk.of_blocks(Part.TIMES)]
    assert begins == [100, 400, 0]
    assert [raw[8:] for raw in chunk.of_blocks(Part.TIMES)] == [b"\0\1", b"\0\3", b"\0\4"]


def test_equal_times_cost_a_byte_each() -> None:
    chunk = times_chunk(*[INT64_MIN] * 100)
    assert chunk.raw[Part.TIMES, 0] == bytes(8 + 100)


def test_a_time_that_is_far_away_widens_its_own_block_only() -> None:
    times = [*range(100), 2**62, *range(100)]
    chunk = times_chunk(*times, block_entries=67)
    assert [len(raw) for raw in chunk.of_blocks(Part.TIMES)] == [8 + 67, 8 + 8 * 67, 8 + 67]
    assert [row.ts_ns for row in chunk.rows] == times


# ---------------------------------------------------------------- code columns


def alternating_chunk(source_of: Callable[[int, int], str]) -> tuple[DecodedChunk, list[Row]]:
    """300 entries in which three templates alternate at random, in blocks of 100."""
    random = np.random.default_rng(3).integers(0, 3, 300).tolist()
    words = ["connect", "query", "close"]
    some = [
        Row(
            message=f"{words[kind]} {index}",
            source=source_of(kind, index),
            tags=b'["%d"]' % (kind // 2),
            level=kind,
        )
        for index, kind in enumerate(random)
    ]
    return DecodedChunk(chunk_of(some, block_entries=100)), some


CHOSEN = (Part.LEVELS, Part.SOURCE_CODES, Part.TAG_CODES)


def test_columns_that_follow_the_template_cost_next_to_nothing() -> None:
    chunk, some = alternating_chunk(lambda kind, _: f"source {kind}")
    assert chunk.of_blocks(Part.ROW_CHOICES) == [bytes(100)] * 3
    assert all(chunk.head.parts[Part.ROW_CHOICES, block].stored_bytes < 20 for block in range(3))
    assert not {(kind, 0) for kind in CHOSEN} & chunk.raw.keys()
    assert chunk.rows == some


def test_columns_that_are_all_one_follow_the_template_too() -> None:
    chunk, some = alternating_chunk(lambda kind, index: "source")
    assert chunk.of_blocks(Part.ROW_CHOICES) == [bytes(100)] * 3
    assert chunk.rows == some


def test_other_columns_have_choices_in_the_order_of_the_rows() -> None:
    """What comes most often with a template is the first of its choices."""
    chunk, some = alternating_chunk(lambda kind, index: f"{kind} {index % 10 == 7}")
    rare = [[int(index % 10 == 7) for index in range(100)]] * 3
    assert chunk.stored_codes(Part.ROW_CHOICES) == rare
    assert chunk.rows == some


def test_a_column_of_very_many_codes_is_no_choice() -> None:
    """It would make those of the others different in every row."""
    chunk, some = alternating_chunk(lambda kind, index: f"host {index}")
    assert chunk.of_blocks(Part.ROW_CHOICES) == [bytes(100)] * 3
    codes = [code for block in chunk.stored_codes(Part.SOURCE_CODES) for code in block]
    assert codes == list(range(300))
    assert (Part.LEVELS, 0) not in chunk.raw
    assert chunk.rows == some


def test_where_each_row_has_a_template_of_its_own_there_are_no_choices() -> None:
    some = [Row(message="a" * (index + 1), level=index % 4) for index in range(300)]
    chunk = DecodedChunk(chunk_of(some, block_entries=100))
    assert not {(Part.CHOICES, 0), (Part.ROW_CHOICES, 0)} & chunk.raw.keys()
    levels = [level for block in chunk.stored_codes(Part.LEVELS) for level in block]
    assert levels == [row.level for row in some]
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
    ("templates", "count", "sizes"),
    [(1, 5000, 11), (2, 6000, 300), (5, 5 * 600, 11), (100, 3000, 11), (300, 6000, 3)],
)
def test_choices_are_as_few_as_the_codes_of_a_template(
    templates: int, count: int, sizes: int
) -> None:
    """Not as many as all templates have together: of those there may be a hundred times more."""
    some = tagged(templates, count, sizes)
    chunk = DecodedChunk(chunk_of(some))
    assert chunk.rows == some
    choices = list(itertools.chain(*chunk.stored_codes(Part.ROW_CHOICES)))
    assert set(choices) <= set(range(sizes))
    often = np.bincount(choices)
    assert often.argmax() == 0


def test_metas_of_a_shape_that_follows_the_message_cost_no_codes() -> None:
    words = ["connect", "query", "close"]
    some = [
        Row(message=f"{words[n % 3]} {n}", meta=b'{"%s":%d,"n":%d}' % (b"key" * (n % 3), n, n))
        for n in range(300)
    ]
    chunk = DecodedChunk(chunk_of(some, block_entries=100))
    assert len(chunk.raw[Part.META_TEMPLATES, 0].split(b"\xfe")) == 3
    assert chunk.of_blocks(Part.ROW_CHOICES) == [bytes(100)] * 3
    assert (Part.META_CODES, 0) not in chunk.raw
    assert chunk.rows == some


def test_a_column_may_hold_more_than_65535_distinct_texts() -> None:
    some = [Row(source=f"s{index}", tags=b'["%d"]' % index) for index in range(MAX_ENTRIES)]
    assert DecodedChunk(chunk_of(some)).rows == some


def test_tag_lists_that_are_written_differently_stay_different() -> None:
    written = [b'["a"]', b'[ "a" ]', b'["\\u0061"]', b"[]", b"[ ]", b'["a","a"]']
    some = [Row(tags=tags) for tags in written]
    assert DecodedChunk(chunk_of(some)).rows == some
