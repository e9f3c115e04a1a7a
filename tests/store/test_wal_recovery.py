"""What becomes of the WAL of a process that died."""

import errno
from pathlib import Path

import pytest
from store_world import OTHER, World, ask, body_of, entries, entry, new_world

from logd.entry import Seq
from logd.format import wal as codec
from logd.format.wal_columns import encode_columns
from logd.store.replay import Replay
from logd.store.wal import WalContent


def only_wal(world: World) -> Path:
    (path,) = world.layout.wal.iterdir()
    return path


def died_with(world: World, names: str) -> Path:
    """The WAL of a process that had stored two entries of each name, a frame each."""
    for name in names:
        world.store_entries(entries(name, 2))
    world.crash()
    return only_wal(world)


def frame_starts(data: bytes) -> list[int]:
    return [offset for offset, _ in codec.decode_frames(data, codec.HEADER_BYTES)]


def damage(path: Path, offset: int, size: int = 1) -> None:
    data = bytearray(path.read_bytes())
    for position in range(offset, offset + size):
        data[position] ^= 0x55
    path.write_bytes(data)


def set_aside(world: World) -> list[str]:
    found = world.layout.damaged
    return sorted(path.name for path in found.iterdir()) if found.is_dir() else []


def test_every_acknowledged_entry_is_there_after_a_crash() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 3), [entry("b")])
        world.store_entries(entries("c", 20))
        world.crash()
        project = world.open()
        assert world.messages() == [f"a {n}" for n in range(3)] + ["b"] + [
            f"c {n}" for n in range(20)
        ]
        assert project.damage == ()
        assert set_aside(world) == []


def test_a_wal_torn_at_any_byte_keeps_the_whole_frames_before() -> None:
    with new_world() as world:
        path = died_with(world, "abcd")
        whole = path.read_bytes()
        starts = [*frame_starts(whole), len(whole)]
        for size in range(starts[1], len(whole)):
            path.write_bytes(whole[:size])
            project = world.open()
            frames = sum(start <= size for start in starts) - 1
            assert world.seqs() == list(range(2 * frames))
            assert project.damage == ()
            world.close()
            for left in world.layout.wal.iterdir():
                left.unlink()


@pytest.mark.parametrize("filler", [b"\0" * 700, b"\xfeWF\xff" * 50, b"{}" * 300])
def test_what_follows_the_last_frame_is_cut_off(filler: bytes) -> None:
    with new_world() as world:
        world.store_entries(entries("a", 2))
        world.crash()
        path = only_wal(world)
        path.write_bytes(path.read_bytes() + filler)
        assert world.open().damage == ()
        assert world.seqs() == [0, 1]


def test_a_torn_end_is_kept_aside_unless_it_is_zeros() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 2))
        world.crash()
        path = only_wal(world)
        data = path.read_bytes()
        path.write_bytes(data + b"\0" * 5000)
        world.open()
        assert set_aside(world) == []
        world.crash()
        path.write_bytes(data + b"half a frame")
        world.open()
        assert set_aside(world) == [f"{path.name}.0"]
        assert (world.layout.damaged / f"{path.name}.0").read_bytes() == b"half a frame"


def test_a_wal_file_without_a_whole_header_holds_nothing() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 2))
        world.project.freeze()
        world.crash()
        path = world.layout.wal_file(Seq(2))
        header = codec.encode_header(world.project_id, Seq(2))
        for size in range(codec.HEADER_BYTES):
            path.write_bytes(header[:size])
            assert world.open().damage == ()
            assert world.seqs() == [0, 1]
            world.crash()


def test_numbers_of_a_torn_frame_are_not_given_out_again() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 2), entries("b", 9))
        world.crash()
        path = only_wal(world)
        path.write_bytes(path.read_bytes()[:-1])
        world.open()
        (seq,) = world.store_entries([entry("c")])
        assert seq >= 11
        assert world.messages() == ["a 0", "a 1", "c"]


def test_a_cursor_of_before_a_torn_frame_holds_after_the_next_restart() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 2), entries("b", 2))
        world.crash()
        path = only_wal(world)
        path.write_bytes(path.read_bytes()[:-1])
        world.open()
        pinned = world.project.snapshot().visible_seq
        world.reopen()
        assert world.project.snapshot().visible_seq == pinned


