"""`check` is silent about sound control data, names each kind of damage, and writes nothing."""

import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from control_world import World, memory_directory

from logd.control import frames
from logd.control.check import ControlReport, check_control
from logd.control.mirror import Contents, MirrorReader, read_contents
from logd.control.salvage import read_in_child
from logd.errors import UnsupportedFormat
from logd.store.files import OsFiles


@pytest.fixture
def world() -> Iterator[World]:
    root = memory_directory()
    world = World(root)
    fill(world, "acme", "beta")
    yield world
    shutil.rmtree(root)


def fill(world: World, *names: str) -> None:
    """One organisation a transaction, then a clean stop."""
    with world.open() as control:
        user = control.ensure_user("root@example.org")
        for name in names:
            control.create_org(user.id, name, name)


def contents(world: World) -> dict[str, tuple[bytes, int]]:
    paths = world.directory.iterdir()
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def check(world: World, read_mirror: MirrorReader = read_contents) -> ControlReport:
    """By default the mirror is read in this process: where it is sound."""
    before = contents(world)
    report = check_control(OsFiles(), world.directory, read_mirror)
    assert contents(world) == before
    return report


@pytest.mark.parametrize("read_mirror", [read_contents, read_in_child])
def test_after_a_clean_stop_all_is_well(world: World, read_mirror: MirrorReader) -> None:
    assert check(world, read_mirror) == ControlReport((), 5)


def test_after_a_crash_all_is_well(world: World) -> None:
    control = world.open()
    control.create_org(control.ensure_user("root@example.org").id, "Gamma", "gamma")
    world.crash(control)
    assert check(world) == ControlReport((), 7)


def test_a_copy_that_is_behind_after_a_crash_is_no_problem(world: World) -> None:
    copy = world.mirror.read_bytes()
    control = world.open()
    control.create_org(control.ensure_user("root@example.org").id, "Gamma", "gamma")
    world.crash(control)
    world.mirror.write_bytes(copy)
    assert check(world) == ControlReport((), 7)


def test_where_there_is_nothing_there_is_no_problem(tmp_path: Path) -> None:
    assert check_control(OsFiles(), tmp_path / "control") == ControlReport((), 0)


def test_each_flipped_byte_of_the_journal_is_found(world: World) -> None:
    sound = world.journal.read_bytes()
    for at in range(len(sound)):
        world.journal.write_bytes(sound[:at] + bytes([sound[at] ^ 0xFF]) + sound[at + 1 :])
        assert check(world).problems, at


def test_each_lost_end_of_the_journal_is_found(world: World) -> None:
    sound = world.journal.read_bytes()
    for size in range(len(sound)):
        world.journal.write_bytes(sound[:size])
        assert check(world).problems, size


def test_an_unfinished_transaction_is_told_from_damage(world: World) -> None:
    with world.journal.open("ab") as journal:
        journal.write(frames.MARKER + b"\x05\0")
    assert check(world).problems == ("the journal ends in 6 bytes of an unfinished transaction",)


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "damage", "says"),
    [
        ("journal.log", Path.unlink, "the journal is missing"),
        ("control.mdb", Path.unlink, "the LMDB copy is missing"),
        ("control.mdb", shorten, "changed or removed after a clean stop"),
        ("control.mdb", flip, "changed or removed after a clean stop"),
        ("clean", shorten, "clean cannot be read"),
        ("clean", flip, "clean cannot be read"),
    ],
)
def test_damage_is_named(
    world: World, name: str, damage: Callable[[Path], None], says: str
) -> None:
    damage(world.directory / name)
    assert says in "\n".join(check(world, read_in_child).problems)


def test_a_copy_of_other_contents_is_named(world: World) -> None:
    found = read_contents(world.mirror)
    fewer = dict(list(found.records.items())[1:])

    def other(_path: Path) -> Contents:
        return Contents(found.sequence, fewer)

    assert check(world, other).problems == (
        f"the LMDB copy differs from the journal at transaction {found.sequence}",
    )


def test_a_record_that_cannot_be_read_is_named(world: World) -> None:
    data, _ = frames.encode_all(1, {"org/x": b"\xc1"})
    world.journal.write_bytes(data)
    (world.directory / "clean").unlink()
    world.mirror.unlink()
    found = check(world).problems
    assert found[0] == "the LMDB copy is missing"
    assert found[1].startswith("the record org/x cannot be read: ")


def test_what_was_set_aside_is_named(world: World) -> None:
    flip(world.journal)
    with world.open():
        pass
    found = check(world).problems
    assert len(found) == 1
    assert "journal.log.damaged-" in found[0]


def test_a_newer_journal_is_refused(world: World) -> None:
    data = bytearray(frames.encode_header(1))
    data[8] = frames.VERSION + 1
    data[-4:] = zlib.crc32(bytes(data[:-4])).to_bytes(4, "little")
    world.journal.write_bytes(data)
    with pytest.raises(UnsupportedFormat):
        check(world)
