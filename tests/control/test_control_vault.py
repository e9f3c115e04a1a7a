"""Damage, crashes and full disks: what of the control data survives."""

import contextlib
import errno
import itertools
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest
from control_world import (
    DyingFiles,
    FailingFiles,
    Killed,
    Office,
    PowerLossFiles,
    World,
    memory_directory,
)

from logd.control import frames, vault
from logd.control.errors import NotFound
from logd.control.frames import Scan
from logd.control.mirror import read_contents
from logd.control.salvage import read_in_child
from logd.control.store import Control
from logd.errors import Corruption, StorageFailed, StorageFull, UnsupportedFormat


@pytest.fixture
def root() -> Iterator[Path]:
    directory = memory_directory()
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def world(root: Path) -> World:
    return World(root)


def slugs(control: Control) -> list[str]:
    user = control.user_by_email("root@example.org")
    return [] if user is None else sorted(org.slug for org, _ in control.orgs_of(user.id))


def fill(world: World, *names: str) -> None:
    """One organisation a transaction, then a clean stop."""
    with world.open() as control:
        user = control.ensure_user("root@example.org")
        for name in names:
            control.create_org(user.id, name, name)


def scan(world: World) -> Scan:
    return frames.scan(world.journal.read_bytes())


def last_bytes(ends: list[int]) -> list[int]:
    """Where a journal with these frames is cut: at every byte of the last frame, and at every
    11th of those before it. (`test_control_frames` cuts and flips at every byte of all.)"""
    return [*range(ends[0], ends[-2], 11), *range(ends[-2], ends[-1])]


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x20
    path.write_bytes(data)


