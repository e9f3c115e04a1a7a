"""What a request with an Idempotency-Key stored is known as long as its retry may come."""

import shutil
from collections.abc import Callable

import pytest
from store_world import PROJECT, SECOND, TINY, World, entries, idempotency_of, new_world

from logd.format.chunk import IdempotencyRecord
from logd.format.part_table import Part
from logd.store.check import check_store
from logd.store.layout import DataLayout
from logd.store.recall import Unread

DAY = TINY.idempotency_seconds * SECOND


def recalled(world: World, key: str) -> tuple[int, int] | None:
    record = world.project.recall(idempotency_of(key).key_digest)
    if record is None:
        return None
    assert record.idempotency == idempotency_of(key)
    return record.first_seq, record.count


def fill(world: World) -> None:
    world.commit([world.request(entries("a", 2), "first"), world.request(entries("b", 1))])
    world.commit([world.request(entries("c", 1), "second")])


def rotate(world: World) -> None:
    """What came so far waits to be frozen."""
    world.project.rotate()


def freeze(world: World) -> None:
    world.project.freeze()


def freeze_and_merge(world: World) -> None:
    world.project.freeze()
    world.store_entries(entries("d", 4))
    world.project.freeze()
    assert world.project.merge()


def restart(world: World) -> None:
    world.reopen()


def crash(world: World) -> None:
    world.crash()
    world.open()


def rebuild(world: World) -> None:
    world.close()
    shutil.rmtree(world.layout.index)
    world.open()


@pytest.mark.parametrize("stop", [restart, crash, rebuild])
@pytest.mark.parametrize("move", [None, rotate, freeze, freeze_and_merge])
def test_records_survive(
    move: Callable[[World], None] | None, stop: Callable[[World], None]
) -> None:
    with new_world() as world:
        fill(world)
        if move is not None:
            move(world)
        assert (recalled(world, "first"), recalled(world, "second")) == ((0, 2), (3, 1))
        stop(world)
        assert (recalled(world, "first"), recalled(world, "second")) == ((0, 2), (3, 1))
        assert recalled(world, "third") is None


@pytest.mark.parametrize("move", [None, rotate])
def test_a_record_in_the_tail_is_at_hand(move: Callable[[World], None] | None) -> None:
    with new_world() as world:
        fill(world)
        if move is not None:
            move(world)
        found = world.project.recall_at_hand(idempotency_of("second").key_digest)
        assert isinstance(found, IdempotencyRecord)
        assert found.first_seq == 3


@pytest.mark.parametrize("move", [freeze, freeze_and_merge])
def test_only_for_what_may_be_in_a_chunk_a_chunk_is_read(move: Callable[[World], None]) -> None:
    with new_world() as world:
        fill(world)
        move(world)
        assert isinstance(at_hand(world, "second"), Unread)
        assert at_hand(world, "third") is None
        world.now_ns += DAY
        assert at_hand(world, "second") is None


def at_hand(world: World, key: str) -> IdempotencyRecord | Unread | None:
    return world.project.recall_at_hand(idempotency_of(key).key_digest)


@pytest.mark.parametrize("move", [None, rotate, freeze, freeze_and_merge])
def test_a_key_that_looks_like_another_in_memory_is_unknown(
    move: Callable[[World], None] | None,
) -> None:
    """Of these keys the table has the same."""
    with new_world() as world:
        world.commit([world.request(entries("a", 4), "batch-1")])
        if move is not None:
            move(world)
        assert recalled(world, "batch-2") is None
        first = world.project.snapshot().visible_seq
        world.commit([world.request(entries("b", 1), "batch-2")])
        for _ in range(2):
            assert recalled(world, "batch-1") == (0, 4)
            assert recalled(world, "batch-2") == (first, 1)
            assert recalled(world, "batch-3") is None
            world.project.freeze()


def test_of_a_key_that_was_forgotten_and_came_again_the_latest_counts() -> None:
    with new_world() as world:
        fill(world)
        world.project.freeze()
        world.now_ns += DAY
        world.commit([world.request(entries("a", 3), "first")])
        assert recalled(world, "first") == (4, 3)
        world.project.freeze()
        assert recalled(world, "first") == (4, 3)
        world.reopen()
        assert recalled(world, "first") == (4, 3)


