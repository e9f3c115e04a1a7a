"""The data directory: who owns it, and what a deletion leaves."""

import subprocess
import sys
from pathlib import Path

import pytest
from store_world import OTHER, PROJECT, World, entries, new_world

from logd.errors import DirectoryLocked
from logd.store.files import OsFiles, ReadOnlyFiles
from logd.store.layout import DataLayout
from logd.store.store import lock_directory


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_a_second_owner_is_refused() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 3))
        before = names(world.root)
        with pytest.raises(DirectoryLocked, match="in use"):
            lock_directory(OsFiles(), DataLayout(world.root))
        assert names(world.root) == before
        assert world.seqs() == [0, 1, 2]


def test_a_second_process_is_refused_until_the_first_has_gone() -> None:
    script = (
        "import sys; from pathlib import Path; from logd.store.files import OsFiles\n"
        "from logd.store.layout import DataLayout; from logd.store.store import lock_directory\n"
        "lock_directory(OsFiles(), DataLayout(Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", script]
    root = Path(__file__).parents[2]
    with new_world() as world:
        arguments = [*command, str(world.root)]
        second = subprocess.run(arguments, capture_output=True, cwd=root, check=False, timeout=60)
        assert second.returncode != 0
        assert b"DirectoryLocked" in second.stderr
        world.close()
        subprocess.run(arguments, cwd=root, check=True, timeout=60)
        world.open()


def test_who_reads_a_directory_keeps_owners_out_and_is_kept_out_by_them() -> None:
    with new_world() as world:
        layout = DataLayout(world.root)
        with pytest.raises(DirectoryLocked, match="in use"):
            lock_directory(ReadOnlyFiles(), layout, read_only=True)
        world.close()
        before = names(world.root)
        reading = lock_directory(ReadOnlyFiles(), layout, read_only=True)
        for read_only in (False, True):
            with pytest.raises(DirectoryLocked, match="in use"):
                lock_directory(OsFiles(), layout, read_only=read_only)
        reading.release()
        layout.lock.unlink()
        reading = lock_directory(ReadOnlyFiles(), layout, read_only=True)
        with pytest.raises(DirectoryLocked, match="in use"):
            lock_directory(ReadOnlyFiles(), layout, read_only=True)
        reading.release()
        assert names(world.root) == [name for name in before if name != "lock"]
        world.open()


def test_a_directory_begun_and_not_finished_is_taken(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b"
    root.mkdir(parents=True)
    (root / "FORMAT.new").write_text("logd data dir")
    with World(root) as world:
        world.store_entries(entries("a", 1))
    assert (root / "FORMAT").read_text() == "logd data directory, format 1\n"
    assert not (root / "FORMAT.new").exists()


def busy(world: World) -> None:
    for project in (PROJECT, OTHER):
        world.project_id = project
        world.project = world.store.project(project)
        world.store_entries(entries("a", 20))
        world.project.freeze()
        world.store_entries(entries("b", 3))


def test_a_deleted_project_leaves_no_file() -> None:
    with new_world() as world:
        busy(world)
        snapshot = world.project.snapshot()
        world.store.delete(OTHER)
        assert [n for n in names(world.root) if OTHER in n] == []
        assert world.store.stored() == [PROJECT]
        assert snapshot.visible_seq == 23
        world.project_id = PROJECT
        world.project = world.store.project(PROJECT)
        assert world.seqs() == list(range(23))


def test_a_deleted_project_may_be_made_anew_and_is_empty() -> None:
    with new_world() as world:
        busy(world)
        world.store.delete(OTHER)
        world.project = world.store.project(OTHER)
        assert world.seqs() == []
        assert world.store_entries(entries("c", 1)) == [0]


def test_deleting_what_is_not_there_is_no_error() -> None:
    with new_world() as world:
        world.store.delete(OTHER)
        assert world.store.stored() == [PROJECT]


def test_a_deletion_cut_short_is_finished_at_the_next_start() -> None:
    with new_world() as world:
        busy(world)
        world.crash()
        layout = DataLayout(world.root)
        layout.project(OTHER).root.rename(layout.deleted(OTHER))
        (next((layout.deleted(OTHER) / "segments").iterdir())).unlink()
        world.project_id = PROJECT
        world.open()
        assert [n for n in names(world.root) if OTHER in n] == []
        assert world.seqs() == list(range(23))


def test_projects_that_nobody_knows_are_deleted() -> None:
    with new_world() as world:
        busy(world)
        assert world.store.delete_unknown([PROJECT]) == [OTHER]
        assert world.store.stored() == [PROJECT]
        assert world.store.delete_unknown([PROJECT]) == []


def test_projects_are_opened_once_and_do_not_see_each_other() -> None:
    with new_world() as world:
        busy(world)
        assert world.store.project(OTHER) is world.project
        assert world.store.opened(OTHER) is world.project
        assert {p.project for p in world.store.open_projects()} == {PROJECT, OTHER}
        world.store_entries(entries("more", 2))
        assert len(world.seqs()) == 25
        world.project = world.store.project(PROJECT)
        assert len(world.seqs()) == 23
