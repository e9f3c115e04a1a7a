"""What a newer program wrote is refused, with a clear message, and not a byte of it changes; what
an older one wrote is not mixed with what is new."""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest
from store_world import World, entries, new_world

from logd.errors import UnsupportedFormat
from logd.format import segment
from logd.store.check import check_store
from logd.store.layout import DataLayout


def with_version(data: bytes, header_bytes: int, version: int) -> bytes:
    """A header as a newer program would write it: its checksum holds."""
    fixed = data[:8] + struct.pack("<H", version) + data[10 : header_bytes - 4]
    return fixed + struct.pack("<I", zlib.crc32(fixed)) + data[header_bytes:]


def newer_directory(world: World) -> None:
    (world.root / "FORMAT").write_text("logd data directory, format 2\n")


def strange_directory(world: World) -> None:
    (world.root / "FORMAT").write_text("something else\n")


def newer_wal(world: World) -> None:
    path = sorted(world.layout.wal.iterdir())[-1]
    path.write_bytes(with_version(path.read_bytes(), 48, 3))


def newer_segment(world: World) -> None:
    path = sorted(world.layout.segments.iterdir())[0]
    path.write_bytes(with_version(path.read_bytes(), 56, segment.VERSION + 1))


def newer_index(world: World) -> None:
    fixed = struct.pack("<IQ", 2, 20)
    value = fixed + struct.pack("<I", zlib.crc32(fixed))
    with lmdb.open(str(world.layout.index)) as environment, environment.begin(write=True) as txn:
        txn.put(b"m", value)


def test_a_segment_of_an_older_version_gets_no_chunks_of_this_one() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 20))
        world.project.freeze()
        world.close()
        (old,) = world.layout.segments.iterdir()
        written = with_version(old.read_bytes(), 56, 0)
        old.write_bytes(written)
        world.open()
        world.store_entries(entries("b", 20))
        world.project.freeze()
        assert old.read_bytes() == written
        assert len(list(world.layout.segments.iterdir())) == 2
        assert world.seqs() == list(range(40))


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("make_newer", "word"),
    [
        (newer_directory, "format 2"),
        (strange_directory, "something else"),
        (newer_wal, "WAL format 3"),
        (newer_segment, f"segment format {segment.VERSION + 1}"),
        (newer_index, "index format 2"),
    ],
)
def test_a_newer_format_is_refused_and_nothing_is_written(
    make_newer: Callable[[World], None], word: str
) -> None:
    with new_world() as world:
        world.store_entries(entries("a", 20))
        world.project.freeze()
        world.store_entries(entries("b", 3))
        world.project.rotate()
        world.store_entries(entries("c", 3))
        world.crash()
        (world.layout.wal / "0000000000000000.wal.new").write_bytes(b"left over")
        make_newer(world)
        before = contents(world.root)
        for _ in range(2):
            with pytest.raises(UnsupportedFormat, match=word):
                world.open()
        assert contents(world.root) == before


@pytest.mark.parametrize("make_newer", [newer_wal, newer_segment, newer_index])
def test_checking_a_newer_format_refuses_it_too(make_newer: Callable[[World], None]) -> None:
    with new_world() as world:
        world.store_entries(entries("a", 20))
        world.project.freeze()
        world.store_entries(entries("b", 3))
        world.crash()
        make_newer(world)
        before = contents(world.root)
        with pytest.raises(UnsupportedFormat):
            check_store(world.files, DataLayout(world.root), [world.project_id])
        assert contents(world.root) == before


def test_the_files_of_another_project_open_beside_one_that_is_too_new() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 3))
        world.crash()
        newer_wal(world)
        with pytest.raises(UnsupportedFormat):
            world.open()
        world.project_id = type(world.project_id)("11111111-2222-4333-8444-555555555555")
        world.open()
        world.store_entries(entries("b", 2))
        assert world.seqs() == [0, 1]
