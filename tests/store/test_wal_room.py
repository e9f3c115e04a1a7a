"""The WAL of many small groups: zeros are written ahead, and mean nothing to whoever reads it."""

import errno
from pathlib import Path

import pytest
from store_world import World, entries, entry, new_world

from logd.errors import Corruption, StorageFull
from logd.store.check import check_store
from logd.store.layout import DataLayout
from logd.store.wal import WalWriter

GROUPS = 20


def store_small_groups(world: World) -> list[str]:
    names = [f"small {n}" for n in range(GROUPS)]
    for name in names:
        world.store_entries([entry(name)])
    return names


def newest_wal(world: World) -> Path:
    return max(world.layout.wal.iterdir())


def zeros_at_the_end(path: Path) -> int:
    data = path.read_bytes()
    return len(data) - len(data.rstrip(b"\0"))


def test_small_groups_are_written_over_zeros() -> None:
    with new_world() as world:
        store_small_groups(world)
        path = newest_wal(world)
        size = path.stat().st_size
        assert zeros_at_the_end(path) > 0
        store_small_groups(world)
        assert path.stat().st_size == size


def test_after_a_crash_all_is_there_and_nothing_is_damaged() -> None:
    with new_world() as world:
        names = store_small_groups(world)
        world.crash()
        assert zeros_at_the_end(newest_wal(world)) > 0
        assert not check_store(world.files, DataLayout(world.root), [world.project_id]).problems
        assert world.open().damage == ()
        assert world.messages() == names
        assert not world.layout.damaged.exists()
        world.store_entries([entry("more")])
        assert world.messages() == [*names, "more"]


def test_an_orderly_stop_leaves_no_zeros_and_no_gap() -> None:
    with new_world() as world:
        store_small_groups(world)
        path = newest_wal(world)
        world.close()
        assert zeros_at_the_end(path) == 0
        world.open()
        assert world.store_entries([entry("more")]) == [GROUPS]


def test_large_groups_and_small_ones_follow_on_each_other() -> None:
    with new_world() as world:
        names = store_small_groups(world)
        for size in (3000, 1, 400, 2):
            name = f"of {size}"
            world.store_entries(entries(name, size))
            names += [f"{name} {n}" for n in range(size)]
            names += store_small_groups(world)
        world.crash()
        assert world.open().damage == ()
        assert world.messages() == names


def test_zeros_of_a_file_that_is_not_the_last_are_damage_only_if_entries_are_missing() -> None:
    with new_world() as world:
        names = store_small_groups(world)
        path = newest_wal(world)
        world.project.rotate()
        world.store_entries([entry("later")])
        world.crash()
        data = path.read_bytes()
        path.write_bytes(data + bytes(5000))
        assert world.open().damage == ()
        assert world.messages() == [*names, "later"]
        world.crash()
        path.write_bytes(data[:-20] + bytes(5000))
        assert [type(error) for error in world.open().damage] == [Corruption]


def test_a_rotation_of_nothing_leaves_the_file_that_was_made_on_a_full_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Memory may be short while the run that grows is empty."""
    with new_world() as world:
        with monkeypatch.context() as full:

            def writing(*_: object) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            full.setattr(WalWriter, "_write", writing)
            with pytest.raises(StorageFull):
                world.store_entries([entry("none")])
        world.project.end_wal()
        world.project.rotate()
        world.store_entries([entry("one")])
        assert world.messages() == ["one"]