def test_everything_is_there_after_a_clean_stop(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        key, secret = office.key(control)
        before = control.authenticate(secret)
    with world.open() as control:
        assert control.damage == ()
        assert control.authenticate(secret) == before
        assert control.project(office.member.id, office.project.id) == office.project
        assert control.key(office.admin.id, office.project.id, key.id).name == "shipper"


def test_everything_is_there_after_a_crash(world: World) -> None:
    control = world.open()
    office = Office(control)
    _, secret = office.key(control)
    before = control.authenticate(secret)
    world.crash(control)
    with world.open(read_mirror=read_in_child) as control:
        assert control.damage == ()
        assert control.authenticate(secret) == before
        assert world.files_set_aside() == []


def test_a_clean_stop_spares_the_next_start_the_reading_of_the_copy(world: World) -> None:
    fill(world, "one")

    def unexpected(path: Path) -> None:
        raise AssertionError(path)

    with world.open(read_mirror=unexpected) as control:  # type: ignore[arg-type]
        assert slugs(control) == ["one"]


def test_an_empty_directory_is_an_empty_server(world: World) -> None:
    for _ in range(3):
        with world.open() as control:
            assert control.damage == ()
            assert control.user_by_email("root@example.org") is None


def test_no_secret_and_no_password_is_in_any_file(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        _, key_secret = office.key(control)
        _, token_secret = control.issue_token(office.root.id, "cli")
        control.set_password(office.root.id, office.root.id, "correct horse battery")
    stored = b"".join(path.read_bytes() for path in world.directory.iterdir())
    for secret in (key_secret, token_secret, "correct horse battery"):
        assert secret.encode() not in stored
    assert key_secret[:12].encode() in stored


# ---- the journal is damaged


def test_at_every_truncation_the_copy_restores_what_the_journal_lost(world: World) -> None:
    fill(world, "one", "two", "three")
    whole, ends = world.journal.read_bytes(), [frame.end for frame in scan(world).frames]
    pristine = world.root / "pristine"
    shutil.copytree(world.directory, pristine)
    for size in last_bytes(ends):
        shutil.rmtree(world.directory)
        shutil.copytree(pristine, world.directory)
        world.journal.write_bytes(whole[:size])
        with world.open() as control:
            assert slugs(control) == ["one", "three", "two"]
            assert len(control.damage) == 1
            assert "restored from the LMDB copy" in control.damage[0]
            assert world.files_set_aside() == ["journal.log"]
        assert scan(world).whole


def test_at_every_truncation_without_a_copy_the_complete_transactions_remain(world: World) -> None:
    fill(world, "one", "two", "three")
    whole, ends = world.journal.read_bytes(), [frame.end for frame in scan(world).frames]
    for size in last_bytes(ends):
        shutil.rmtree(world.directory)
        world.directory.mkdir()
        world.journal.write_bytes(whole[:size])
        with world.open() as control:
            complete = sum(end <= size for end in ends[1:])
            assert slugs(control) == sorted(["one", "two", "three"][:complete])
            assert control.damage == ()  # cut short: never acknowledged
        assert scan(world).whole


def test_a_torn_append_that_the_copy_knows_nothing_of_is_dropped_in_silence(world: World) -> None:
    control = world.open()
    user = control.ensure_user("root@example.org")
    control.create_org(user.id, "one", "one")
    world.crash(control)
    last = scan(world).last_sequence
    torn = frames.encode_frame(last + 1, {"org/never": b"acknowledged"})
    world.journal.write_bytes(world.journal.read_bytes() + torn[:-1] + b"\0")
    with world.open() as control:
        assert slugs(control) == ["one"]
        assert control.damage == ()
        assert world.files_set_aside() == []


def test_a_flip_in_any_frame_is_reported_and_mended_from_the_copy(world: World) -> None:
    fill(world, "one", "two", "three")
    whole, pristine = world.journal.read_bytes(), world.root / "pristine"
    shutil.copytree(world.directory, pristine)
    for position in range(0, len(whole), 7):
        shutil.rmtree(world.directory)
        shutil.copytree(pristine, world.directory)
        flip(world.journal, position)
        with world.open() as control:
            assert slugs(control) == ["one", "three", "two"]
            assert control.damage != ()
            assert not any("lost" in sentence for sentence in control.damage)
        assert world.files_set_aside() == ["journal.log"]
        with world.open() as control:
            assert slugs(control) == ["one", "three", "two"]
            assert control.damage == ()


def test_without_a_copy_what_follows_a_damaged_frame_is_kept_and_the_loss_reported(
    world: World,
) -> None:
    fill(world, "one", "two", "three")
    lost_frame = scan(world).frames[2]
    flip(world.journal, lost_frame.end - 1)
    world.mirror.unlink()
    with world.open() as control:
        assert slugs(control) == ["one", "three"]
        assert any(f"transaction {lost_frame.sequence}: lost" in s for s in control.damage)
        assert world.files_set_aside() == ["journal.log"]
        control.create_org(control.ensure_user("root@example.org").id, "two", "two")
    with world.open() as control:
        assert slugs(control) == ["one", "three", "two"]
        assert control.damage == ()


def test_without_a_copy_a_damaged_last_frame_is_set_aside(world: World) -> None:
    fill(world, "one", "two")
    flip(world.journal, world.journal.stat().st_size - 1)
    world.mirror.unlink()
    with world.open() as control:
        assert slugs(control) == ["one"]
        assert any("is set aside: a frame fails its checksum" in s for s in control.damage)
        assert world.files_set_aside() == ["journal.log"]


def test_a_missing_journal_is_written_anew_from_the_copy(world: World) -> None:
    fill(world, "one", "two")
    world.journal.unlink()
    with world.open() as control:
        assert slugs(control) == ["one", "two"]
        assert any("the journal is missing" in sentence for sentence in control.damage)
    world.mirror.unlink()
    with world.open() as control:
        assert slugs(control) == ["one", "two"]


def test_a_newer_journal_is_refused_and_nothing_is_written(world: World) -> None:
    fill(world, "one")
    checked = b"logdctrl" + (2).to_bytes(4, "little") + (1).to_bytes(8, "little")
    header = checked + zlib.crc32(checked).to_bytes(4, "little")
    world.journal.write_bytes(header + world.journal.read_bytes()[24:])
    before = {path.name: path.read_bytes() for path in world.directory.iterdir()}
    with pytest.raises(UnsupportedFormat):
        world.open()
    assert {path.name: path.read_bytes() for path in world.directory.iterdir()} == before


# ---- the LMDB copy is damaged


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:9000])


