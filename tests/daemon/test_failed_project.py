"""A project whose storage failed, until it is reopened; and one whose entries cannot be frozen, or
whose chunks cannot be merged."""

import errno
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from live_daemon import Daemon, DaemonFactory
from raw_http import PATIENCE_SECONDS, connected, post_entry, read_answer
from waiting import until

from logd.daemon import queries
from logd.daemon.desk import MAX_WAITING_FREEZES
from logd.errors import StorageFailed, StorageFull
from logd.store.index import IndexChange, ProjectIndex
from logd.store.project import FreezeJob, Installation, MergeJob, Project
from logd.store.replay import Replay
from logd.store.search import Found, search
from logd.store.wal import WalContent

CHUNK_ENTRIES = 64
SEARCHES = ("", "&search=entry", "&search=17", "&search=ent*")


class Disk:
    """The index fails when it is told to, once; then a reopening waits until it `may_go_on`, and
    fails as long as it is `broken`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken = False
        self.may_go_on = threading.Event()
        self.reopenings = 0
        self._fails = self._has_failed = False
        apply, read = ProjectIndex.apply, Replay.read

        def applying(index: ProjectIndex, change: IndexChange) -> None:
            if self._fails:
                self._fails, self._has_failed = False, True
                raise StorageFailed("the index cannot be written")
            apply(index, change)

        def reading(replay: Replay) -> list[WalContent]:
            if self._has_failed:
                self.reopenings += 1
                assert self.may_go_on.wait(PATIENCE_SECONDS)
            if self.broken:
                raise OSError(errno.EIO, "Input/output error")
            return read(replay)

        monkeypatch.setattr(ProjectIndex, "apply", applying)
        monkeypatch.setattr(Replay, "read", reading)

    async def fail(self, daemon: Daemon) -> list[str]:
        """What was stored when the project is being reopened."""
        stored = await fill(daemon, 1)  # it is open
        self._fails = True
        stored += await fill(daemon, CHUNK_ENTRIES)
        await until(lambda: self.reopenings >= 1)
        return stored


async def fill(daemon: Daemon, count: int) -> list[str]:
    """The messages of those that were stored."""
    stored = []
    async with connected(daemon) as stream:
        for number in range(count):
            await stream.send_all(post_entry(daemon, message=f"entry {number}"))
            if (await read_answer(stream)).status == 200:
                stored.append(f"entry {number}")
    return stored


async def statuses(daemon: Daemon) -> list[int]:
    """Of a search each."""
    path = f"/v1/projects/{daemon.project}/logs?limit=1000"
    return [(await daemon.call("GET", path + more, daemon.key)).status_code for more in SEARCHES]


async def listed(daemon: Daemon) -> set[str]:
    path = f"/v1/projects/{daemon.project}/logs?limit=1000"
    reply = await daemon.call("GET", path, daemon.key)
    return {log["message"] for log in reply.json()["logs"]}


async def until_stored(daemon: Daemon) -> None:
    with trio.fail_after(PATIENCE_SECONDS):
        while not await fill(daemon, 1):  # noqa: ASYNC110  # no event comes of it
            await trio.sleep(0.02)


@pytest.fixture
def nothing_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where nothing is in memory."""
    monkeypatch.setattr(queries, "search_at_hand", lambda *_, **__: None)


