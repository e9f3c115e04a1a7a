"""The process is killed, or the power fails, at each operation of a store's work, and again at each
of its recovery: nothing acknowledged is lost, nothing shown goes, no half request is seen."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from sim_files import Died
from sim_world import (
    FEW_CHUNKS,
    SimWorld,
    Step,
    count_operations,
    live,
    many_small_groups,
    random_script,
    script,
)
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
    world.append(PROJECT, [2])
    world.die(power=True)
    world.start()
    world.verify()
    assert world.damage() == []
    files = world.files()
    world.die(power=False)
    world.start()
    world.verify()
    assert world.files() == files
    world.append(PROJECT, [2, 1])
    world.freeze(PROJECT)
    world.append(PROJECT, [1])
    world.verify()
    world.stop()


def lose_power_at(world: SimWorld, die_at: int, *, drop_index: bool, work: Step = script) -> None:
    assert not live(world, die_at, work)
    world.die(power=True, drop_index=drop_index)
    # Of a group that was not synced, a later frame may be there and an earlier one not; and
    # without the index nobody knows a half-finished freeze from damage.
    recover_and_verify(world, may_report=(".wal at", ".seg at")[: 1 + drop_index])


def kill_at(world: SimWorld, die_at: int) -> None:
    assert not live(world, die_at)
    world.die(power=False)
    recover_and_verify(world)


def die_in_the_recovery(world: SimWorld, die_at: int, *, drop_index: bool, every: int) -> None:
    """Lose power in the work, and then at each `every`th operation of the recovery, one after the
    other, until it comes through."""
    assert not live(world, die_at)
    world.die(power=True, drop_index=drop_index)
    for again_at in itertools.count(step=every):
        try:
            world.start(again_at)
        except Died:
            world.die(power=True, drop_index=drop_index)
        else:
            world.die(power=False)
            break
    recover_and_verify(world, may_report=(".wal at", ".seg at")[: 1 + drop_index])


def test_a_kill_loses_nothing(directories: Iterator[Path]) -> None:
    for die_at in range(0, count_operations(next(directories)), 2):
        for seed in range(4 if die_at < BEGINNING else 1):
            kill_at(SimWorld(next(directories), 100 * die_at + seed), die_at)


def test_a_power_loss_loses_nothing(directories: Iterator[Path]) -> None:
    for die_at in range(1, count_operations(next(directories)), 2):
        lose_power_at(SimWorld(next(directories), die_at), die_at, drop_index=False)


def test_a_power_loss_that_takes_the_index_loses_nothing(directories: Iterator[Path]) -> None:
    for die_at in range(0, count_operations(next(directories)), 5):
        lose_power_at(SimWorld(next(directories), die_at), die_at, drop_index=True)


def test_a_power_loss_during_the_recovery_loses_nothing(directories: Iterator[Path]) -> None:
    for die_at in range(0, count_operations(next(directories)), 6):
        world = SimWorld(next(directories), die_at)
        die_in_the_recovery(world, die_at, drop_index=die_at % 4 == 0, every=1)


def test_a_power_loss_between_small_groups_loses_nothing(directories: Iterator[Path]) -> None:
    operations = count_operations(next(directories), many_small_groups, FEW_CHUNKS)
    for die_at in range(15, operations, 2):
        world = SimWorld(next(directories), die_at, FEW_CHUNKS)
        lose_power_at(world, die_at, drop_index=False, work=many_small_groups)


@pytest.mark.slow
@pytest.mark.parametrize("drop_index", [False, True])
def test_a_power_loss_at_any_operation_and_any_of_the_recovery(
    directories: Iterator[Path], drop_index: bool
) -> None:
    for die_at, seed in itertools.product(range(count_operations(next(directories))), range(8)):
        kill_at(SimWorld(next(directories), seed), die_at)
        lose_power_at(SimWorld(next(directories), seed), die_at, drop_index=drop_index)
        world = SimWorld(next(directories), seed)
        die_in_the_recovery(world, die_at, drop_index=drop_index, every=1 + seed % 2)


@pytest.mark.slow
def test_power_losses_in_random_work_lose_nothing(directories: Iterator[Path]) -> None:
    for seed in range(2500):
        random_ = random.Random(seed)
        work = random_script(random_)
        operations = count_operations(next(directories), work)
        for die_at in random_.sample(range(operations), 4):
            world = SimWorld(next(directories), seed)
            lose_power_at(world, die_at, drop_index=random_.random() < 0.3, work=work)
