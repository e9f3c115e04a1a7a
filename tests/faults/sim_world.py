"""A store on the simulated disk, a script that works it, and a ledger of what it has to keep."""

import contextlib
import enum
import functools
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from sim_files import Died, SimDisk
from store_world import OTHER, PROJECT, TINY, World, ask, entry, idempotency_of

from logd.entry import ProjectId
from logd.errors import LogdError, StorageFailed, StorageFull
from logd.store.limits import StoreLimits
from logd.store.project import Installation, Project, Request

Step = Callable[["SimWorld"], None]

FEW_CHUNKS: Final = msgspec.structs.replace(TINY, chunk_entries=128, block_entries=64)
"""For work that is about the WAL, with more entries than need to be in chunks of eight."""


class Fate(enum.Enum):
    """Of a request: acknowledged or shown, so kept for ever; unanswered or refused, so there as a
    whole or not at all; or found missing, so gone for ever."""

    KEPT = "kept"
    OPEN = "open"
    GONE = "gone"


@dataclass
class Sent:
    project: ProjectId
    messages: list[str]
    key: str
    fate: Fate = Fate.OPEN


class SimWorld:
    """Steps of work; each may die. What a process may do after a fault, the steps do as the daemon
    does: a project whose storage failed is reopened, a freeze that found no space is tried again.
    """

    def __init__(self, directory: Path, seed: int = 0, limits: StoreLimits = TINY) -> None:
        self.root = directory / "data"
        self.limits = limits
        self.disk = SimDisk(self.root, seed)
        self.sent: list[Sent] = []
        self.deleted: set[ProjectId] = set()
        self.world: World | None = None
        self._numbers = 0

    # ------------------------------------------------------------ lives

    def start(self, die_at: int | None = None) -> None:
        """A new process opens the directory, and the projects in it. Raises Died."""
        self.disk.restart(die_at)
        self.open()

    def open(self) -> None:
        """Raises Died, and what the opening of a failing disk raises."""
        self.world = None
        world = World(self.root, self.limits, self.disk)
        self.world = world
        world.store.delete_unknown({PROJECT, OTHER} - self.deleted)
        for project in world.store.stored():
            world.store.project(project)

    def stop(self) -> None:
        assert self.world is not None
        self.world.close()
        self.world = None

    def die(self, *, power: bool, drop_index: bool = False) -> None:
        """The process ends here, and with `power` all that was not synced is in doubt."""
        if self.world is not None:
            self.world.abandon()
            self.world = None
        if power:
            self.disk.lose_power()
        for index in self.root.glob("projects/*/index"):
            if drop_index:
                shutil.rmtree(index)
                index.mkdir()
            else:  # LMDB may still be open in this process: it must not be the same file
                copy = index.with_name("index.copy")
                shutil.copytree(index, copy)
                shutil.rmtree(index)
                copy.rename(index)

    # ------------------------------------------------------------ steps

    def append(self, project: ProjectId, sizes: Sequence[int]) -> None:
        """A group of requests of these sizes."""
        world = self._world(project)
        requests = []
        mine = []
        for size in sizes:
            self._numbers += 1
            messages = [f"r{self._numbers} e{n}" for n in range(size)]
            mine.append(Sent(project, messages, f"key {self._numbers}"))
            new = [entry(message, at_s=(7 * n) % 5) for n, message in enumerate(messages)]
            requests.append(world.request(new, mine[-1].key))
        self.sent += mine
        try:
            world.commit(requests)
        except (StorageFull, StorageFailed):
            self._reopen_if_failed(project)
        else:
            for one in mine:
                one.fate = Fate.KEPT

    def rotate(self, project: ProjectId) -> None:
        self._world(project).project.rotate()

    def freeze(self, project: ProjectId) -> None:
        """All that waits; a failure is tried again, once."""
        self.rotate(project)
        self._twice(project, self._freeze_all)

    def _freeze_all(self, project: Project) -> None:
        while (job := project.prepare_freeze()) is not None:
            self._install(project, project.run_freeze(job))

    def merge(self, project: ProjectId) -> None:
        self._twice(project, self._merge_all)

    def _merge_all(self, project: Project) -> None:
        while (job := project.prepare_merge()) is not None:
            self._install(project, project.run_merge(job))

    def _install(self, project: Project, installation: Installation) -> None:
        project.install(installation)
        with contextlib.suppress(OSError):  # a file that stays is no loss
            project.discard(installation)

    def _twice(self, project: ProjectId, work: Callable[[Project], None]) -> None:
        for _ in range(2):
            try:
                work(self._world(project).project)
                return
            except (StorageFull, StorageFailed):
                self._reopen_if_failed(project)

    def _reopen_if_failed(self, project: ProjectId) -> None:
        world = self._world(project)
        if not world.project.failed:
            return
        for _ in range(3):
            with contextlib.suppress(OSError, LogdError):
                world.project = world.store.reopen(project)
                return
        raise AssertionError("a project cannot be reopened")

    def restart(self) -> None:
        """An orderly one; tried again where it fails, as a service manager does."""
        self.stop()
        for _ in range(3):
            with contextlib.suppress(OSError, LogdError):
                self.world = World(self.root, self.limits, self.disk)
                return
        raise AssertionError("the directory cannot be opened")

    def delete(self, project: ProjectId) -> None:
        self.deleted.add(project)
        world = self._world(PROJECT)
        for _ in range(2):
            with contextlib.suppress(OSError):
                world.store.delete(project)
                return

    def _world(self, project: ProjectId) -> World:
        assert self.world is not None
        self.world.project_id = project
        for _ in range(2):
            with contextlib.suppress(OSError, LogdError):
                self.world.project = self.world.store.project(project)
                break
        else:
            raise AssertionError("a project cannot be opened")
        return self.world

    # ------------------------------------------------------------ what must hold

    def verify(self) -> None:
        """Every request that was acknowledged or seen is there, once and as a whole; others are
        whole or gone; and what was seen now counts as such."""
        for project in {PROJECT, OTHER} - self.deleted:
            found = self.messages(project) if self._is_stored(project) else []
            mine = [one for one in self.sent if one.project == project]
            expected: list[str] = []
            for one in mine:
                if one.fate is Fate.OPEN:
                    one.fate = Fate.KEPT if one.messages[0] in found else Fate.GONE
                if one.fate is Fate.KEPT:
                    expected += one.messages
            assert found == expected
            if expected:
                self._verify_keys(project, mine)
        for project in self.deleted:
            assert [name for name in self.disk.files() if project in name] == []

    def messages(self, project: ProjectId) -> list[str]:
        """In order of sequence."""
        found = ask(self._world(project).project.snapshot())
        assert not found.damage
        assert found.total == len(found.entries)
        return [e.message for e in sorted(found.entries, key=lambda e: e.seq)]

    def _is_stored(self, project: ProjectId) -> bool:
        assert self.world is not None
        return project in self.world.store.stored()

    def _verify_keys(self, project: ProjectId, mine: Sequence[Sent]) -> None:
        opened = self._world(project).project
        for one in mine:
            record = opened.recall(idempotency_of(one.key).key_digest)
            if one.fate is Fate.KEPT:
                assert record is not None
                assert record.count == len(one.messages)
            else:
                assert record is None

    def damage(self) -> list[str]:
        """What the openings of this life found damaged."""
        return [str(error) for project in self.open_projects() for error in project.damage]

    def open_projects(self) -> list[Project]:
        assert self.world is not None
        return self.world.store.open_projects()

    def project(self, project: ProjectId) -> Project:
        return self._world(project).project

    def request(self, project: ProjectId, message: str) -> Request:
        """One that the ledger does not know."""
        return self._world(project).request([entry(message)])

    def reopen(self, project: ProjectId) -> None:
        assert self.world is not None
        self.world.store.reopen(project)

    def files(self) -> dict[str, bytes]:
        return self.disk.files()


