"""The process is killed, or the power fails, at each operation of a store's work, and again at each
of its recovery: nothing acknowledged is lost, nothing shown goes, no half request is seen."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from sim_world import SimWorld, count_operations, live
from store_world import PROJECT, memory_directory

BEGINNING = 25
"""Operations in which directories are made: seldom again, so each is tried more often."""


@pytest.fixture
def directories() -> Iterator[Iterator[Path]]:
    """As many as one likes."""
    with memory_directory() as directory:
        yield (directory / str(number) for number in itertools.count())


def recover_and_verify(world: SimWorld, *, may_report: tuple[str, ...] = ()) -> None:
    """The first recovery makes it whole and the second finds nothing to do; what the first showed
    is as safe as what is stored after it, and work goes on. `may_report`: words of the damage that
    the first may find."""
    world.start()
    world.verify()
    assert [text for text in world.damage() if not any(word in text for word in may_report)] == []
    world.append(PROJECT, 2)
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
        for seed in range(6 if die_at < BEGINNING else 1):
            world = SimWorld(next(directories), seed=100 * die_at + seed)
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
        # Of a group that was not synced, a later frame may be there and an earlier one not; and
        # without the index nobody knows a half-finished freeze from damage.
        recover_and_verify(world, may_report=(".wal at", ".seg at")[: 1 + drop_index])
