"""The index's file is mapped; what was looked at of it counts as memory of the process until it is
let go."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_world import TINY, World, ask, entry, new_world

from logd.store.index import ProjectIndex

ENTRIES = 400


@pytest.fixture
def world() -> Iterator[World]:
    with new_world(TINY) as opened:
        for at in range(0, ENTRIES, 20):
            opened.store_entries([entry(f"said word{n}", n) for n in range(at, at + 20)])
            opened.project.freeze()
        yield opened


def index_of(world: World) -> ProjectIndex:
    index = world.project.snapshot().index
    assert index is not None
    return index


def resident_bytes(world: World) -> int:
    """Of the mapped file."""
    path = re.escape(str(world.layout.index / "data.mdb"))
    maps = Path("/proc/self/smaps").read_text()
    found = re.findall(rf"{path}\n(?:.*\n)*?Rss: +(\d+) kB", maps)
    assert found
    return 1024 * sum(map(int, found))


def values(index: ProjectIndex, world: World) -> list[bytes]:
    found = []
    with index.reader() as reader:
        for chunk in world.project.snapshot().chunks:
            for value in (reader.vocabulary(chunk.first_seq), reader.postings(chunk.first_seq)):
                assert value is not None
                found.append(bytes(value))
    return found


def test_pages_that_were_looked_at_can_be_let_go_and_are_there_again(world: World) -> None:
    index = index_of(world)
    before = values(index, world)
    assert resident_bytes(world) > 0
    index.let_go()
    assert resident_bytes(world) == 0
    assert values(index, world) == before
    assert ask(world.project.snapshot(), "word7").total == 1


def test_what_somebody_reads_stays(world: World) -> None:
    index = index_of(world)
    first_seq = world.project.snapshot().chunks[0].first_seq
    with index.reader() as reader:
        value = reader.vocabulary(first_seq)
        assert value is not None
        before = bytes(value)
        letting_go = threading.Thread(target=index.let_go)
        letting_go.start()
        letting_go.join()
        assert bytes(value) == before
        assert resident_bytes(world) > 0


def test_the_index_is_written_to_after_it_was_let_go(world: World) -> None:
    index = index_of(world)
    index.let_go()
    world.store_entries([entry("said afterwards", ENTRIES)])
    world.project.freeze()
    index.let_go()
    assert ask(world.project.snapshot(), "afterwards").total == 1
    world.reopen()
    assert ask(world.project.snapshot(), "afterwards").total == 1
