"""What the cache of chunk parts holds on to, and that it keeps to its budget."""

from collections.abc import Callable, Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.store.cache import PartCache

MIB = 1 << 20
KIB = 1 << 10


class Loads:
    """Values that say how often they were loaded."""

    def __init__(self) -> None:
        self.keys: list[Hashable] = []

    def of(self, key: Hashable, size: int) -> Callable[[], tuple[Hashable, int]]:
        def load() -> tuple[Hashable, int]:
            self.keys.append(key)
            return key, size

        return load


@given(
    st.integers(0, 1 << 20),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 1 << 19)), max_size=200),
)
def test_the_budget_holds_and_every_value_is_that_of_its_key(
    budget: int, asked: list[tuple[int, int]]
) -> None:
    cache, loads = PartCache(budget), Loads()
    for key, size in asked:
        assert cache.get(key, loads.of(key, size)) == key
        assert 0 <= cache.size_bytes <= budget
        assert cache.peek(key) in (None, key)


def test_what_is_cached_is_not_loaded_again() -> None:
    cache, loads = PartCache(MIB), Loads()
    for _ in range(3):
        cache.get("a", loads.of("a", KIB))
    assert loads.keys == ["a"]


def test_without_a_budget_nothing_is_cached() -> None:
    cache, loads = PartCache(0), Loads()
    for _ in range(2):
        cache.get("a", loads.of("a", 0))
    assert loads.keys == ["a", "a"]
    assert cache.peek("a") is None


def test_what_was_asked_for_twice_outlives_a_scan() -> None:
    cache, loads = PartCache(MIB), Loads()
    for _ in range(2):
        cache.get("hot", loads.of("hot", 100 * KIB))
    for block in range(100):
        cache.get(block, loads.of(block, 100 * KIB))
    cache.get("hot", loads.of("hot", 100 * KIB))
    assert loads.keys.count("hot") == 1


def test_small_things_outlive_a_scan_at_once() -> None:
    cache, loads = PartCache(64 * MIB), Loads()
    for chunk in range(300):
        cache.get(("small", chunk), loads.of(chunk, 10 * KIB))
    for block in range(1000):
        cache.get(block, loads.of("block", MIB))
    for chunk in range(300):
        cache.get(("small", chunk), loads.of("again", 10 * KIB))
    assert "again" not in loads.keys


def test_a_round_over_more_than_fits_finds_part_of_it() -> None:
    cache, loads = PartCache(MIB), Loads()
    for _ in range(2):
        for part in range(5):
            cache.get(part, loads.of(part, 100 * KIB))
    loads.keys.clear()
    for part in range(50):
        cache.get(part, loads.of(part, 100 * KIB))
    assert len(loads.keys) == 45


def test_what_takes_more_than_its_share_is_not_cached() -> None:
    cache, loads = PartCache(MIB), Loads()
    cache.get("small", loads.of("small", KIB))
    cache.get("large", loads.of("large", MIB // 2))
    assert cache.peek("large") is None
    assert cache.peek("small") == "small"


def test_answers_outlive_a_round_over_more_tables_than_fit() -> None:
    cache, loads = PartCache(64 * MIB), Loads()
    for chunk in range(1_600):
        cache.get(("table", chunk), loads.of("table", 12 * KIB))
        cache.get(("answer", chunk), loads.of("answer", 300))
    loads.keys.clear()
    for chunk in range(1_600):
        cache.get(("answer", chunk), loads.of("answer", 300))
    assert loads.keys == []


def test_what_passes_is_kept_from_the_second_time_on() -> None:
    cache, loads = PartCache(MIB), Loads()
    for _ in range(3):
        assert cache.get_passing("a", loads.of("a", 100 * KIB)) == "a"
    assert loads.keys == ["a", "a"]
    assert cache.peek("a") == "a"


def test_several_are_looked_for_at_once() -> None:
    cache, loads = PartCache(MIB), Loads()
    for key in ("a", "b"):
        cache.get(key, loads.of(key, 100))
    assert cache.peek_each(["b", "c", "a"]) == ["b", None, "a"]
    assert cache.peek_each([]) == []


def test_what_is_looked_for_among_several_counts_as_used() -> None:
    cache, loads = PartCache(MIB), Loads()
    for key in range(40):
        cache.get(key, loads.of(key, 50 * KIB))
        cache.peek_each([0])
    assert cache.peek(0) == 0


def test_what_passes_takes_next_to_nothing() -> None:
    cache, loads = PartCache(MIB), Loads()
    for key in range(100):
        cache.get_passing(key, loads.of(key, 100 * KIB))
    assert cache.size_bytes < 100 * KIB
    assert cache.peek(0) is None


def test_what_is_kept_need_not_be_loaded_to_pass() -> None:
    cache, loads = PartCache(MIB), Loads()
    cache.get("a", loads.of("a", KIB))
    assert cache.get_passing("a", loads.of("a", KIB)) == "a"
    assert loads.keys == ["a"]


@pytest.mark.parametrize("budget", [0, 100, KIB])
def test_what_passes_stays_within_the_budget(budget: int) -> None:
    cache, loads = PartCache(budget), Loads()
    for key in [*range(20), *range(20)]:
        assert cache.get_passing(key, loads.of(key, 50)) == key
        assert cache.size_bytes <= budget
