"""A snapshot answers as it did, whatever was merged since it was taken."""

from collections.abc import Iterator

import pytest
from store_world import World, ask, entries, entry, new_world


@pytest.fixture
def world() -> Iterator[World]:
    with new_world() as opened:
        yield opened


@pytest.mark.parametrize("asked_before", [False, True])
def test_a_snapshot_survives_the_merge_of_its_chunks(world: World, asked_before: bool) -> None:
    for word in ("alpha", "beta"):
        world.store_entries([*entries(f"{word} number", 2), entry(f"{word} user7 came", 3)])
        world.project.freeze()
    snapshot = world.project.snapshot()
    assert len(snapshot.chunks) == 2
    questions = ("alpha", "beta", "number", "user7", '"user7 came"', "alp*", "-beta", "source:test")
    before = [ask(snapshot, text) for text in questions] if asked_before else None
    assert world.project.merge()
    after = [ask(snapshot, text) for text in questions]
    assert [found.total for found in after] == [3, 3, 4, 2, 2, 3, 3, 6]
    assert before is None or before == after
    assert [ask(world.project.snapshot(), text) for text in questions] == after


def test_the_pages_of_a_search_are_those_of_its_first_moment(world: World) -> None:
    world.store_entries(entries("needle", 6))
    world.project.freeze()
    first = ask(world.project.snapshot(), "needle")
    world.store_entries(entries("needle", 3, at_s=100))
    world.project.freeze()
    assert (first.total, ask(world.project.snapshot(), "needle").total) == (6, 9)
