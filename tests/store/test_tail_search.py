"""What it takes to show the tail, and to search it, whatever its texts are."""

import tracemalloc

import pytest
from store_world import ask, entry, new_world

from logd.query.ast import Filter
from logd.query.syntax import parse_search
from logd.store.chunk_scans import ScanHere
from logd.store.limits import StoreLimits
from logd.store.search import search

ENTRIES = 400
LIMITS = StoreLimits(min_free_disk_bytes=0)


@pytest.mark.parametrize(
    ("word", "search"),
    [("登ab", "登"), ("éab", "é"), ("é ", '"é é"'), ("a ", "a"), ("a ", "a*"), ("7 ", "7")],
)
def test_a_word_that_comes_again_and_again_takes_little_room(word: str, search: str) -> None:
    message = word * (8000 // len(word.encode()))
    with new_world(LIMITS) as world:
        world.store_entries([entry(message, n) for n in range(ENTRIES)])
        tracemalloc.start()
        try:
            found = ask(world.project.snapshot(), search, limit=1)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert found.total == ENTRIES
    assert peak < 8 * ENTRIES * len(message.encode())


@pytest.mark.parametrize("requests", [2, 5, 40])
def test_to_show_large_entries_does_not_copy_them_all(requests: int) -> None:
    """It is done in the event loop, before each search."""
    with new_world(LIMITS) as world:
        peaks = []
        for first in range(0, 800, 800 // requests):
            numbers = range(first, first + 800 // requests)
            world.store_entries([entry("m" * 8000, n) for n in numbers])
            tracemalloc.start()
            try:
                world.project.snapshot()
                peaks.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
        assert len(world.messages()) == 800
    assert max(peaks) < 3 << 20


def test_a_search_of_metas_can_be_stopped_after_each_few() -> None:
    """To look into a large one takes long."""
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1

    with new_world(LIMITS) as world:
        world.store_entries([entry("x", n, meta=b'{"user":"ann"}') for n in range(512)])
        found = search(
            world.project.snapshot(),
            Filter(search=parse_search("meta.user:ann")),
            1,
            None,
            with_total=True,
            scanner=ScanHere(),
            check=check,
        )
    assert found.total == 512
    assert calls >= 512 // 16