@pytest.mark.parametrize("frame", [0, 1, 2])
@pytest.mark.parametrize("within", [0, 5, 9, 20, 33, 40, 60])
def test_a_damaged_frame_in_the_middle_takes_nothing_else_with_it(frame: int, within: int) -> None:
    with new_world() as world:
        path = died_with(world, "abcd")
        before = path.read_bytes()
        damage(path, frame_starts(before)[frame] + within)
        damaged = path.read_bytes()
        project = world.open()
        kept = [seq for seq in range(8) if seq // 2 != frame]
        assert world.seqs() == kept
        assert len(project.damage) == 1
        assert set_aside(world) == [f"{path.name}.0"]
        assert (world.layout.damaged / f"{path.name}.0").read_bytes() == damaged
        assert world.store_entries([entry("e")]) == [8]
        world.project.freeze()
        assert world.seqs() == [*kept, 8]


@pytest.mark.parametrize("order", [[0, 1, 2, 1, 3], [0, 1, 3, 2], [0, 1, 1], [2, 3, 1, 0, 2]])
def test_frames_at_a_wrong_place_show_each_entry_once(order: list[int]) -> None:
    """As a disk may leave them that writes to another place than it was told."""
    with new_world() as world:
        path = died_with(world, "abcd")
        whole = path.read_bytes()
        edges = [*frame_starts(whole), len(whole)]
        frames = [whole[edges[at] : edges[at + 1]] for at in order]
        path.write_bytes(b"".join([whole[: edges[0]], *frames]))
        project = world.open()
        expected = sorted({2 * at + n for at in order for n in range(2)})
        assert world.seqs() == expected
        assert bool(project.damage) == (len(set(order)) < len(order))
        assert world.store_entries([entry("next")]) == [expected[-1] + 1]
        project.freeze()
        assert world.reopen().damage == ()
        assert world.seqs() == [*expected, expected[-1] + 1]


def test_damage_is_set_aside_once_and_the_second_opening_finds_none() -> None:
    with new_world() as world:
        path = died_with(world, "abc")
        damage(path, frame_starts(path.read_bytes())[1] + 50, 3)
        world.open()
        world.crash()
        assert world.open().damage == ()
        assert world.seqs() == [0, 1, 4, 5]
        assert set_aside(world) == [f"{path.name}.0"]


def test_a_wal_file_with_a_damaged_header_still_gives_its_frames() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 5))
        world.crash()
        damage(only_wal(world), 3)
        project = world.open()
        assert world.seqs() == [0, 1, 2, 3, 4]
        assert len(project.damage) == 1


def test_the_wal_file_of_another_project_is_set_aside() -> None:
    with new_world() as world, new_world() as stranger:
        world.store_entries(entries("a", 2))
        stranger.project_id = OTHER
        stranger.project = stranger.store.project(OTHER)
        stranger.store_entries(entries("b", 40))
        world.crash()
        stranger.crash()
        foreign = only_wal(stranger).read_bytes()
        world.layout.wal_file(Seq(2)).write_bytes(foreign)
        project = world.open()
        assert world.seqs() == [0, 1]
        assert len(project.damage) == 1
        (copy,) = world.layout.damaged.iterdir()
        assert copy.read_bytes() == foreign
        stranger.open()


def test_a_frame_that_no_longer_decodes_is_set_aside_and_reported() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 2))
        world.crash()
        path = only_wal(world)
        one, last = (
            encode_columns(world.request([entry(message)]).batch) for message in ("one", "last")
        )
        bad = codec.Frame(Seq(2), 1, world.now_ns, codec.Form.COLUMNS, one[:-1])
        short = codec.Frame(Seq(3), 2, world.now_ns, codec.Form.COLUMNS, one)
        good = codec.Frame(Seq(5), 1, world.now_ns, codec.Form.COLUMNS, last)
        frames = [buffer for frame in (bad, short, good) for buffer in codec.encode_frame(frame)]
        path.write_bytes(path.read_bytes() + b"".join(frames))
        project = world.open()
        assert world.messages() == ["a 0", "a 1", "last"]
        assert len(project.damage) == 2
        assert set_aside(world) == [f"{path.name}.0"]
        assert world.reopen().damage == ()
        assert world.seqs() == [0, 1, 5]


