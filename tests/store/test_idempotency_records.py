"""What a request with an Idempotency-Key stored is known as long as its retry may come."""

import shutil
from collections.abc import Callable

import pytest
from store_world import SECOND, TINY, World, entries, idempotency_of, new_world

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
@pytest.mark.parametrize("move", [None, freeze, freeze_and_merge])
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
