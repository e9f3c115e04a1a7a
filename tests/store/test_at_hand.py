"""Searches that memory alone answers, for the event loop: right, and without a look at a file, the
index or a column."""

from collections.abc import Iterator
from typing import NoReturn

import pytest
from reference import NewEntry
from store_world import START_NS, World, ask, ask_memory, entry, new_world

from logd.query.ast import Filter
from logd.query.syntax import parse_search
from logd.store.files import OsFile
from logd.store.index import ProjectIndex
from logd.store.limits import StoreLimits
from logd.store.search import Found, Position, Snapshot

MINUTE = 60_000_000_000
LIMITS = StoreLimits(chunk_entries=256, block_entries=64, merge_chunks=2, min_free_disk_bytes=0)
CHUNKS = 4
OF_A_CHUNK = 256
FILTERS = [
    Filter(),
    Filter(3),
    Filter(None, START_NS + MINUTE, START_NS + 5 * MINUTE, None),
    Filter(2, START_NS + MINUTE, None, parse_search("number")),
    Filter(search=parse_search("number")),
    Filter(search=parse_search("number 77")),
    Filter(search=parse_search("of OR n7*")),
    Filter(search=parse_search('"of 300"')),
    Filter(search=parse_search("nowhere")),
]
QUESTIONS = pytest.mark.parametrize("filter_", FILTERS, ids=lambda _: "")