def zero_pages(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:8192] + bytes(len(data) - 8192))


def replace_by_text(path: Path) -> None:
    path.write_text("not a database")


def flip_a_value(path: Path) -> None:
    flip(path, path.read_bytes().index(b"one"))


@pytest.mark.parametrize("damage", [cut, zero_pages, replace_by_text, flip_a_value])
@pytest.mark.parametrize("clean_stop", [True, False])
def test_a_damaged_copy_is_set_aside_and_built_anew(
    world: World, damage: Callable[[Path], None], clean_stop: bool
) -> None:
    fill(world, "one", "two")
    if not clean_stop:
        (world.directory / "clean").unlink()
    damage(world.mirror)
    with world.open(read_mirror=read_in_child) as control:
        assert slugs(control) == ["one", "two"]
        assert any("the LMDB copy is built anew" in sentence for sentence in control.damage)
        assert world.files_set_aside() == ["control.mdb"]
    with world.open() as control:
        assert control.damage == ()
    assert read_contents(world.mirror).sequence == scan(world).last_sequence


@pytest.mark.parametrize("clean_stop", [True, False])
def test_a_deleted_copy_is_built_anew(world: World, clean_stop: bool) -> None:
    fill(world, "one", "two")
    world.mirror.unlink()
    if not clean_stop:
        (world.directory / "clean").unlink()
    with world.open() as control:
        assert slugs(control) == ["one", "two"]
        assert bool(control.damage) == clean_stop
    assert read_contents(world.mirror).sequence == scan(world).last_sequence


def test_the_copy_says_what_the_journal_says(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        control.delete_project(office.admin.id, office.other.id)
    expected: dict[str, bytes] = {}
    for frame in scan(world).frames:
        for key, value in frame.changes.items():
            if value is None:
                del expected[key]
            else:
                expected[key] = value
    assert read_contents(world.mirror).records == expected


def test_a_sound_copy_can_be_read_in_a_child_process(world: World) -> None:
    fill(world, "one")
    assert read_in_child(world.mirror) == read_contents(world.mirror)


def test_a_child_that_dies_of_a_damaged_copy_is_a_corruption(world: World) -> None:
    fill(world, "one")
    cut(world.mirror)
    with pytest.raises(Corruption):
        read_in_child(world.mirror)


def test_a_copy_that_outgrows_its_map_grows_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logd.control.mirror._INITIAL_MAP_BYTES", 65_536)
    names = [f"org-{n}" for n in range(300)]
    fill(world, *names)
    assert world.mirror.stat().st_size > 65_536
    assert read_contents(world.mirror).sequence == 301


def test_a_copy_that_lacks_a_record_is_a_corruption(world: World) -> None:
    fill(world, "one")
    env = lmdb.open(str(world.mirror), subdir=False, lock=False)
    with env, env.begin(write=True) as transaction:
        key = next(key for key, _ in transaction.cursor() if key.startswith(b"org/"))
        transaction.delete(key)
    with pytest.raises(Corruption, match="3 were written"):
        read_contents(world.mirror)


def test_left_over_unfinished_files_mean_nothing(world: World) -> None:
    fill(world, "one")
    for name in ("journal.log.new", "control.mdb.new", "clean.new"):
        (world.directory / name).write_bytes(b"left over")
    (world.directory / "clean").unlink()
    world.journal.write_bytes(world.journal.read_bytes() + b"torn")
    with world.open() as control:
        assert slugs(control) == ["one"]
        assert control.damage == ()
    assert sorted(path.name for path in world.directory.iterdir()) == [
        "clean",
        "control.mdb",
        "journal.log",
    ]


def test_records_that_refer_to_lost_ones_are_skipped(world: World) -> None:
    """The organisation is lost, its member and project are not."""
    with world.open() as control:
        office = Office(control)
        _, secret = office.key(control)
    frame = next(f for f in scan(world).frames if f"org/{office.org.id}" in f.changes)
    flip(world.journal, frame.end - 1)
    world.mirror.unlink()
    with world.open() as control:
        assert any("lost" in sentence for sentence in control.damage)
        assert control.orgs_of(office.member.id) == ()
        assert control.project(office.member.id, office.project.id) == office.project
        assert control.authenticate(secret) is not None
        with pytest.raises(NotFound):
            control.projects_of(office.member.id, office.org.id)


# ---- the journal is rewritten


def test_a_large_journal_is_rewritten_and_nothing_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault, "REWRITE_BYTES", 4096)
    sizes = []
    with world.open() as control:
        user = control.ensure_user("root@example.org")
        org = control.create_org(user.id, "name", "slug")
        for n in range(100):
            control.update_org(user.id, org.id, name=f"name {n}")
            sizes.append(world.journal.stat().st_size)
            snapshot = world.root / "snapshot"
            shutil.copy(world.mirror, snapshot)
            assert read_contents(snapshot).sequence == scan(world).last_sequence
    assert max(sizes) < 4096 + 500
    assert sizes != sorted(sizes)
    assert scan(world).whole
    assert scan(world).last_sequence > 100
    with world.open() as control:
        assert control.damage == ()
        assert control.org(user.id, org.id).name == "name 99"