@pytest.mark.usefixtures("nothing_at_hand")
async def test_while_it_is_reopened_it_is_neither_read_nor_frozen(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What it had open is closed: whoever came upon it would read what is not mapped any more."""
    disk, data = Disk(monkeypatch), tmp_path / "data"
    async with make_daemon(data, chunk_entries=CHUNK_ENTRIES) as daemon:
        stored = set(await disk.fail(daemon))
        segments = data / "projects" / daemon.project / "segments"
        sizes = {path: path.stat().st_size for path in segments.iterdir()}
        assert await statuses(daemon) == [503] * len(SEARCHES)
        disk.broken = True
        disk.may_go_on.set()
        await until(lambda: disk.reopenings >= 3)
        assert await statuses(daemon) == [503] * len(SEARCHES)
        assert {path: path.stat().st_size for path in segments.iterdir()} == sizes
        disk.broken = False
        await until_stored(daemon)
        assert await statuses(daemon) == [200] * len(SEARCHES)
        assert stored <= await listed(daemon)
    assert not (data / "projects" / daemon.project / "damaged").exists()


async def test_queries_that_overlap_do_not_keep_it_from_being_reopened(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """There is a query at any time."""
    disk = Disk(monkeypatch)
    disk.may_go_on.set()
    running, let_go, done = threading.Semaphore(0), threading.Semaphore(0), trio.Event()

    def held(*args: Any, **more: Any) -> Found:
        running.release()
        assert let_go.acquire(timeout=PATIENCE_SECONDS)
        return search(*args, **more)

    async def ask(daemon: Daemon) -> None:
        while not done.is_set():
            await statuses(daemon)

    monkeypatch.setattr(queries, "search_at_hand", lambda *_, **__: None)
    async with make_daemon(tmp_path / "data", chunk_entries=CHUNK_ENTRIES) as daemon:
        monkeypatch.setattr(queries, "search", held)
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(ask, daemon)
            for _ in range(2):
                took = partial(running.acquire, timeout=PATIENCE_SECONDS)
                assert await trio.to_thread.run_sync(took)
            nursery.start_soon(disk.fail, daemon)
            for _ in range(50):  # one ends, and another begins, unless it is turned away
                let_go.release()
                await trio.sleep(0.02)
            await until_stored(daemon)
            done.set()
            let_go.release(1000)


@pytest.mark.parametrize("error", [StorageFull("no space is left"), ValueError("a bug")])
async def test_where_freezing_fails_for_good_entries_are_refused(
    make_daemon: DaemonFactory,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    error: Exception,
) -> None:
    """Nobody waits for what does not come; and it goes on by itself."""
    run_freeze, fails = Project.run_freeze, True

    def failing(project: Project, job: FreezeJob) -> Installation:
        if fails:
            raise error
        return run_freeze(project, job)

    monkeypatch.setattr(Project, "run_freeze", failing)
    async with make_daemon(tmp_path / "data", chunk_entries=CHUNK_ENTRIES) as daemon:
        stored = await fill(daemon, 6 * CHUNK_ENTRIES)
        assert 3 * CHUNK_ENTRIES - 20 < len(stored) < 6 * CHUNK_ENTRIES
        async with connected(daemon) as stream:
            await stream.send_all(post_entry(daemon, message="one more"))
            answer = await read_answer(stream)
        is_full = isinstance(error, StorageFull)
        assert (answer.status, answer.code) == (
            503,
            "storage_full" if is_full else "storage_failed",
        )
        fails = False
        await until_stored(daemon)
        assert set(stored) <= await listed(daemon)


async def test_where_merging_fails_entries_are_taken(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those that wait to be frozen meanwhile will be."""
    rotate, rotations, may_fail = Project.rotate, 0, threading.Event()

    def rotating(project: Project) -> None:
        nonlocal rotations
        rotate(project)
        rotations += 1

    def merging(_project: Project, _job: MergeJob) -> Installation:
        assert may_fail.wait(PATIENCE_SECONDS)
        raise StorageFull("no space is left")

    monkeypatch.setattr(Project, "rotate", rotating)
    monkeypatch.setattr(Project, "prepare_merge", lambda _: MergeJob(()))
    monkeypatch.setattr(Project, "run_merge", merging)
    stored: list[str] = []

    async with (
        make_daemon(tmp_path / "data", chunk_entries=CHUNK_ENTRIES) as daemon,
        trio.open_nursery() as nursery,
    ):

        async def fill_all() -> None:
            stored.extend(await fill(daemon, 6 * CHUNK_ENTRIES))

        nursery.start_soon(fill_all)
        await until(lambda: rotations > MAX_WAITING_FREEZES + 1)  # one is a chunk by now
        may_fail.set()
    assert len(stored) == 6 * CHUNK_ENTRIES
