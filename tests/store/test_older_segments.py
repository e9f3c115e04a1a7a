"""Segments of every version, as the golden files have them, read and searched by the store."""

import json
from pathlib import Path

import golden_values as golden
import pytest
from format_samples import PROJECT, Row
from golden_values import GOLDEN
from store_world import TINY, World, ask

from logd.entry import LEVELS, Entry, Seq
from logd.query.ast import Filter
from logd.query.match import matches
from logd.query.syntax import parse_search
from logd.store.read_ahead import read_ahead
from logd.store.search import entry_at

SEGMENTS = sorted(GOLDEN.glob("segment.v*"))
ALL_ROWS = (
    *golden.ROWS,
    *golden.MORE_ROWS,
    *golden.REPEATED_ROWS,
    *golden.PAGED_ROWS,
    *golden.CHOSEN_ROWS,
)
SEARCHES = (
    "accepted", "user12", "10", "took", "7ms", "query 7*", '"failed"', '"query 11 took"',
    "source:db", "tag:prod", "tag:slow", "meta.id:7", 'meta.user:"u3"', "s000121", "from AND auth",
    '"from 1.7"', "*o*", "host", "close OR connect", "NOT query", "nowhere", "aab", "用户",
)  # fmt: skip
LEVEL_CODES = range(4)
PAGES = (1, 7, 100, 5_000)


@pytest.fixture(params=SEGMENTS, ids=[path.name for path in SEGMENTS])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A store that has nothing but the segment."""
    with World(tmp_path / "data", TINY, project=PROJECT) as world:
        world.close()
        name = f"{golden.FIRST_SEQ:016x}-0001.seg"
        world.layout.segments.mkdir(parents=True, exist_ok=True)
        (world.layout.segments / name).write_bytes(request.param.read_bytes())
        for file in world.layout.index.iterdir():
            file.unlink()
        world.layout.index.rmdir()
        world.open()
    world.open()
    return world


def rows_of(world: World) -> list[Row]:
    """What the segment holds: the first of all rows, as many as it has."""
    count = sum(chunk.count for chunk in world.project.snapshot().chunks)
    assert count in (507, 1207, len(ALL_ROWS))
    return list(ALL_ROWS[:count])


def as_rows(entries: list[Entry] | tuple[Entry, ...]) -> list[Row]:
    return [
        Row(e.ts_ns, LEVELS.index(e.level), e.message, e.source, e.tags, e.meta) for e in entries
    ]


def newest_first(rows: list[Row]) -> list[Row]:
    numbered = sorted(enumerate(rows), key=lambda pair: (pair[1].ts_ns, pair[0]), reverse=True)
    return [row for _, row in numbered]


@pytest.mark.parametrize("search", ["", *SEARCHES])
def test_pages_of_all_sizes_are_what_a_look_at_each_row_gives(world: World, search: str) -> None:
    node = parse_search(search) if search else None
    for level in (None, *LEVEL_CODES):
        expected = newest_first([
            row
            for row in rows_of(world)
            if (level is None or row.level == level)
            and (
                node is None
                or matches(node, row.message, row.source, json.loads(row.tags), row.meta)
            )
        ])  # fmt: skip
        for limit in PAGES:
            world.reopen()
            found = ask(world.project.snapshot(), Filter(level, None, None, node), limit)
            assert not found.damage
            assert found.total == len(expected)
            assert as_rows(found.entries) == expected[:limit]
    world.close()


def test_each_entry_is_read_alone(world: World) -> None:
    for number, row in enumerate(rows_of(world)):
        if number % 37 == 0:
            world.reopen()
        entry = entry_at(world.project.snapshot(), Seq(golden.FIRST_SEQ + number))
        assert entry is not None
        assert as_rows([entry]) == [row]
    world.close()


def test_windows_of_time_cut_anywhere(world: World) -> None:
    rows = rows_of(world)
    moments = sorted({row.ts_ns for row in rows})
    for begin in range(0, len(moments), len(moments) // 7):
        for end in range(begin + 1, len(moments), len(moments) // 3):
            from_ns, to_ns = moments[begin], moments[end]
            found = ask(world.project.snapshot(), Filter(None, from_ns, to_ns, None), 50)
            expected = newest_first([row for row in rows if from_ns <= row.ts_ns < to_ns])
            assert found.total == len(expected)
            assert as_rows(found.entries) == expected[:50]
    world.close()


def test_what_is_read_ahead_changes_no_answer(world: World) -> None:
    snapshot = world.project.snapshot()
    assert snapshot.index is not None
    for chunk in snapshot.chunks:
        read_ahead(chunk, snapshot.index, lambda: None, with_entries=True)
    assert as_rows(ask(snapshot).entries) == newest_first(rows_of(world))
    world.close()
