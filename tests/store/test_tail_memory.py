"""A search of the tail takes room in proportion to the texts, whatever words they are of."""

import tracemalloc

import pytest
from store_world import ask, entry, new_world

from logd.store.limits import StoreLimits

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
