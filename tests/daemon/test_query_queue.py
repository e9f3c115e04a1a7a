"""Queries of many projects, more than may run at once."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from live_daemon import DaemonFactory
from raw_http import PATIENCE_SECONDS
from trio.testing import MockClock, wait_all_tasks_blocked
from waiting import until

from logd.daemon.queries import Queries
from logd.daemon.query_queue import QueryQueue
from logd.entry import ProjectId, Seq
from logd.errors import Overloaded
from logd.format.logid import log_id
from logd.store.project import Project
from logd.store.search import search
from logd.store.store import Store

A = ProjectId("a")


class Queue:
    """A queue, and the turns that it gave."""

    def __init__(self, at_once: int, most_waiting: int = 100, patience_s: float = 60) -> None:
        self._queue = QueryQueue(at_once, most_waiting, patience_s)
        self.began: list[str] = []
        self.refused: list[str] = []
        self.may_end = trio.Event()
        self.running = self.most_running = 0

    async def ask(self, project: ProjectId, name: str) -> None:
        """A query that runs until it may end."""
        try:
            async with self._queue.turn(project):
                self.began.append(name)
                self.running += 1
                self.most_running = max(self.most_running, self.running)
                try:
                    await self.may_end.wait()
                    await trio.lowlevel.checkpoint()
                finally:
                    self.running -= 1
        except Overloaded:
            self.refused.append(name)

    @asynccontextmanager
    async def asked(self, *names: str) -> AsyncIterator[trio.Nursery]:
        """Queries one after the other, each of the project that its name begins with."""
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(self.ask, ProjectId(name[0]), name)
                await wait_all_tasks_blocked()
            yield nursery


async def test_as_many_run_as_may() -> None:
    queue = Queue(2)
    async with queue.asked("a1", "a2", "a3", "b1", "a4"):
        assert queue.began == ["a1", "a2"]
        queue.may_end.set()
    assert queue.most_running == 2
    assert sorted(queue.began) == ["a1", "a2", "a3", "a4", "b1"]
    queue.may_end = trio.Event()
    async with queue.asked("c1", "c2", "c3"):  # all turns were given back
        assert queue.began[-2:] == ["c1", "c2"]
        queue.may_end.set()


async def test_projects_take_turns() -> None:
    queue = Queue(1)
    async with queue.asked("a1", "a2", "a3", "a4", "b1", "b2", "c1"):
        queue.may_end.set()
    assert queue.began == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


async def test_a_project_may_only_have_so_many_wait() -> None:
    queue = Queue(1, most_waiting=2)
    async with queue.asked("a1", "a2", "a3", "a4", "b1", "b2", "b3"):
        assert queue.refused == ["a4", "b3"]
        queue.may_end.set()
    assert queue.began == ["a1", "a2", "b1", "a3", "b2"]


async def test_none_waits_longer_than_its_patience(autojump_clock: MockClock) -> None:
    queue = Queue(1, patience_s=10)
    async with queue.asked("a1", "a2", "b1"):
        await trio.sleep(11)
        assert sorted(queue.refused) == ["a2", "b1"]
        queue.may_end.set()
    assert queue.began == ["a1"]
    async with queue.asked("a3"):
        pass
    assert queue.began == ["a1", "a3"]


@pytest.mark.parametrize(
    ("cancelled", "others"),
    [
        ("a2", ["a1", "a3", "b1", "b2"]),
        ("b1", ["a1", "a2", "b2", "a3"]),
        ("a3", ["a1", "a2", "b1", "b2"]),
    ],
)
async def test_one_that_gives_up_keeps_nobody_waiting(cancelled: str, others: list[str]) -> None:
    queue, scope = Queue(1), trio.CancelScope()

    async def give_up(name: str) -> None:
        with scope:
            await queue.ask(ProjectId(name[0]), name)

    async with queue.asked("a1") as nursery:
        for name in ("a2", "b1", "a3", "b2"):
            ask = give_up if name == cancelled else lambda n: queue.ask(ProjectId(n[0]), n)
            nursery.start_soon(ask, name)
            await wait_all_tasks_blocked()
        scope.cancel()
        await wait_all_tasks_blocked()
        queue.may_end.set()
    assert queue.began == others


async def test_a_turn_that_comes_as_its_query_is_cancelled_goes_to_the_next() -> None:
    queue, scope = QueryQueue(1), trio.CancelScope()
    began = []

    async def wait(name: str) -> None:
        async with queue.turn(A):
            began.append(name)

    async def give_up() -> None:
        with scope:
            await wait("cancelled")

    with trio.fail_after(PATIENCE_SECONDS):
        async with trio.open_nursery() as nursery, queue.turn(A):
            nursery.start_soon(give_up)
            await wait_all_tasks_blocked()
            nursery.start_soon(wait, "next")
            await wait_all_tasks_blocked()
            scope.cancel()  # its task has not run since when the turn is passed on
    assert began == ["next"]
    assert scope.cancelled_caught
    with trio.fail_after(PATIENCE_SECONDS):
        await wait("later")


async def test_a_query_need_not_wait_for_all_of_another_project(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived: list[None] = []
    began: list[str] = []
    may_go_on = threading.Event()
    turn = QueryQueue.turn

    def arriving(*arguments: Any) -> Any:
        arrived.append(None)
        return turn(*arguments)

    def noting(snapshot: Any, filter_: Any, *rest: Any, **more: Any) -> Any:
        began.append(filter_.search.words[0].text)
        assert may_go_on.wait(PATIENCE_SECONDS)
        return search(snapshot, filter_, *rest, **more)

    monkeypatch.setattr("logd.daemon.queries.search", noting)
    monkeypatch.setattr(Queries, "page_at_hand", lambda *_: None)
    monkeypatch.setattr(QueryQueue, "turn", arriving)
    async with make_daemon(query_threads=1) as daemon, trio.open_nursery() as nursery:
        other = await daemon.call(
            "POST", f"/v1/orgs/{daemon.org}/projects", daemon.admin, json={"name": "Other"}
        )

        async def ask(project: str, word: str) -> None:
            path = f"/v1/projects/{project}/logs?search={word}"
            assert (await daemon.call("GET", path, daemon.admin)).status_code == 200

        for number in range(6):
            nursery.start_soon(ask, daemon.project, f"mine{number}")
        await until(lambda: len(arrived) == 6 and bool(began))
        nursery.start_soon(ask, other.json()["id"], "theirs")
        await until(lambda: len(arrived) == 7)
        may_go_on.set()
    assert len(began) == 7
    assert began.index("theirs") == 2


async def test_a_project_that_takes_long_to_open_keeps_only_itself_waiting(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, may_go_on = threading.Event(), threading.Event()
    project = Store.project

    monkeypatch.setattr(Queries, "page_at_hand", lambda *_: None)
    async with make_daemon(query_threads=1) as daemon, trio.open_nursery() as nursery:
        stored = await daemon.call("POST", "/v1/ingest", daemon.key, json=daemon.entry())
        assert stored.status_code == 200  # so this one is open
        reply = await daemon.call(
            "POST", f"/v1/orgs/{daemon.org}/projects", daemon.admin, json={"name": "Slow"}
        )
        slow = ProjectId(reply.json()["id"])

        def opened(store: Store, wanted: ProjectId) -> Project:
            if wanted == slow:
                opening.set()
                assert may_go_on.wait(PATIENCE_SECONDS)
            return project(store, wanted)

        monkeypatch.setattr(Store, "project", opened)
        for path in (f"logs/{log_id(slow, Seq(0))}", "logs"):
            nursery.start_soon(daemon.call, "GET", f"/v1/projects/{slow}/{path}", daemon.admin)
        await until(opening.is_set)
        try:
            with trio.fail_after(PATIENCE_SECONDS):
                path = f"/v1/projects/{daemon.project}/logs"
                assert (await daemon.call("GET", path, daemon.admin)).status_code == 200
        finally:
            may_go_on.set()
