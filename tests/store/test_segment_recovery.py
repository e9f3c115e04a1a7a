"""What becomes of a freeze or a merge that was cut short, and of segments whose index is lost."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from store_world import TINY, World, ask, entries, entry, new_world

from logd.format.part_table import Part
from logd.format.segment import HEADER_BYTES
from logd.store.files import OsFile
from logd.store.project import Project


def segments(world: World) -> list[Path]:
    return sorted(world.layout.segments.iterdir())


def chunks(project: Project) -> list[tuple[int, int]]:
    """(first sequence number, entries) of each."""
    return [(chunk.row.first_seq, chunk.row.count) for chunk in project.snapshot().chunks]


def set_aside(world: World) -> list[Path]:
    found = world.layout.damaged
    return sorted(found.iterdir()) if found.is_dir() else []


def lose_the_index(world: World) -> None:
    shutil.rmtree(world.layout.index)


def frozen(world: World, *sizes: int) -> None:
    """Each size is a freeze of its own."""
    for number, size in enumerate(sizes):
        world.store_entries(entries(f"f{number}", size))
        world.project.freeze()


def first_of_two_without_an_index(world: World) -> Path:
    """The segment of the chunk before the last."""
    frozen(world, 4, 5)
    world.crash()
    lose_the_index(world)
    return segments(world)[0]


def cut_short(world: World, kept_of_the_chunk: float) -> None:
    """Freeze a run, crash before the index knows, and leave so much of what the segment got."""
    index = world.root.parent / "index"
    job = world.project.prepare_freeze()
    assert job is not None
    before = {path: path.stat().st_size for path in segments(world)}
    shutil.copytree(world.layout.index, index)
    world.project.run_freeze(job)
    world.crash()
    for path in segments(world):
        start = before.get(path, 0)
        size = path.stat().st_size
        if size > start:
            with path.open("r+b") as file:
                file.truncate(start + int((size - start) * kept_of_the_chunk))
    shutil.rmtree(world.layout.index)
    index.rename(world.layout.index)


@pytest.mark.parametrize("kept", [0.0, 0.02, 0.3, 0.7, 0.99, 1.0])
@pytest.mark.parametrize("size", [3, 20])
def test_a_freeze_cut_short_is_done_anew_from_the_wal(kept: float, size: int) -> None:
    with new_world() as world:
        frozen(world, 20)
        world.store_entries(entries("b", size))
        world.project.rotate()
        sizes = {path: path.stat().st_size for path in segments(world)}
        cut_short(world, kept)
        project = world.open()
        assert project.damage == ()
        assert {path: path.stat().st_size for path in segments(world)} == sizes
        assert world.seqs() == list(range(20 + size))
        project.freeze()
        assert world.seqs() == list(range(20 + size))


@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
def test_the_first_freeze_of_a_project_may_be_cut_short(kept: float) -> None:
    with new_world() as world:
        world.store_entries(entries("a", 3))
        world.project.rotate()
        cut_short(world, kept)
        assert world.open().damage == ()
        assert world.seqs() == [0, 1, 2]
        assert set_aside(world) == []


@pytest.mark.parametrize("known", [False, True])
def test_a_merge_cut_short_leaves_each_entry_once(known: bool) -> None:
    with new_world() as world:
        frozen(world, 2, 2)
        index = world.root.parent / "index"
        shutil.copytree(world.layout.index, index)
        job = world.project.prepare_merge()
        assert job is not None
        world.project.run_merge(job)
        world.crash()
        if not known:
            shutil.rmtree(world.layout.index)
            index.rename(world.layout.index)
        project = world.open()
        assert project.damage == ()
        assert world.seqs() == [0, 1, 2, 3]
        assert chunks(project) == ([(0, 4)] if known else [(0, 2), (2, 2)])
        assert len(segments(world)) == (1 if known else 2)


def test_a_segment_file_that_nothing_names_is_removed() -> None:
    with new_world() as world:
        frozen(world, 3)
        world.crash()
        (path,) = segments(world)
        shutil.copy(path, path.with_name("0000000000000000-0009.seg"))
        path.with_name("0000000000000001-0001.seg").write_bytes(b"")
        assert world.open().damage == ()
        assert segments(world) == [path]
        assert world.seqs() == [0, 1, 2]


def test_a_lost_index_is_rebuilt_from_the_segments() -> None:
    with new_world() as world:
        frozen(world, 20, 2, 9, 3)
        world.store_entries(entries("tail", 3))
        before = world.entries()
        chunks_before = chunks(world.project)
        world.crash()
        lose_the_index(world)
        project = world.open()
        assert project.damage == ()
        assert world.entries() == before
        assert chunks(project) == chunks_before
        world.reopen()
        assert world.entries() == before


def test_a_lost_index_brings_no_merged_chunk_back() -> None:
    """Merges leave a source behind where it shares a file with chunks that stay."""
    with new_world() as world:
        frozen(world, 9, 4)
        assert chunks(world.project) == [(0, 5), (5, 4), (9, 4)]
        assert world.project.merge()
        assert chunks(world.project) == [(0, 5), (5, 8)]
        world.crash()
        lose_the_index(world)
        project = world.open()
        assert world.seqs() == list(range(13))
        assert chunks(project) == [(0, 5), (5, 8)]


def test_a_lost_index_during_the_removal_of_merged_files_loses_no_entry() -> None:
    with new_world() as world:
        frozen(world, 2, 2)
        job = world.project.prepare_merge()
        assert job is not None
        installation = world.project.run_merge(job)
        world.project.install(installation)
        world.crash()
        lose_the_index(world)
        world.layout.segment_file(*installation.emptied[1]).unlink()
        assert world.open().damage == ()
        assert world.seqs() == [0, 1, 2, 3]


def test_a_lost_index_and_a_wal_that_was_not_removed_show_each_entry_once() -> None:
    with new_world() as world:
        frozen(world, 4)
        world.store_entries(entries("b", 5))
        world.project.rotate()
        job = world.project.prepare_freeze()
        assert job is not None
        world.project.run_freeze(job)
        world.crash()
        lose_the_index(world)
        assert world.open().damage == ()
        assert world.seqs() == list(range(9))


def test_a_rebuilding_cut_short_begins_anew() -> None:
    with new_world() as world:
        frozen(world, 20, 3, 9)
        before = world.entries()
        world.crash()
        lose_the_index(world)
        hidden = world.root.parent / "hidden"
        *_, last = segments(world)
        last.rename(hidden)
        world.open()
        world.crash()
        forget_that_it_is_complete(world)
        hidden.rename(last)
        assert world.open().damage == ()
        assert world.entries() == before


def forget_that_it_is_complete(world: World) -> None:
    import lmdb

    with lmdb.open(str(world.layout.index)) as environment, environment.begin(write=True) as txn:
        assert txn.delete(b"m")


def test_a_merge_into_the_file_of_its_own_source_does_not_remove_it() -> None:
    with new_world() as world:
        frozen(world, 1)
        world.store_entries(entries("a", 1), entries("b", 4), entries("c", 3))
        world.crash()
        (wal,) = world.layout.wal.iterdir()
        data = bytearray(wal.read_bytes())
        data[data.index(b"b 2")] ^= 1
        wal.write_bytes(data)
        world.open()
        world.project.freeze()  # two small chunks with a gap between them, in one file
        assert world.project.merge()  # takes the first of them away
        assert chunks(world.project) == [(0, 2), (6, 3)]
        frozen(world, 3)
        assert world.project.merge()  # goes into the file that the second is in
        expected = [0, 1, *range(6, 12)]
        assert world.seqs() == expected
        assert world.reopen().damage == ()
        assert world.seqs() == expected


def test_a_larger_chunk_size_loses_nothing() -> None:
    with new_world() as world:
        frozen(world, 8, 8, 8)
        world.limits = msgspec.structs.replace(TINY, chunk_entries=64)
        world.reopen()
        frozen(world, 1, 1, 1, 30, 64, 2)
        while world.project.merge():
            pass
        assert world.seqs() == list(range(24 + 99))
        lose = world.layout.index
        world.crash()
        shutil.rmtree(lose)
        world.open()
        assert world.seqs() == list(range(24 + 99))


def test_a_missing_segment_file_is_reported_and_the_rest_is_served() -> None:
    with new_world() as world:
        frozen(world, 4, 5)
        world.store_entries(entries("c", 2))
        world.crash()
        segments(world)[0].unlink()
        project = world.open()
        assert world.seqs() == [4, 5, 6, 7, 8, 9, 10]
        assert len(project.damage) == 1
        assert world.store_entries([entry("next")]) == [11]


def change(path: Path, offset: int, bits: int = 1) -> None:
    """Flip bits of one byte."""
    data = bytearray(path.read_bytes())
    data[offset] ^= bits
    path.write_bytes(data)


def change_a_head(path: Path) -> None:
    change(path, HEADER_BYTES + 20)


def change_a_column(path: Path) -> None:
    change(path, -path.stat().st_size // 3)


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize("damage", [Path.unlink, change_a_head, change_a_column, shorten])
def test_numbers_of_lost_chunks_are_not_given_out_again(damage: Callable[[Path], None]) -> None:
    with new_world() as world:
        frozen(world, 4, 5)
        world.crash()
        damage(segments(world)[-1])
        if damage is not Path.unlink:  # of a missing file only the index knows
            lose_the_index(world)
        for _ in range(2):  # at the second opening nothing tells of it any more
            project = world.open()
            assert world.seqs() == [0, 1, 2, 3]
            world.close()
        world.open()
        assert project.damage == ()
        assert world.store_entries([entry("next")])[0] >= 9
        world.reopen()
        assert len(world.seqs()) == 5


def test_a_shortened_segment_file_is_reported_by_the_query_that_needs_it() -> None:
    with new_world() as world:
        frozen(world, 4, 5)
        world.crash()
        path = segments(world)[0]
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - 40)
        project = world.open()
        found = ask(project.snapshot())
        assert {e.seq for e in found.entries} == {4, 5, 6, 7, 8}
        assert found.damage
        project.freeze()
        frozen(world, 3)
        assert {e.seq for e in ask(world.project.snapshot()).entries} >= {4, 5, 6, 7, 8, 9, 10, 11}


def test_a_lost_index_keeps_a_damaged_chunk_aside() -> None:
    with new_world() as world:
        path = first_of_two_without_an_index(world)
        change(path, 80)  # within the chunk's head
        data = path.read_bytes()
        project = world.open()
        assert world.seqs() == [4, 5, 6, 7, 8]
        assert project.damage
        (copy,) = set_aside(world)
        assert copy.read_bytes() == data
        assert world.reopen().damage == ()


def test_a_damaged_size_of_a_chunks_head_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may say gigabytes, and memory is taken before the file tells that it has less."""
    sizes = []
    read = OsFile.read

    def reading(file: OsFile, offset: int, size: int) -> bytes:
        sizes.append(size)
        return read(file, offset, size)

    with new_world() as world:
        path = first_of_two_without_an_index(world)
        change(path, HEADER_BYTES + 11, 0x80)  # the highest byte
        monkeypatch.setattr(OsFile, "read", reading)
        assert world.open().damage
        assert world.seqs() == [4, 5, 6, 7, 8]
        assert max(sizes) <= 1 << 20


