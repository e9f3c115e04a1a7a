"""`check` is silent about a sound directory and names each kind of damage; `reindex` heals."""

import random
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest
from store_world import TINY, World, entries, entry, new_world

from logd.store.check import CheckReport, check_store, reindex_store
from logd.store.layout import DataLayout
from logd.store.limits import StoreLimits


def check(world: World) -> CheckReport:
    """Of a world that is stopped."""
    return check_store(world.files, DataLayout(world.root), [world.project_id])


def fill(world: World) -> None:
    """Chunks, merged ones among them, and a tail of five entries."""
    for size in (20, 2, 2, 9, 3):
        world.commit([world.request(entries("a", size), f"key {size}")])
        world.project.freeze()
        world.project.merge()
    world.store_entries(entries("t", 2), entries("u", 3))


def contents(root: Path) -> dict[str, tuple[bytes, int]]:
    paths = [path for path in root.rglob("*") if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def test_a_directory_is_sound_after_normal_work() -> None:
    with new_world() as world:
        fill(world)
        world.close()
        report = check(world)
        assert report.problems == ()
        assert (report.projects, report.entries) == (1, 36)
        assert (report.wal_frames, report.wal_entries) == (2, 5)
        world.open()


def test_a_directory_is_sound_after_a_crash_at_any_step() -> None:
    with new_world() as world:
        fill(world)
        world.project.rotate()
        job = world.project.prepare_freeze()
        assert job is not None
        world.project.run_freeze(job)
        world.crash()
        assert check(world).problems == ()
        world.open()
        for _ in range(2):
            world.store_entries(entries("v", 1))
            world.project.freeze()
        merge = world.project.prepare_merge()
        assert merge is not None
        world.project.install(world.project.run_merge(merge))
        world.crash()
        assert check(world).problems == ()
        world.open()


def test_checking_writes_nothing() -> None:
    with new_world() as world:
        fill(world)
        world.crash()
        before = contents(world.root)
        check(world)
        assert contents(world.root) == before
        world.open()


def wal_byte(world: World) -> None:
    flip(next(world.layout.wal.iterdir()), 48 + 50)


def wal_end(world: World) -> None:
    path = next(world.layout.wal.iterdir())
    path.write_bytes(path.read_bytes()[:-4])


def segment_header(world: World) -> None:
    flip(sorted(world.layout.segments.iterdir())[0], 9)


def chunk_head(world: World) -> None:
    flip(sorted(world.layout.segments.iterdir())[0], 56 + 20)


def chunk_column(world: World) -> None:
    path = sorted(world.layout.segments.iterdir())[-1]
    flip(path, path.stat().st_size - 2)


def segment_end(world: World) -> None:
    path = sorted(world.layout.segments.iterdir())[-1]
    path.write_bytes(path.read_bytes()[:-4])


def segment_missing(world: World) -> None:
    sorted(world.layout.segments.iterdir())[-1].unlink()


def index_missing(world: World) -> None:
    shutil.rmtree(world.layout.index)


def index_structure(world: World) -> None:
    path = world.layout.index / "data.mdb"
    path.write_bytes(path.read_bytes()[: 3 * 4096])


def index_row(world: World) -> None:
    change(world, b"c")


def index_vocabulary(world: World) -> None:
    change(world, b"v")


def index_postings(world: World) -> None:
    change(world, b"p")


def index_row_missing(world: World) -> None:
    with lmdb.open(str(world.layout.index)) as environment, environment.begin(write=True) as txn:
        cursor = txn.cursor()
        assert cursor.set_range(b"c")
        cursor.delete()


def something_aside(world: World) -> None:
    world.layout.damaged.mkdir()
    (world.layout.damaged / "0000000000000000.wal.0").write_bytes(b"?")


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x10
    path.write_bytes(data)


def change(world: World, kind: bytes) -> None:
    with lmdb.open(str(world.layout.index)) as environment, environment.begin(write=True) as txn:
        cursor = txn.cursor()
        assert cursor.set_range(kind)
        value = bytearray(cursor.value())
        value[-1] ^= 1
        txn.put(cursor.key(), bytes(value))


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (wal_byte, "are no frame"),
        (wal_end, "unfinished frame"),
        (segment_header, "header checksum"),
        (chunk_head, "chunk head: checksum"),
        (chunk_column, "checksum"),
        (segment_end, "ends behind the file"),
        (segment_missing, "none is there"),
        (index_missing, "is missing"),
        (index_structure, "faults in its structure"),
        (index_row, "directory row"),
        (index_vocabulary, "the vocabulary in the index differs"),
        (index_postings, "the postings in the index differ"),
        (index_row_missing, "the chunk is not in the index"),
        (something_aside, "was set aside"),
    ],
)
def test_each_kind_of_damage_is_named(damage: Callable[[World], None], word: str) -> None:
    with new_world() as world:
        fill(world)
        world.crash()
        damage(world)
        problems = check(world).problems
        assert any(word in problem for problem in problems), problems
        assert all(world.project_id in problem for problem in problems)
        world.open()


def test_checking_takes_no_more_memory_for_more_chunks() -> None:
    limits = StoreLimits(chunk_entries=256, min_free_disk_bytes=0, merge_chunks=1000)
    random_ = random.Random(1)
    messages = [random_.randbytes(256).hex(" ", 3) for _ in range(256)]
    peaks = []
    with new_world(limits) as world:
        for chunks in (1, 9):
            while len(world.project.snapshot().chunks) < chunks:
                world.store_entries([entry(message) for message in messages])
                world.project.freeze()
            world.close()
            tracemalloc.start()
            report = check(world)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert (report.problems, report.chunks) == ((), chunks)
            world.open()
        index = world.project.snapshot().index
        assert index is not None
        with index.reader() as reader:
            values = [reader.postings(chunk.first_seq) for chunk in world.project.snapshot().chunks]
            sizes = [len(value) for value in values if value is not None]
    assert peaks[1] - peaks[0] < sum(sizes[1:]) / 4


def test_reindexing_gives_the_same_answers() -> None:
    with new_world() as world:
        fill(world)
        before = world.entries()
        world.crash()
        index_vocabulary(world)
        index_postings(world)
        reindexed = reindex_store(
            world.files, DataLayout(world.root), [world.project_id], TINY, world.clock
        )
        report = check(world)
        assert report.problems == ()
        assert report.chunks == reindexed
        assert world.open().damage == ()
        assert world.entries() == before


def test_an_empty_project_is_sound_and_reindexes() -> None:
    with new_world() as world:
        world.close()
        assert check(world).problems == ()
        layout = DataLayout(world.root)
        assert reindex_store(world.files, layout, [world.project_id], TINY, world.clock) == 0
        assert check(world).problems == ()
        world.open()
        assert world.seqs() == []
