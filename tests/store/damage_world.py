"""A data directory to be damaged: chunks of several kinds, a tail, and what it answers."""

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import victim
from reference import NewEntry
from store_world import PROJECT, World, entry
from victim import Examination, Outcome

from logd.store.layout import DataLayout, ProjectLayout

Damage = Callable[[ProjectLayout, random.Random], None]


def build(root: Path) -> None:
    """48 entries: chunks of 8, merged ones, small ones, and a tail in two WAL files."""
    with World(root) as world:
        for number, size in enumerate((20, 2, 2, 3, 9)):
            requests = [_entry(number, n) for n in range(size)]
            world.commit([world.request(requests, f"key {number}")])
            world.project.freeze()
            world.project.merge()
        for number in (8, 9):
            world.project.rotate()
            for n in range(6):
                world.store_entries([_entry(number, n)])
        world.crash()
        world.open()
        world.project.rotate()


def _entry(group: int, n: int) -> NewEntry:
    return entry(
        f"user {n} alpha{group} did {'alpha' if n % 3 else 'größe'} id{group}x{n}",
        at_s=(group * 7 + n * 5) % 23,
        level=n % 4,
        source=["api", "db", "größe 7"][n % 3],
        tags=("t1", "eu west")[: n % 3],
        meta=b'{"n":%d}' % (n % 5),
    )


class Trial:
    """A pristine directory, and damaged copies of it examined in another process."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._pristine = work / "pristine"
        build(self._pristine)
        (outcome,) = self._examine([self._copy("unharmed")])
        self.expected: Examination = outcome.examination()

    def _copy(self, name: str) -> Path:
        path = self._work / name
        shutil.copytree(self._pristine, path)
        return path

    def layout(self) -> ProjectLayout:
        """Of the pristine directory."""
        return DataLayout(self._pristine).project(PROJECT)

    def run(self, damages: Sequence[Damage], seed: int = 0) -> list[Outcome]:
        """What became of a copy with each damage."""
        copies = []
        for number, damage in enumerate(damages):
            copies.append(self._copy(f"copy-{number}"))
            damage(DataLayout(copies[-1]).project(PROJECT), random.Random(f"{seed} {number}"))
        return self._examine(copies)

    def _examine(self, copies: Sequence[Path]) -> list[Outcome]:
        try:
            return victim.run(copies)
        finally:
            for copy in copies:
                shutil.rmtree(copy)


def flip_a_bit(path: Path, random_: random.Random) -> int:
    """The offset of the byte that changed."""
    data = bytearray(path.read_bytes())
    offset = random_.randrange(len(data))
    data[offset] ^= 1 << random_.randrange(8)
    path.write_bytes(data)
    return offset