def random_script(random_: random.Random) -> Step:
    """Steps in any order, of which each may come often."""
    steps: list[Step] = []
    for _ in range(random_.randrange(5, 25)):
        project = random_.choice([PROJECT, PROJECT, PROJECT, OTHER])
        sizes = [random_.choice([1, 1, 2, 3, 5, 9, 20]) for _ in range(random_.randrange(1, 4))]
        steps += random_.choice(
            [
                [functools.partial(SimWorld.append, project=project, sizes=sizes)] * 3,
                [functools.partial(SimWorld.rotate, project=project)],
                [functools.partial(SimWorld.freeze, project=project)],
                [functools.partial(SimWorld.merge, project=project)],
                [SimWorld.restart],
            ]
        )

    def run(world: SimWorld) -> None:
        for step in steps:
            step(world)

    return run


def script(world: SimWorld) -> None:
    """Everything that a store does to its files, in two projects of which one goes."""
    world.append(PROJECT, [2, 1])
    world.append(OTHER, [3])
    world.append(PROJECT, [20])
    world.freeze(PROJECT)
    world.append(PROJECT, [1, 1])
    world.freeze(PROJECT)
    world.append(PROJECT, [2])
    world.rotate(PROJECT)
    world.append(PROJECT, [3, 1])
    world.freeze(PROJECT)
    world.merge(PROJECT)
    world.freeze(OTHER)
    world.append(OTHER, [1])
    world.append(PROJECT, [1])
    world.restart()
    world.append(PROJECT, [2, 2])
    world.delete(OTHER)
    world.freeze(PROJECT)
    world.merge(PROJECT)
    world.append(PROJECT, [1])


def many_small_groups(world: SimWorld) -> None:
    """So many that the WAL is written over zeros, with what ends that: a large group, the end of a
    file, and a restart."""
    for _ in range(12):
        world.append(PROJECT, [1])
    world.append(PROJECT, [400])
    for _ in range(3):
        world.append(PROJECT, [2, 1])
    world.rotate(PROJECT)
    for _ in range(11):
        world.append(PROJECT, [1])
    world.rotate(PROJECT)
    world.append(PROJECT, [1])
    world.freeze(PROJECT)
    for _ in range(10):
        world.append(PROJECT, [1])
    world.restart()
    world.append(PROJECT, [1])


def live(world: SimWorld, die_at: int | None, work: Step = script) -> bool:
    """Start and work; False if the process died."""
    try:
        world.start(die_at)
        work(world)
    except Died:
        return False
    return True


def count_operations(directory: Path, work: Step = script, limits: StoreLimits = TINY) -> int:
    """How many operations it is, with the start."""
    world = SimWorld(directory, limits=limits)
    assert live(world, None, work)
    operations = len(world.disk.operations)  # to verify opens projects, which is more of them
    world.verify()
    world.die(power=False)
    return operations