def from_memory(
    snapshot: Snapshot, filter_: Filter | str, limit: int, after: Position | None = None
) -> Found | None:
    """The answer; fails where a file is read, or the index asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OsFile, "read", _must_not_happen)
        patch.setattr(ProjectIndex, "reader", _must_not_happen)
        return ask_memory(snapshot, filter_, limit, after)


def _must_not_happen(*_: object) -> NoReturn:
    raise AssertionError("more than memory was asked")


def fill(world: World) -> None:
    """Chunks that overlap in time."""
    for chunk in range(CHUNKS):
        numbers = range(chunk * OF_A_CHUNK, (chunk + 1) * OF_A_CHUNK)
        world.store_entries([entry(f"number {n} of n{n}", n % 300, n % 4) for n in numbers])
        world.project.freeze()


@pytest.fixture
def frozen() -> Iterator[World]:
    with new_world(LIMITS) as world:
        fill(world)
        assert len(world.project.snapshot().chunks) == CHUNKS
        yield world


@QUESTIONS
def test_what_was_asked_before_is_answered_from_memory(frozen: World, filter_: Filter) -> None:
    snapshot = frozen.project.snapshot()
    expected = ask(snapshot, filter_, 100)
    ask(snapshot, filter_, 100)
    assert from_memory(snapshot, filter_, 100) == expected


@QUESTIONS
def test_what_was_not_asked_before_is_left_to_a_thread(frozen: World, filter_: Filter) -> None:
    frozen.reopen()
    assert from_memory(frozen.project.snapshot(), filter_, 100) is None


@QUESTIONS
def test_a_question_half_remembered_reads_nothing(frozen: World, filter_: Filter) -> None:
    ask(frozen.project.snapshot(), filter_, 1)
    snapshot = frozen.project.snapshot()
    found = from_memory(snapshot, filter_, 100)
    assert found is None or found == ask(snapshot, filter_, 100)


def test_the_next_page_is_answered_from_memory(frozen: World) -> None:
    snapshot = frozen.project.snapshot()
    after = Position(snapshot.visible_seq, START_NS + 100_000_000_000, snapshot.visible_seq)
    expected = ask(snapshot, "number", 10, after)
    assert len(expected.entries) == 10
    assert from_memory(snapshot, "number", 10, after) == expected


def test_there_is_no_time_for_it(frozen: World) -> None:
    snapshot = frozen.project.snapshot()
    ask(snapshot)
    assert ask_memory(snapshot) is not None
    assert ask_memory(snapshot, seconds=0) is None


def test_new_entries_are_at_hand_but_texts_are_not_gone_through(frozen: World) -> None:
    ask(frozen.project.snapshot(), "", 50)
    frozen.store_entries([entry(f"new {n}", 1000 + n) for n in range(20)])
    snapshot = frozen.project.snapshot()
    found = from_memory(snapshot, "", 10)
    assert found is not None
    assert [row.message for row in found.entries] == [f"new {19 - n}" for n in range(10)]
    assert found.total == CHUNKS * OF_A_CHUNK + 20
    assert ask_memory(snapshot, "new", 10) is None
    expected = ask(snapshot, "new", 10)
    assert from_memory(snapshot, "new", 10) == expected


def test_large_entries_that_are_new_are_left_to_a_thread() -> None:
    with new_world(LIMITS) as world:
        world.store_entries([entry("x" * 8000) for _ in range(600)])
        snapshot = world.project.snapshot()
        assert snapshot.blocks[0].batch.size_bytes > 4 << 20
        assert ask_memory(snapshot, "", 10) is None
        assert len(ask(snapshot, "", 10).entries) == 10


def test_an_empty_log_is_at_hand() -> None:
    with new_world(LIMITS) as world:
        found = from_memory(world.project.snapshot(), "anything", 10)
        assert found is not None
        assert (found.entries, found.total) == ((), 0)


def expected_page(stored: list[NewEntry], word: str, limit: int) -> list[str]:
    """By brute force; `stored` by sequence number."""
    found = [(one.ts_ns, seq) for seq, one in enumerate(stored) if word in one.message.split()]
    return [stored[seq].message for _, seq in sorted(found, reverse=True)[:limit]]


def test_what_all_chunks_hold_is_remembered_until_they_change(frozen: World) -> None:
    """Other entries come meanwhile: newer, older and between; and are frozen, and merged."""
    stored = [entry(f"number {n} of n{n}", n % 300, n % 4) for n in range(CHUNKS * OF_A_CHUNK)]
    for turn in range(6):
        last = 303 if turn < 2 else 200  # what is latest changes with the chunks, or does not
        new = [entry(f"number {turn} late {at}", at) for at in (0, 150, last)]
        frozen.store_entries(new)
        stored += new
        if turn % 2:
            frozen.project.freeze()
        if turn == 5:
            chunks = len(frozen.project.snapshot().chunks)
            frozen.project.merge()
            assert len(frozen.project.snapshot().chunks) < chunks
        snapshot = frozen.project.snapshot()
        for word, limit in (
            ("number", 3),
            ("number", 20),
            ("number", 100),
            ("n77", 5),
            ("late", 8),
            ("no", 8),
        ):
            everything = expected_page(stored, word, len(stored))
            for _ in range(2):
                found = ask(snapshot, word, limit)
                assert [row.message for row in found.entries] == everything[:limit]
                assert found.total == len(everything)
                assert (found.last is None) == (len(everything) <= limit)


def test_the_view_before_a_freeze_is_answered_as_it_was(frozen: World) -> None:
    old = frozen.project.snapshot()
    expected = ask(old, "number", 10)
    frozen.store_entries([entry("number of all", 1000)])
    frozen.project.freeze()
    assert ask(frozen.project.snapshot(), "number", 10).total == CHUNKS * OF_A_CHUNK + 1
    assert ask(old, "number", 10) == expected


def test_a_chunk_that_cannot_be_read_is_told_every_time(frozen: World) -> None:
    segment = max(frozen.layout.segments.iterdir(), key=lambda path: path.stat().st_size)
    with segment.open("r+b") as file:
        file.seek(frozen.project.snapshot().chunks[1].row.offset + 600)
        file.write(b"\0" * 64)
    for _ in range(3):
        found = ask(frozen.project.snapshot(), "number OR 1*", 10)
        assert found.damage
        assert found.total is not None
        assert found.total < CHUNKS * OF_A_CHUNK
