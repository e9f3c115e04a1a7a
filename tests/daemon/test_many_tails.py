"""Many projects that are written at once, quicker than their chunks can be built."""

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest
import trio
import trio.testing
from store_world import START_NS, ask
from waiting import PATIENCE_SECONDS, until

from logd.daemon import upkeep
from logd.daemon.bodies import Ingested
from logd.daemon.logs import Logs, open_logs
from logd.entry import ProjectId, Seq
from logd.errors import LogdError, NoSuchProject, StorageFailed, StorageFull
from logd.format.chunk import BuiltChunk, IdempotencyRecord
from logd.query.ast import Filter
from logd.store.files import OsFiles
from logd.store.freeze import build_chunks
from logd.store.layout import DataLayout
from logd.store.limits import StoreLimits
from logd.store.project import Project, Request
from logd.store.store import Store, lock_directory
from logd.store.tail import Piece

LIMITS = StoreLimits(
    chunk_entries=1000,
    chunk_bytes=8 << 10,
    tail_bytes=32 << 10,
    cache_bytes=0,
    min_free_disk_bytes=0,
)
ENTRIES = 10  # of a request
LARGEST_REQUEST_BYTES = 5 << 10
ROUNDS = 8
LARGE = [ProjectId(str(UUID(int=number))) for number in range(1, 13)]
SMALL = ProjectId(str(UUID(int=100)))


class Builder:
    """Builds chunks, as many as it may; while there is an `error`, none of those of which a message
    begins with `fails_for`."""

    def __init__(self) -> None:
        self.may_build = threading.Semaphore(0)
        self.begun = 0
        self.error: Exception | None = None
        self.fails_for = b""

    def go_on(self) -> None:
        self.may_build.release(1_000_000)

    def __call__(
        self,
        pieces: Sequence[Piece],
        records: Sequence[IdempotencyRecord],
        limits: StoreLimits,
    ) -> list[BuiltChunk]:
        self.begun += 1
        assert self.may_build.acquire(timeout=PATIENCE_SECONDS)
        if self.error is not None and pieces[0].batch.messages.startswith(self.fails_for):
            raise self.error
        return build_chunks(pieces, records, limits)


class World:
    """`peak_bytes`: of all tails together, whenever entries were shown."""

    def __init__(self, store: Store, logs: Logs, builder: Builder) -> None:
        self.store = store
        self.logs = logs
        self.builder = builder
        self.peak_bytes = 0
        self.sent = 0
        self.stored: list[tuple[ProjectId, str]] = []
        self.refused: list[tuple[ProjectId, LogdError]] = []

    @property
    def tail_bytes(self) -> int:
        projects = self.store.open_projects()
        return sum(project.run_bytes + project.waiting_bytes for project in projects)

    @property
    def is_full(self) -> bool:
        return self.tail_bytes >= LIMITS.tail_bytes and self.builder.begun > 0

    @property
    def is_answered(self) -> bool:
        return len(self.stored) // ENTRIES + len(self.refused) == self.sent

    async def send(self, project: ProjectId, name: str) -> None:
        self.sent += 1
        try:
            await self.logs.ingest.store(project, body(project, name), ndjson=False)
        except LogdError as error:
            self.refused.append((project, error))
        else:
            self.stored += messages(project, name)

    def send_to_all(self, nursery: trio.Nursery, projects: Iterable[ProjectId] = LARGE) -> None:
        """At once, several requests each."""
        for project in projects:
            for number in range(ROUNDS):
                nursery.start_soon(self.send, project, f"request {number}")

    async def open(self, *projects: ProjectId) -> None:
        for project in projects:
            await self.logs.desks.of(project)

    async def fill(self, nursery: trio.Nursery) -> None:
        """A chunk is being built, and all others wait."""
        await self.open(*LARGE, SMALL)
        self.send_to_all(nursery)
        await until(lambda: self.is_full)
        await trio.testing.wait_all_tasks_blocked()

    def shown(self) -> list[tuple[ProjectId, str]]:
        return [
            (project.project, entry.message)
            for project in self.store.open_projects()
            for entry in ask(project.snapshot()).entries
        ]

    def assert_all_is_there_once(self) -> None:
        assert sorted(self.shown()) == sorted(self.stored)

    def assert_the_budget_was_kept(self) -> None:
        assert LIMITS.tail_bytes <= self.peak_bytes < LIMITS.tail_bytes + LARGEST_REQUEST_BYTES


def messages(project: ProjectId, name: str) -> list[tuple[ProjectId, str]]:
    return [(project, f"{name}, entry {number}: {'m' * 300}") for number in range(ENTRIES)]