# ---- operations of the file layer fail


@pytest.mark.parametrize("operation", ["append", "sync"])
@pytest.mark.parametrize(
    ("number", "expected"), [(errno.ENOSPC, StorageFull), (errno.EIO, StorageFailed)]
)
def test_a_failed_write_changes_nothing_and_the_next_one_mends_the_journal(
    world: World, operation: str, number: int, expected: type[Exception]
) -> None:
    files = FailingFiles()
    with world.open(files) as control:
        user = control.ensure_user("root@example.org")
        files.failing[operation] = OSError(number, "injected")
        for _ in range(3):
            with pytest.raises(expected):
                control.create_org(user.id, "one", "one")
            assert slugs(control) == []
        files.failing.clear()
        control.create_org(user.id, "two", "two")
        assert slugs(control) == ["two"]
    assert scan(world).whole
    with world.open() as control:
        assert slugs(control) == ["two"]
        assert control.damage == ()


def test_a_full_disk_does_not_keep_a_torn_journal_from_being_served(world: World) -> None:
    fill(world, "one")
    world.journal.write_bytes(world.journal.read_bytes() + b"\xff\xfeLC")
    files = FailingFiles()
    files.failing["create"] = OSError(errno.ENOSPC, "injected")
    with world.open(files) as control:
        user = control.ensure_user("root@example.org")
        assert slugs(control) == ["one"]
        with pytest.raises(StorageFull):
            control.create_org(user.id, "two", "two")
        files.failing.clear()
        control.create_org(user.id, "two", "two")
    with world.open() as control:
        assert slugs(control) == ["one", "two"]
        assert control.damage == ()


def test_a_rewriting_that_finds_no_space_leaves_the_old_journal_in_use(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault, "REWRITE_BYTES", 2048)
    files = FailingFiles()
    with world.open(files) as control:
        user = control.ensure_user("root@example.org")
        org = control.create_org(user.id, "name", "slug")
        files.failing["create"] = OSError(errno.ENOSPC, "injected")
        for n in range(50):
            control.update_org(user.id, org.id, name=f"name {n}")
        assert world.journal.stat().st_size > 4096
        files.failing.clear()
        for n in range(50, 100):
            control.update_org(user.id, org.id, name=f"name {n}")
        assert world.journal.stat().st_size < 6144
    with world.open() as control:
        assert control.org(user.id, org.id).name == "name 99"


