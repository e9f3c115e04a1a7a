"""The process is killed, or the power fails, at each operation of a store's work, and again at each
of its recovery: nothing acknowledged is lost, nothing shown goes, no half request is seen."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from sim_world import SimWorld, count_operations, live
from store_world import PROJECT, memory_directory


@pytest.fixture
def directories() -> Iterator[Iterator[Path]]:
    """As many as one likes."""
    with memory_directory() as directory:
        yield (directory / str(number) for number in itertools.count())


def recover_and_verify(world: SimWorld, *, damage_is_likely: bool = False) -> None:
    """The first recovery makes it whole, the second finds nothing to do, and work goes on."""
    world.start()
    world.verify()
    assert damage_is_likely or world.damage() == []
    world.die(power=True)
    world.start()
    world.verify()
    assert world.damage() == []
    files = world.files()
    world.die(power=False)
    world.start()
    world.verify()
    assert world.files() == files
    world.append(PROJECT, 2, 1)
    world.freeze(PROJECT)
    world.append(PROJECT, 1)
    world.verify()
    world.stop()


def test_a_kill_at_any_operation_loses_nothing(directories: Iterator[Path]) -> None:
    for die_at in range(count_operations(next(directories))):
        world = SimWorld(next(directories))
        assert not live(world, die_at)
        world.die(power=False)
        recover_and_verify(world)


@pytest.mark.parametrize("drop_index", [False, True])
def test_a_power_loss_at_any_operation_loses_nothing(
    directories: Iterator[Path], drop_index: bool
) -> None:
    for die_at in range(count_operations(next(directories))):
        world = SimWorld(next(directories), seed=die_at)
        assert not live(world, die_at)
        world.die(power=True, drop_index=drop_index)
        recover_and_verify(world, damage_is_likely=drop_index)