def body(project: ProjectId, name: str) -> bytes:
    fields = {"projectId": project, "level": "INFO", "source": "s"}
    entries = [fields | {"message": message} for _, message in messages(project, name)]
    assert len(json.dumps(entries)) < LARGEST_REQUEST_BYTES
    return json.dumps(entries).encode()


WorldFactory = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
def builder() -> Builder:
    return Builder()


@pytest.fixture
def open_world(tmp_path: Path, builder: Builder, monkeypatch: pytest.MonkeyPatch) -> WorldFactory:
    monkeypatch.setattr(upkeep, "_RETRY_SECONDS", 0.05)

    @asynccontextmanager
    async def open_one(
        limits: StoreLimits = LIMITS, sync_interval_s: float | None = None
    ) -> AsyncIterator[World]:
        files, layout, publish = OsFiles(), DataLayout(tmp_path / "data"), Project.publish
        lock = lock_directory(files, layout)
        store = Store(files, layout, limits, lambda: START_NS, builder)
        try:
            async with open_logs(
                store, lambda: START_NS, 1, sync_interval_s, lambda: None, 0, 1
            ) as logs:
                world = World(store, logs, builder)

                def publishing(
                    project: Project, requests: Sequence[Request], seqs: Sequence[Seq]
                ) -> None:
                    publish(project, requests, seqs)
                    world.peak_bytes = max(world.peak_bytes, world.tail_bytes)

                with monkeypatch.context() as patched:
                    patched.setattr(Project, "publish", publishing)
                    yield world
        finally:
            lock.release()

    return open_one


@pytest.mark.parametrize("sync_interval_s", [None, 0.02])
async def test_the_budget_is_kept_and_everyone_goes_on_when_there_is_room(
    open_world: WorldFactory, builder: Builder, sync_interval_s: float | None
) -> None:
    async with open_world(sync_interval_s=sync_interval_s) as world:
        async with trio.open_nursery() as nursery:
            await world.fill(nursery)
            assert not world.is_answered
            builder.go_on()
        world.assert_the_budget_was_kept()
        assert not world.refused
        assert len(world.stored) == len(LARGE) * ROUNDS * ENTRIES
        world.assert_all_is_there_once()


async def test_a_small_project_has_its_turn_before_the_large_ones_have_all_that_they_want(
    open_world: WorldFactory, builder: Builder
) -> None:
    async with open_world() as world, trio.open_nursery() as nursery:
        await world.fill(nursery)
        nursery.start_soon(world.send, SMALL, "small")
        while not set(messages(SMALL, "small")) <= set(world.stored):
            before = builder.begun
            builder.may_build.release()
            await until(lambda before=before: builder.begun > before)  # type: ignore[misc]
        assert not world.is_answered
        builder.go_on()


async def test_where_nothing_can_be_frozen_all_are_refused_and_then_go_on_by_themselves(
    open_world: WorldFactory, builder: Builder
) -> None:
    async with open_world() as world:
        async with trio.open_nursery() as nursery:
            await world.fill(nursery)
            builder.error = StorageFull("no space is left")
            builder.go_on()
        assert {type(error) for _, error in world.refused} == {StorageFull}
        await world.send(SMALL, "small")
        assert world.refused[-1][0] == SMALL
        world.assert_the_budget_was_kept()
        builder.error = None
        await until(lambda: world.tail_bytes < LIMITS.tail_bytes)
        world.refused.clear()
        async with trio.open_nursery() as nursery:
            world.send_to_all(nursery, [SMALL])
        assert not world.refused
        world.assert_all_is_there_once()


async def test_a_project_that_cannot_be_frozen_leaves_the_rest_to_the_others(
    open_world: WorldFactory, builder: Builder
) -> None:
    builder.error, builder.fails_for = ValueError("a bug"), b"broken"
    builder.go_on()
    broken, *sound = LARGE
    async with open_world() as world:
        while not world.refused:
            await world.send(broken, "broken")
        assert world.tail_bytes < LIMITS.tail_bytes
        async with trio.open_nursery() as nursery:
            world.send_to_all(nursery, sound)
        assert [project for project, _ in world.refused] == [broken]
        assert len(world.stored) > len(sound) * ROUNDS * ENTRIES
        world.assert_all_is_there_once()


async def test_a_stop_does_not_wait_for_room(open_world: WorldFactory, builder: Builder) -> None:
    async with trio.open_nursery() as nursery:
        async with open_world() as world:
            await world.fill(nursery)
            held, answered = len(world.stored), trio.Event()

            async def go_on_when_all_are_told() -> None:
                await until(lambda: world.is_answered)
                answered.set()
                builder.go_on()  # the stop waits for what is being built

            nursery.start_soon(go_on_when_all_are_told)
        assert answered.is_set()
    assert {type(error) for _, error in world.refused} == {StorageFailed}
    assert len(world.stored) == held
    async with open_world() as again:
        await again.open(*LARGE)
        again.stored = world.stored
        again.assert_all_is_there_once()


