"""A small chunk that cannot be read is in the way of no merge but its own."""

import contextlib

import msgspec
from store_world import TINY, World, ask, entries, new_world

from logd.errors import Corruption

LIMITS = msgspec.structs.replace(TINY, chunk_entries=4096, block_entries=1024)
FREEZES = 60


def freeze_and_merge(world: World, prefix: str) -> None:
    world.store_entries(entries(prefix, 3))
    world.project.freeze()
    with contextlib.suppress(Corruption):
        while world.project.merge():
            pass


def files_after_many_freezes(*, damaged: bool) -> int:
    with new_world(LIMITS) as world:
        world.store_entries(entries("first", 3))
        world.project.freeze()
        if damaged:
            (path,) = world.layout.segments.iterdir()
            data = bytearray(path.read_bytes())
            data[-20] ^= 1
            path.write_bytes(data)
        for number in range(FREEZES):
            freeze_and_merge(world, f"more {number}")
        found = ask(world.project.snapshot(), "more")
        assert found.total == 3 * FREEZES
        assert len(found.entries) == 3 * FREEZES
        return len(list(world.layout.segments.iterdir()))


def test_the_others_are_merged() -> None:
    sound = files_after_many_freezes(damaged=False)
    assert sound < 10
    assert files_after_many_freezes(damaged=True) <= sound + 5
