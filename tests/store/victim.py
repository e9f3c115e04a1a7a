"""A process that may die: opens damaged data directories, each in a child of its own.

    python victim.py <directory>...

prints a line of JSON for each: how the child ended (a negative number: by that signal), and what
`examine` said or which exception ended it. The tests themselves never map a damaged file.
"""

import contextlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import msgspec
from store_world import World, ask, entries

from logd.errors import Corruption
from logd.words import fold

_TESTS = Path(__file__).parents[1]
_PATHS = (_TESTS.parent, _TESTS / "model", _TESTS / "store")
_SECONDS = 600

SEARCHES = ("", "alpha", '"user 7"', "us* -alpha", "source:api OR tag:t1", "meta.n:3", "größe")
FEW_SEARCHES = ("", "id9x3 OR new")


class Answer(msgspec.Struct, frozen=True):
    """To one question: the rows newest first, as (seq, message), and how many match."""

    rows: list[tuple[int, str]]
    total: int
    damaged: bool


class Examination(msgspec.Struct, frozen=True):
    """Answers at the opening, after writing, freezing and merging, and after another opening;
    `damage`: what the openings set aside."""

    opened: list[Answer]
    written: list[Answer]
    reopened: list[Answer]
    damage: list[str]


class Outcome(msgspec.Struct, frozen=True):
    status: int
    text: str

    def examination(self) -> Examination:
        """Fails where the child died or raised."""
        assert self.status == 0, self.text
        return msgspec.json.decode(self.text, type=Examination)


def run(directories: Sequence[Path]) -> list[Outcome]:
    """What became of each data directory when a process examined it."""
    done = subprocess.run(
        [sys.executable, __file__, *map(str, directories)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, _PATHS))},
        capture_output=True,
        timeout=_SECONDS,
        check=True,
        text=True,
    )
    return [Outcome(*json.loads(line)) for line in done.stdout.splitlines()]


def examine(root: Path) -> Examination:
    with World(root) as world:
        damage = [str(error) for error in world.project.damage]
        opened = _answers(world, SEARCHES)
        for name in ("new", "newer"):
            world.store_entries(entries(name, 5))
            world.project.freeze()
        world.store_entries(entries("last", 3))
        _merge(world)
        written = _answers(world, FEW_SEARCHES)
        damage += map(str, world.reopen().damage)
        return Examination(opened, written, _answers(world, FEW_SEARCHES), damage)


def _merge(world: World) -> None:
    """As the daemon does: what cannot be read stays as it is."""
    with contextlib.suppress(Corruption):
        while world.project.merge():
            pass


def _answers(world: World, searches: Sequence[str]) -> list[Answer]:
    answers = []
    for search in searches:
        found = ask(world.project.snapshot(), search)
        assert found.total is not None
        rows = [(int(entry.seq), entry.message) for entry in found.entries]
        answers.append(Answer(rows, found.total, bool(found.damage)))
    return answers


def _child(root: Path, pipe: int) -> None:
    """Never returns."""
    status = 1
    try:
        text = msgspec.json.encode(examine(root))
        status = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the parent is to hear of it
        text = traceback.format_exc().encode()
    with open(pipe, "wb") as file:
        file.write(text)
    os._exit(status)


def main() -> None:
    fold("ä")  # makes a table that every child would make for itself
    for name in sys.argv[1:]:
        reading, writing = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _child(Path(name), writing)
        os.close(writing)
        with open(reading, "rb") as file:
            text = file.read().decode()
        _, status = os.waitpid(child, 0)
        sys.stdout.write(json.dumps([os.waitstatus_to_exitcode(status), text]) + "\n")


if __name__ == "__main__":
    main()