def test_one_odd_time_makes_no_other_record_too_old() -> None:
    """The clock was ahead for one request."""
    with new_world() as world:
        fill(world)
        world.now_ns += 100 * DAY
        world.commit([world.request(entries("o", 1), "odd")])
        world.now_ns -= 100 * DAY
        for number in range(40):
            world.commit([world.request(entries("c", 1), f"batch-{number}")])
        for _ in range(2):
            assert recalled(world, "first") == (0, 2)
            assert recalled(world, "odd") == (4, 1)
            assert [recalled(world, f"batch-{n}") for n in range(40)] == [
                (5 + n, 1) for n in range(40)
            ]
            world.project.freeze()
            world.reopen()


def test_a_chunk_that_a_merge_removes_meanwhile_is_still_read() -> None:
    with new_world() as world:
        fill(world)
        world.project.freeze()
        unread = at_hand(world, "second")
        assert isinstance(unread, Unread)
        before = set(world.layout.segments.iterdir())
        world.store_entries(entries("d", 4))
        world.project.freeze()
        assert world.project.merge()
        assert not before & set(world.layout.segments.iterdir())
        record = unread.read().record
        assert record is not None
        assert record.first_seq == 3


def damage_records(world: World, number: int = 0) -> None:
    """Of that chunk."""
    row = (chunk := world.project.snapshot().chunks[number]).row
    at = row.offset + chunk.head().parts[Part.IDEMPOTENCY, 0].offset
    path = world.layout.segment_file(row.segment_seq, row.segment_number)
    data = bytearray(path.read_bytes())
    data[at + 5] ^= 1
    path.write_bytes(data)


def test_what_is_in_records_that_were_damaged_meanwhile_is_unknown_and_the_damage_is_told() -> None:
    with new_world() as world:
        fill(world)
        world.project.freeze()
        world.commit([world.request(entries("a", 2), "batch-1")])
        world.project.freeze()
        world.commit([world.request(entries("b", 3), "batch-2")])
        world.project.freeze()
        damage_records(world)
        unread = at_hand(world, "first")
        assert isinstance(unread, Unread)
        assert unread.read().record is None
        (error,) = unread.read().damage
        assert "checksum" in error.reason
        assert recalled(world, "first") is None
        assert [str(each) for each in world.project.damage] == [str(error)]
        assert recalled(world, "batch-2") == (6, 3)
        world.close()
        assert check_store(world.files, DataLayout(world.root), [PROJECT]).problems == (
            f"project {PROJECT}: {error}",
        )


def test_candidates_that_are_damaged_hide_no_other() -> None:
    with new_world() as world:
        for number in range(3):
            world.commit([world.request(entries("a", 2), f"batch-{number}")])
            world.project.freeze()
        damage_records(world, 1)
        assert recalled(world, "batch-2") == (4, 2)
        assert not world.project.damage
        assert recalled(world, "batch-0") == (0, 2)
        assert recalled(world, "batch-1") is None
        assert len(world.project.damage) == 2


def test_a_request_longer_than_a_chunk_keeps_its_record() -> None:
    with new_world() as world:
        world.commit([world.request(entries("a", 30), "long")])
        world.project.freeze()
        world.reopen()
        assert recalled(world, "long") == (0, 30)


def test_a_record_is_forgotten_after_its_time() -> None:
    with new_world() as world:
        fill(world)
        world.now_ns += DAY - 1
        assert recalled(world, "first") == (0, 2)
        world.now_ns += 1
        assert recalled(world, "first") is None


def test_merging_drops_forgotten_records() -> None:
    with new_world() as world:
        fill(world)
        world.project.freeze()
        world.now_ns += DAY
        world.commit([world.request(entries("d", 4), "late")])
        world.project.freeze()
        assert world.project.merge()
        (chunk,) = world.project.snapshot().chunks
        assert [r.first_seq for r in chunk.idempotency_records()] == [4]
        world.reopen()
        assert recalled(world, "late") == (4, 4)
        assert recalled(world, "first") is None


def test_a_request_that_was_not_stored_is_not_known() -> None:
    with new_world() as world:
        fill(world)
        world.crash()
        (path,) = world.layout.wal.iterdir()
        path.write_bytes(path.read_bytes()[:-1])
        world.open()
        assert recalled(world, "first") == (0, 2)
        assert recalled(world, "second") is None
