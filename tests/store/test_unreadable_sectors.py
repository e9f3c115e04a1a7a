"""A disk that cannot read at one place: what lies there is missing, and all else is served."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_world import World, ask, entry, new_world

from logd.errors import Corruption
from logd.format.part_table import Part
from logd.store.files import OsFile
from logd.store.limits import StoreLimits
from logd.store.search import entry_at

CHUNKS = 3
OF_A_CHUNK = 64
LIMITS = StoreLimits(chunk_entries=64, block_entries=32, min_free_disk_bytes=0, merge_chunks=2)
SEARCHES = [
    "",
    "id3",
    "chunk",
    "i*",
    '"chunk 1 id3"',
    '"größe 7"',
    "größe",
    "meta.n:3",
    "source:t*",
]


class Sector:
    """A place of a file that reads fail at, while it is bad."""

    def __init__(self, path: Path, offset: int, size: int) -> None:
        self._path = path
        self._offset = offset
        self._end = offset + size
        self.failures = 0

    @contextlib.contextmanager
    def bad(self) -> Iterator[None]:
        read = OsFile.read

        def reading(file: OsFile, offset: int, size: int) -> bytes:
            if file.path == self._path and offset < self._end and self._offset < offset + size:
                self.failures += 1
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(file.path))
            return read(file, offset, size)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(OsFile, "read", reading)
            yield


@pytest.fixture
def world() -> Iterator[World]:
    with new_world(LIMITS) as opened:
        for chunk in range(CHUNKS):
            new = [
                entry(
                    f"chunk {chunk} id{n} größe {n % 9} {'x' * (n % 3)}",
                    (chunk * 40 + n * 7) % 500,
                    n % 4,
                    tags=("t",),
                    meta=b'{"n":%d,"k":"v%d"}' % (n % 5, n),
                )
                for n in range(OF_A_CHUNK)
            ]
            opened.commit([opened.request(new, f"key {chunk}")])
            opened.project.freeze()
        assert len(opened.project.snapshot().chunks) == CHUNKS
        yield opened


def sectors(world: World) -> dict[str, Sector]:
    """Each part of the second chunk, and its head."""
    chunk = world.project.snapshot().chunks[1]
    (path,) = world.layout.segments.iterdir()
    found = {"HEAD": Sector(path, chunk.row.offset, 16)}
    for (kind, block), ref in chunk.head().parts.items():
        name = f"{Part(kind).name} {block}"
        found[name] = Sector(path, chunk.row.offset + ref.offset, ref.stored_bytes)
    return found


def test_a_search_goes_on_without_the_chunk_and_says_so(world: World) -> None:
    """Wherever the sector is. What failed is not remembered."""
    expected = {text: ask(world.project.snapshot(), text) for text in SEARCHES}
    for name in sectors(world):
        world.reopen()  # nothing is cached
        sector = sectors(world)[name]
        world.reopen()
        with sector.bad():
            for text in SEARCHES:
                failures = sector.failures
                for _ in range(2):
                    found = ask(world.project.snapshot(), text)
                    rows = set(found.entries)
                    whole = set(expected[text].entries)
                    others = {row for row in whole if row.seq // OF_A_CHUNK != 1}
                    assert others <= rows <= whole, (name, text)
                    assert found.damage or rows == whole, (name, text)
                    assert bool(found.damage) == (sector.failures > failures), (name, text)
                    for damage in found.damage:
                        assert "cannot be read: Input/output error" in str(damage)
        for text in SEARCHES:
            assert ask(world.project.snapshot(), text) == expected[text], (name, text)


def test_an_entry_there_is_told_to_be_damaged(world: World) -> None:
    seq = world.project.snapshot().chunks[1].first_seq
    sector = sectors(world)["TEMPLATES 0"]
    world.reopen()
    with sector.bad(), pytest.raises(Corruption):
        entry_at(world.project.snapshot(), seq)
    assert entry_at(world.project.snapshot(), seq) is not None


def test_a_project_opens_where_the_records_of_keys_cannot_be_read(world: World) -> None:
    sector = sectors(world)["IDEMPOTENCY 0"]
    with sector.bad():
        project = world.reopen()
        assert [str(error).partition(": ")[2] for error in project.damage] == [
            "cannot be read: Input/output error"
        ]
        assert ask(project.snapshot()).total == CHUNKS * OF_A_CHUNK
    assert not world.reopen().damage


def test_chunks_are_merged_without_the_one_that_cannot_be_read() -> None:
    with new_world() as world:
        for number in range(3):
            world.store_entries([entry(f"id{number}x{n}") for n in range(2)])
            world.project.freeze()
        row = world.project.snapshot().chunks[0].row
        path = world.layout.segment_file(row.segment_seq, row.segment_number)
        with Sector(path, row.offset, 16).bad():
            world.reopen()
            with pytest.raises(Corruption):
                world.project.merge()
            assert world.project.merge()
            assert not world.project.merge()
            assert len(ask(world.project.snapshot()).entries) == 4
        assert [chunk.count for chunk in world.project.snapshot().chunks] == [2, 4]
        assert len(world.entries()) == 6


def test_a_file_whose_header_cannot_be_read_gets_no_more_chunks(world: World) -> None:
    (path,) = world.layout.segments.iterdir()
    with Sector(path, 0, 16).bad():
        world.reopen()
        world.store_entries([entry("late", 1000)] * OF_A_CHUNK)
        world.project.freeze()
        assert len(world.entries()) == (CHUNKS + 1) * OF_A_CHUNK
    assert len(list(world.layout.segments.iterdir())) == 2


def test_nothing_is_set_aside_where_a_chunk_cannot_be_read_to_be_indexed(world: World) -> None:
    """An index that is lost is built anew when the disk gives the chunks."""
    sector = sectors(world)["TEMPLATES 0"]
    expected = ask(world.project.snapshot())
    world.close()
    shutil.rmtree(world.layout.index)
    with sector.bad(), pytest.raises(OSError, match="Input/output error"):
        world.open()
    project = world.open()
    assert (project.damage, ask(project.snapshot())) == ((), expected)