def test_requests_as_they_were_sent_are_read() -> None:
    """What the first version of the format held."""
    with new_world() as world:
        world.store_entries(entries("a", 2))
        world.crash()
        path = only_wal(world)
        sent = [
            (codec.Form.JSON, body_of([entry("b"), entry("c")], world.project_id)),
            (codec.Form.NDJSON, body_of([entry("d"), entry("e")], world.project_id, ndjson=True)),
            (codec.Form.JSON, b'{"no":"entry"}'),
            (codec.Form.JSON, body_of([entry("f")], world.project_id)),
        ]
        buffers = []
        for index, (form, body) in enumerate(sent):
            frame = codec.Frame(Seq(2 + 2 * index), 2 if index < 3 else 1, world.now_ns, form, body)
            buffers += codec.encode_frame(frame)
        path.write_bytes(path.read_bytes() + b"".join(buffers))
        project = world.open()
        assert world.messages() == ["a 0", "a 1", "b", "c", "d", "e", "f"]
        assert world.seqs() == [0, 1, 2, 3, 4, 5, 8]
        assert len(project.damage) == 1
        assert world.reopen().damage == ()
        assert world.messages() == ["a 0", "a 1", "b", "c", "d", "e", "f"]


def test_a_rewrite_of_the_wal_that_was_cut_short_is_dropped() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 4))
        world.crash()
        path = only_wal(world)
        path.with_name(path.name + ".new").write_bytes(path.read_bytes()[:-9])
        world.open()
        assert world.seqs() == [0, 1, 2, 3]
        assert [p.name for p in world.layout.wal.iterdir()] == [path.name]


def test_several_wal_files_are_replayed_in_order() -> None:
    with new_world() as world:
        for name in ("a", "b", "c"):
            world.store_entries(entries(name, 3))
            world.project.rotate()
        world.crash()
        assert len(list(world.layout.wal.iterdir())) == 3
        project = world.open()
        assert project.waiting_freezes == 3
        assert world.seqs() == list(range(9))
        project.freeze()
        assert list(world.layout.wal.iterdir()) == []
        assert world.seqs() == list(range(9))


def test_a_wal_file_whose_entries_are_in_chunks_is_removed() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 5))
        world.project.rotate()
        job = world.project.prepare_freeze()
        assert job is not None
        world.project.run_freeze(job)
        world.crash()
        project = world.open()
        assert list(world.layout.wal.iterdir()) == []
        assert project.waiting_freezes == 0
        assert world.seqs() == [0, 1, 2, 3, 4]


def test_a_second_opening_changes_no_file() -> None:
    with new_world() as world:
        world.store_entries(entries("a", 9))
        world.project.freeze()
        world.store_entries(entries("b", 3))
        world.project.rotate()
        world.store_entries(entries("c", 3))
        world.crash()
        world.open()
        world.crash()
        first = contents(world)
        world.open()
        world.crash()
        assert contents(world) == first
        world.open()


def contents(world: World) -> dict[str, bytes]:
    paths = [*world.layout.wal.iterdir(), *world.layout.segments.iterdir()]
    return {path.name: path.read_bytes() for path in paths}


def test_a_snapshot_taken_before_a_freeze_still_answers_after_merges() -> None:
    with new_world() as world:
        snapshots = []
        for name in ("a", "b", "c", "d"):
            world.store_entries(entries(name, 2))
            world.project.freeze()
            snapshots.append(world.project.snapshot())
        while world.project.merge():
            pass
        for number, snapshot in enumerate(snapshots, 1):
            assert [e.seq for e in ask(snapshot).entries][::-1] != []
            assert sorted(e.seq for e in ask(snapshot).entries) == list(range(2 * number))


def test_an_opening_that_failed_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """LMDB opens no directory twice in a process: the next try would take it for damaged."""
    with new_world() as world:
        world.store_entries(entries("a", 3))
        world.project.freeze()
        world.store_entries(entries("b", 3))
        world.crash()

        def failing(_: Replay) -> list[WalContent]:
            raise OSError(errno.EIO, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(Replay, "read", failing)
            with pytest.raises(OSError, match="error") as failure:
                world.open()
        assert world.open().damage == ()
        assert failure.value.errno == errno.EIO  # who holds on to it holds on to its frames
        assert world.messages() == [f"{name} {n}" for name in "ab" for n in range(3)]
        assert set_aside(world) == []


def test_what_was_replayed_is_not_put_together_by_who_reads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The freezer reads it in its thread while the owner takes a snapshot: two that put the same
    batches together would lose or double them."""
    with new_world() as world:
        for name in "abc":
            world.store_entries(entries(name, 2))
        world.crash()
        world.open()
        assert world.project.waiting_freezes == 1

        def joining(_: object) -> None:
            raise AssertionError("batches were put together")

        with monkeypatch.context() as patch:
            patch.setattr("logd.store.tail.concatenate_batches", joining)
            assert len(world.project.snapshot().blocks) == 1
        assert world.messages() == [f"{name} {n}" for name in "abc" for n in range(2)]
