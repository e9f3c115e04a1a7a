"""The index is derived: whatever happens to its file, the answers are the same and the process
lives."""

import contextlib
import functools
import os
import random
import resource
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from damage_world import Damage, Trial, flip_a_bit
from store_world import entries, memory_directory, new_world

from logd.store.layout import ProjectLayout

_PAGE = 4096


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    with memory_directory() as work:
        yield Trial(work)


def data_file(layout: ProjectLayout) -> Path:
    return layout.index / "data.mdb"


def _remove_the_directory(layout: ProjectLayout, _: random.Random) -> None:
    shutil.rmtree(layout.index)


def _remove_the_file(layout: ProjectLayout, _: random.Random) -> None:
    data_file(layout).unlink()


def _remove_the_lock(layout: ProjectLayout, _: random.Random) -> None:
    (layout.index / "lock.mdb").unlink()


def _fill_the_lock(layout: ProjectLayout, random_: random.Random) -> None:
    path = layout.index / "lock.mdb"
    path.write_bytes(random_.randbytes(path.stat().st_size))


def _not_lmdb(layout: ProjectLayout, random_: random.Random) -> None:
    data_file(layout).write_bytes(random_.randbytes(40_000))


def _truncate(size: int, layout: ProjectLayout, _: random.Random) -> None:
    """To `size` bytes, or by so many where it is negative."""
    with data_file(layout).open("r+b") as file:
        file.truncate(size if size >= 0 else max(0, file.seek(0, 2) + size))


def _write_page(page: int, content: bytes, layout: ProjectLayout, _: random.Random) -> None:
    with data_file(layout).open("r+b") as file:
        file.seek(page % (file.seek(0, 2) // _PAGE) * _PAGE)
        file.write(content)


def _copy_a_page(layout: ProjectLayout, random_: random.Random) -> None:
    data = bytearray(data_file(layout).read_bytes())
    pages = len(data) // _PAGE
    source, target = random_.randrange(pages) * _PAGE, random_.randrange(pages) * _PAGE
    data[target : target + _PAGE] = data[source : source + _PAGE]
    data_file(layout).write_bytes(data)


def _garble(layout: ProjectLayout, random_: random.Random) -> None:
    data = bytearray(data_file(layout).read_bytes())
    offset = random_.randrange(len(data) - 64)
    size = random_.choice([2, 8, 16, 64])
    data[offset : offset + size] = random_.randbytes(size)
    data_file(layout).write_bytes(data)


def _flip(layout: ProjectLayout, random_: random.Random) -> None:
    flip_a_bit(data_file(layout), random_)


def _flip_within_structure(layout: ProjectLayout, random_: random.Random) -> None:
    """In the first bytes of a page: its header and its table of nodes."""
    data = bytearray(data_file(layout).read_bytes())
    offset = random_.randrange(len(data) // _PAGE) * _PAGE + random_.randrange(48)
    data[offset] ^= 1 << random_.randrange(8)
    data_file(layout).write_bytes(data)


WHOLE: list[Damage] = [
    _remove_the_directory, _remove_the_file, _remove_the_lock, _fill_the_lock, _not_lmdb
]  # fmt: skip
SIZES = [0, 1, 100, _PAGE - 1, _PAGE, 2 * _PAGE - 1, 2 * _PAGE, 3 * _PAGE, -1, -_PAGE, -5 * _PAGE]
TRUNCATED: list[Damage] = [functools.partial(_truncate, size) for size in SIZES]
ZEROED: list[Damage] = [functools.partial(_write_page, page, bytes(_PAGE)) for page in range(12)]
FILLED: list[Damage] = [functools.partial(_write_page, page, b"\xff" * _PAGE) for page in range(4)]
VARIED: list[Damage] = [_copy_a_page, _garble]


@contextmanager
def descriptors_left(room: int) -> Iterator[None]:
    """This process can open so many files more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 10, hard)
    )
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(room):
            os.close(held.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)


def test_an_index_that_cannot_be_opened_for_lack_of_descriptors_is_kept() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 20))
        world.project.freeze()
        world.close()
        before = data_file(world.layout).stat().st_ino
        lacking = 0
        for room in range(8):
            with descriptors_left(room), contextlib.suppress(OSError):
                world.open()
                break
            lacking += 1
        assert lacking >= 3  # the lock, then LMDB's lock and file
        assert world.project.damage == ()
        assert not world.layout.damaged.exists()
        assert data_file(world.layout).stat().st_ino == before
        assert world.seqs() == list(range(20))


def assert_nothing_is_lost(trial: Trial, damages: Sequence[Damage], seed: int = 0) -> None:
    for number, outcome in enumerate(trial.run(damages, seed)):
        found = outcome.examination()
        assert found.opened == trial.expected.opened, number
        assert found.written == trial.expected.written, number
        assert found.reopened == trial.expected.reopened, number


def test_a_lost_shortened_or_overwritten_index_is_rebuilt(trial: Trial) -> None:
    assert_nothing_is_lost(trial, [*WHOLE, *TRUNCATED, *ZEROED, *FILLED, *(VARIED * 4)])


def test_a_flipped_bit_in_the_index_changes_no_answer(trial: Trial) -> None:
    assert_nothing_is_lost(trial, [_flip] * 30 + [_flip_within_structure] * 30)


@pytest.mark.slow
def test_two_hundred_changes_of_the_index_kill_no_process(trial: Trial) -> None:
    for seed in range(1, 6):
        assert_nothing_is_lost(trial, VARIED * 20, seed)


@pytest.mark.slow
def test_a_thousand_flipped_bits_in_the_index_change_no_answer(trial: Trial) -> None:
    for seed in range(1, 11):
        assert_nothing_is_lost(trial, [_flip] * 50 + [_flip_within_structure] * 50, seed)