def test_a_lost_index_keeps_a_damaged_end_of_a_segment_aside() -> None:
    with new_world() as world:
        frozen(world, 20, 20)
        world.crash()
        lose_the_index(world)
        (path,) = segments(world)
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]) + b"more")
        project = world.open()
        assert project.damage
        found = ask(project.snapshot())
        assert {e.seq for e in found.entries} >= set(range(34))
        assert found.damage
        assert set_aside(world)[0].read_bytes().endswith(b"more")
        assert world.reopen().damage == ()


def test_a_damaged_segment_header_stops_neither_reading_nor_freezing() -> None:
    with new_world() as world:
        frozen(world, 20)
        world.crash()
        (path,) = segments(world)
        change(path, 5)
        world.open()
        frozen(world, 20)
        assert world.seqs() == list(range(40))


def test_damaged_idempotency_records_do_not_keep_a_project_closed() -> None:
    with new_world() as world:
        world.commit([world.request(entries("a", 3), "key")])
        world.project.freeze()
        chunk = world.project.snapshot().chunks[0]
        at = chunk.row.offset + chunk.head().parts[Part.IDEMPOTENCY, 0].offset
        world.crash()
        (path,) = segments(world)
        change(path, at)
        assert world.open().damage
        assert [e.seq for e in ask(world.project.snapshot()).entries] == [2, 1, 0]


def test_segments_are_rolled_by_size_and_by_age() -> None:
    with new_world() as world:
        frozen(world, 20)
        assert len(segments(world)) == 1
        world.now_ns += 3_601 * 1_000_000_000
        frozen(world, 20)
        assert len(segments(world)) == 2
        for _ in range(12):
            frozen(world, 20)
        assert len(segments(world)) > 3
        assert world.seqs() == list(range(20 * 14))


@pytest.mark.parametrize("merged", [False, True])
def test_an_older_state_of_the_index_loses_no_entry(merged: bool) -> None:
    with new_world() as world:
        frozen(world, 20, 2, 2)
        world.reopen()
        older = world.root.parent / "older"
        shutil.copytree(world.layout.index, older)
        if merged:
            assert world.project.merge()
        frozen(world, 9)
        world.crash()
        shutil.rmtree(world.layout.index)
        older.rename(world.layout.index)
        world.open()
        assert world.seqs() == list(range(33))
        assert world.reopen().damage == ()
        assert world.seqs() == list(range(33))