def test_a_stop_that_cannot_be_sealed_is_said_and_loses_nothing(world: World) -> None:
    files = FailingFiles()
    control = world.open(files)
    control.ensure_user("root@example.org")
    files.failing["create"] = OSError(errno.ENOSPC, "injected")
    assert control.close() is False
    with world.open() as control:
        assert control.user_by_email("root@example.org") is not None
        assert control.damage == ()


# ---- killed at every operation of the file layer

NAMES = [f"{n}" * 60 for n in range(12)]


def test_killed_at_every_operation_no_acknowledged_change_is_lost(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with rewritings, and with a second death at every operation of the recovery."""
    monkeypatch.setattr(vault, "REWRITE_BYTES", 1200)
    for first in range(1, 200):
        world = World(root / str(first))
        acknowledged, finished = run_until_killed(world, DyingFiles(first))
        if finished:
            break
        for second in itertools.count(1):
            again = copy_of(world, second)
            files = DyingFiles(second)
            with contextlib.suppress(Killed):
                again.open(files).close()
            check_survivors(again, acknowledged)
            if not files.died:
                break
        check_survivors(world, acknowledged)
    assert finished


@pytest.mark.parametrize("after_a_clean_stop", [True, False])
@pytest.mark.parametrize("copy_survives", [True, False])
def test_power_lost_at_every_operation_no_acknowledged_change_is_lost(
    root: Path, monkeypatch: pytest.MonkeyPatch, copy_survives: bool, after_a_clean_stop: bool
) -> None:
    """Whatever was not synced is gone: bytes, and names that a directory got or lost."""
    monkeypatch.setattr(vault, "REWRITE_BYTES", 1200)
    for operations in range(1, 200):
        world = World(root / str(operations))
        world.root.mkdir()
        if after_a_clean_stop:
            fill(world)
        files = PowerLossFiles(operations, world.root / "graveyard")
        acknowledged, finished = run_until_killed(world, files)
        if finished:
            break
        files.lose_power()
        if not copy_survives:
            world.mirror.unlink(missing_ok=True)
            (world.directory / "clean").unlink(missing_ok=True)
        check_survivors(world, acknowledged)
    assert finished


def test_a_repair_killed_at_every_operation_is_done_by_the_next_start(root: Path) -> None:
    world = World(root)
    fill(world, "one", "two", "three")
    flip(world.journal, scan(world).frames[2].end - 1)
    finished = False
    for operations in range(1, 60):
        again = copy_of(world, operations)
        try:
            again.open(DyingFiles(operations)).close()
            finished = True
        except Killed:
            finished = False
        with again.open() as control:
            assert slugs(control) == ["one", "three", "two"]
            assert not any("lost" in sentence for sentence in control.damage)
        assert "journal.log" in again.files_set_aside()
        assert scan(again).whole
        if finished:
            break
    assert finished


def run_until_killed(world: World, files: DyingFiles) -> tuple[list[str], bool]:
    """The names the organisation was acknowledged to have, oldest first."""
    acknowledged: list[str] = []
    try:
        with world.open(files) as control:
            user = control.ensure_user("root@example.org")
            org = control.create_org(user.id, "new", "slug")
            acknowledged.append(org.name)
            for name in NAMES:
                control.update_org(user.id, org.id, name=name)
                acknowledged += [name]
            assert scan(world).first_sequence != 1, "no rewriting took place"
    except Killed:
        return acknowledged, False
    return acknowledged, True


def copy_of(world: World, number: int) -> World:
    copy = World(world.root / f"again-{number}")
    if world.directory.exists():
        shutil.copytree(world.directory, copy.directory)
    return copy


def check_survivors(world: World, acknowledged: list[str]) -> None:
    """The last acknowledged name, or the one after it that was being written."""
    with world.open() as control:
        assert control.damage == ()
        user = control.user_by_email("root@example.org")
        names = [org.name for org, _ in control.orgs_of(user.id)] if user is not None else []
    written = ["new", *NAMES]
    allowed = written[max(len(acknowledged) - 1, 0) : len(acknowledged) + 1]
    assert names in ([[name] for name in allowed] + ([] if acknowledged else [[]]))