async def test_who_waits_for_room_in_a_project_that_is_deleted_is_told_that_it_is_gone(
    open_world: WorldFactory, builder: Builder
) -> None:
    async with open_world() as world, trio.open_nursery() as nursery:
        await world.fill(nursery)
        nursery.start_soon(world.send, SMALL, "small")
        await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(PATIENCE_SECONDS):
            await world.logs.desks.delete_project(SMALL)
        await until(lambda: bool(world.refused))
        assert [type(error) for _, error in world.refused] == [NoSuchProject]
        builder.go_on()


async def test_a_deletion_makes_room(open_world: WorldFactory, builder: Builder) -> None:
    """Without a chunk that is built."""
    async with open_world() as world, trio.open_nursery() as nursery:
        await world.fill(nursery)
        nursery.start_soon(world.send, SMALL, "small")
        desks = [await world.logs.desks.of(project) for project in LARGE]
        for desk in desks:
            if not desk.is_freezing:
                await world.logs.desks.delete_project(desk.project_id)
        await until(lambda: set(messages(SMALL, "small")) <= set(world.stored))
        assert builder.begun == 1
        builder.go_on()


async def test_of_who_gave_up_waiting_nothing_is_stored(
    open_world: WorldFactory, builder: Builder
) -> None:
    async with open_world() as world:
        async with trio.open_nursery() as nursery:
            await world.fill(nursery)
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as given_up:
                    given_up.start_soon(world.send, SMALL, "given up")
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
            nursery.start_soon(world.send, SMALL, "small")
            builder.go_on()
        world.assert_all_is_there_once()


async def test_a_request_that_the_loop_would_commit_at_once_waits_as_well(
    open_world: WorldFactory, builder: Builder
) -> None:
    told: list[Sequence[Ingested] | LogdError] = []
    async with open_world() as world:
        ingest = world.logs.ingest

        def store_soon(name: str) -> None:
            assert ingest.store_soon(SMALL, [body(SMALL, name)], False, told.append)

        await world.send(SMALL, "opens it")
        store_soon("at once")
        commit = ingest.take_commit()
        assert commit is not None
        world.logs.deputy.act(commit, ingest.take_commit)
        await until(lambda: len(told) == 1)
        async with trio.open_nursery() as nursery:
            await world.fill(nursery)
            store_soon("later")
            assert ingest.take_commit() is None
            assert len(told) == 1
            builder.go_on()
        await until(lambda: len(told) == 2)
        world.stored += [*messages(SMALL, "at once"), *messages(SMALL, "later")]
        world.assert_the_budget_was_kept()
        world.assert_all_is_there_once()


async def test_a_project_that_fails_as_it_makes_room_is_reopened_and_all_go_on(
    open_world: WorldFactory, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_wal, failed = Project.end_wal, list[Project]()

    def failing(project: Project) -> None:
        if not failed:
            failed.append(project)
            project.failed = True
            raise StorageFailed("the WAL could not be closed")
        end_wal(project)

    monkeypatch.setattr(Project, "end_wal", failing)
    builder.go_on()
    async with open_world() as world:
        async with trio.open_nursery() as nursery:
            world.send_to_all(nursery)
        assert {project for project, _ in world.refused} <= {failed[0].project}
        assert world.store.opened(failed[0].project) is not failed[0]
        world.assert_all_is_there_once()


async def test_what_a_start_finds_is_read_at_once_and_written_to_when_it_is_frozen(
    open_world: WorldFactory, builder: Builder
) -> None:
    """However much it is."""
    large = StoreLimits(tail_bytes=1 << 20, chunk_bytes=1 << 20, min_free_disk_bytes=0)
    async with open_world(large) as world:
        async with trio.open_nursery() as nursery:
            world.send_to_all(nursery)
        stored = world.stored
        assert world.tail_bytes > 2 * LIMITS.tail_bytes
    async with open_world() as world:
        for project in LARGE:
            page = await world.logs.queries.list_page(project, Filter(), 1000, None)
            assert len(page.rows) == ROUNDS * ENTRIES
        async with trio.open_nursery() as nursery:
            await world.open(SMALL)
            nursery.start_soon(world.send, SMALL, "small")
            await trio.testing.wait_all_tasks_blocked()
            assert not world.is_answered
            builder.go_on()
        world.stored += stored
        world.assert_all_is_there_once()
