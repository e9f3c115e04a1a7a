"""The disk fails an operation, or is full: no false acknowledgement, nothing acknowledged is lost,
and the work goes on by itself."""

import errno
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from sim_files import UNLIMITED
from sim_world import Fate, SimWorld, Step, count_operations, live, random_script, script
from store_world import OTHER, PROJECT, memory_directory

from logd.errors import LogdError, StorageFailed
from logd.store.check import check_store
from logd.store.layout import DataLayout


@pytest.fixture
def directories() -> Iterator[Iterator[Path]]:
    """As many as one likes."""
    with memory_directory() as directory:
        yield (directory / str(number) for number in itertools.count())


def start_with_a_fault(world: SimWorld, fail_at: int, fail_with: int) -> None:
    """As a service manager: again, where the fault ends the first start."""
    world.disk.restart()
    world.disk.fail_at, world.disk.fail_with = fail_at, fail_with
    for _ in range(2):
        try:
            return world.open()
        except (OSError, LogdError):
            assert world.disk.failed_once
    raise AssertionError("the directory cannot be opened")


def assert_sound(world: SimWorld) -> None:
    """What is left on the disk is what the store knows of."""
    world.stop()
    projects = [p for p in (PROJECT, OTHER) if p not in world.deleted]
    report = check_store(world.disk, DataLayout(world.root), projects)
    assert [problem for problem in report.problems if "set aside" not in problem] == []


def fail_at(world: SimWorld, number: int, code: int, work: Step = script) -> None:
    start_with_a_fault(world, number, code)
    work(world)
    assert world.disk.failed_once
    world.verify()
    world.die(power=True)
    world.start()
    world.verify()
    world.append(PROJECT, [1])
    assert world.sent[-1].fate is Fate.KEPT
    world.freeze(PROJECT)
    world.verify()
    assert_sound(world)


@pytest.mark.parametrize(("code", "first"), [(errno.EIO, 0), (errno.ENOSPC, 1)])
def test_a_failed_operation_costs_no_acknowledged_entry(
    directories: Iterator[Path], code: int, first: int
) -> None:
    for number in range(first, count_operations(next(directories)), 4):
        fail_at(SimWorld(next(directories), number), number, code)


@pytest.mark.slow
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_failure_of_any_operation_costs_no_acknowledged_entry(
    directories: Iterator[Path], code: int
) -> None:
    for number, seed in itertools.product(range(count_operations(next(directories))), range(5)):
        fail_at(SimWorld(next(directories), seed), number, code)


@pytest.mark.slow
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_failures_in_random_work_cost_no_acknowledged_entry(
    directories: Iterator[Path], code: int
) -> None:
    for seed in range(700):
        random_ = random.Random(seed)
        work = random_script(random_)
        for number in random_.sample(range(count_operations(next(directories), work)), 3):
            fail_at(SimWorld(next(directories), seed), number, code, work)


def test_a_sync_that_fails_acknowledges_nothing_and_is_not_tried_again(
    directories: Iterator[Path],
) -> None:
    world = SimWorld(next(directories))
    world.start()
    world.append(PROJECT, [2])
    opened = world.project(PROJECT)
    world.disk.fail_at = len(world.disk.operations) + 1
    request = world.request(PROJECT, "unsynced")
    with pytest.raises(StorageFailed):
        opened.append([request])
    assert world.disk.operations[-1] == "sync"
    operations = len(world.disk.operations)
    with pytest.raises(StorageFailed):
        opened.append([request])
    assert len(world.disk.operations) == operations
    assert world.messages(PROJECT) == ["r1 e0", "r1 e1"]
    world.reopen(PROJECT)
    shown = world.messages(PROJECT)
    world.die(power=True)
    world.start()
    assert world.messages(PROJECT) == shown


@pytest.mark.parametrize("room", range(0, 12_000, 400))
def test_a_full_disk_takes_nothing_and_goes_on_when_it_has_room(
    directories: Iterator[Path], room: int
) -> None:
    world = SimWorld(next(directories), seed=room)
    world.start()
    world.append(PROJECT, [3])
    world.disk.capacity = sum(map(len, world.files().values())) + room
    script(world)
    assert not any(project.failed for project in world.open_projects())
    world.verify()
    world.disk.capacity = UNLIMITED
    world.append(PROJECT, [2, 1])
    assert [one.fate for one in world.sent[-2:]] == [Fate.KEPT, Fate.KEPT]
    world.freeze(PROJECT)
    world.merge(PROJECT)
    world.verify()
    world.die(power=True)
    world.start()
    world.verify()
    assert_sound(world)


def test_a_disk_that_stays_full_is_not_filled_with_attempts(directories: Iterator[Path]) -> None:
    world = SimWorld(next(directories))
    assert live(world, None, lambda w: w.append(PROJECT, [20]))
    world.disk.capacity = sum(map(len, world.files().values())) + 300
    for _ in range(5):
        world.freeze(PROJECT)
        world.append(PROJECT, [9])
    before = world.files()
    for _ in range(5):
        world.freeze(PROJECT)
        world.append(PROJECT, [9])
    assert world.files() == before
    world.verify()
