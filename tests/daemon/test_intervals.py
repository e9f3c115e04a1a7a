"""durability = "interval": what was answered is synced soon, and when its project is closed."""

import errno
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from live_daemon import Daemon, DaemonFactory
from raw_http import PATIENCE_SECONDS, connected, post_entry, read_answer
from waiting import until

from logd.errors import StorageFailed
from logd.store.wal import WalWriter

PROJECTS = 4
OPTIONS = {"durability": "interval", "sync_interval_ms": 400}
"""Long enough that all projects are stored into between two rounds of syncs."""


class Wal:
    """Syncs wait while they are `held`; a write fails when it is told to, once. Of each file
    whether all that it has is synced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fails = False
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.held = 0
        self.synced: dict[Path, bool] = {}
        write, append, sync = WalWriter._write, WalWriter.append, WalWriter.sync

        def writing(wal: WalWriter, buffers: Sequence[bytes]) -> None:
            if self.fails:
                self.fails = False
                raise OSError(errno.EIO, "Input/output error")
            write(wal, buffers)

        def appending(wal: WalWriter, buffers: Sequence[bytes], *, sync: bool) -> None:
            self.synced[wal.path] = False
            append(wal, buffers, sync=sync)

        def syncing(wal: WalWriter) -> None:
            if not self.may_go_on.is_set():
                self.held += 1
                assert self.may_go_on.wait(PATIENCE_SECONDS)
            sync(wal)
            self.synced[wal.path] = True

        monkeypatch.setattr(WalWriter, "_write", writing)
        monkeypatch.setattr(WalWriter, "append", appending)
        monkeypatch.setattr(WalWriter, "sync", syncing)

    async def hold(self, daemon: Daemon) -> list[str]:
        """Projects that are due to be synced, the first of them being it."""
        projects = await more_projects(daemon)
        await store_in_each(daemon, projects)
        await until(lambda: all(self.synced.values()))
        self.may_go_on.clear()
        await store_in_each(daemon, projects)
        await until(lambda: self.held > 0)
        return [project for project, _ in projects]


async def more_projects(daemon: Daemon) -> list[tuple[str, str]]:
    """(id, key)"""
    made = []
    for number in range(PROJECTS):
        path = f"/v1/orgs/{daemon.org}/projects"
        project = await daemon.call("POST", path, daemon.admin, json={"name": f"P {number}"})
        path = f"/v1/projects/{project.json()['id']}/keys"
        wanted = {"name": "k", "scopes": ["ingest"]}
        key = await daemon.call("POST", path, daemon.admin, json=wanted)
        made.append((project.json()["id"], key.json()["key"]))
    return made


async def store_in_each(daemon: Daemon, projects: Sequence[tuple[str, str]]) -> None:
    for project, key in projects:
        entry = daemon.entry(projectId=project)
        assert (await daemon.call("POST", "/v1/ingest", key, json=entry)).status_code == 200


async def test_projects_may_be_deleted_while_others_are_synced(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wal = Wal(monkeypatch)
    async with make_daemon(tmp_path / "data", **OPTIONS) as daemon:
        projects = await wal.hold(daemon)
        async with trio.open_nursery() as nursery:
            for project in projects:
                path = f"/v1/orgs/{daemon.org}/projects/{project}"
                nursery.start_soon(daemon.call, "DELETE", path, daemon.admin)
            await trio.sleep(0.2)  # those that are not being synced are gone
            wal.may_go_on.set()
        await trio.sleep(0.2)
        assert (await daemon.call("GET", "/livez")).status_code == 200


async def test_a_file_that_was_closed_after_a_failed_write_is_not_synced(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The sync was due when the write failed."""
    wal = Wal(monkeypatch)
    options = OPTIONS | {"sync_interval_ms": 50}
    async with make_daemon(tmp_path / "data", **options) as daemon, connected(daemon) as stream:
        for number in range(30):
            wal.fails = number % 3 == 2
            await stream.send_all(post_entry(daemon, message=f"entry {number}"))
            await read_answer(stream)
            await trio.sleep(0.03)
        with trio.fail_after(PATIENCE_SECONDS):
            await stream.send_all(post_entry(daemon, message="the last"))
            while (await read_answer(stream)).status != 200:
                await trio.sleep(0.05)
                await stream.send_all(post_entry(daemon, message="the last"))


async def test_a_stop_syncs_what_was_answered_though_a_sync_is_under_way(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wal = Wal(monkeypatch)
    async with make_daemon(tmp_path / "data", **OPTIONS) as daemon:
        await wal.hold(daemon)
        daemon.stop.set()
        await trio.sleep(0.2)
        wal.may_go_on.set()
        with trio.fail_after(PATIENCE_SECONDS):
            await daemon.stopped.wait()
    assert wal.synced
    assert all(wal.synced.values())


async def test_what_takes_the_place_of_a_lost_entry_is_shown_in_its_place(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A sync that fails may have dropped what it was for: the next entries get its numbers."""
    sync, kept, loses = WalWriter.sync, dict[Path, int](), threading.Event()

    def syncing(wal: WalWriter) -> None:
        if loses.is_set():
            loses.clear()
            os.truncate(wal.path, kept[wal.path])
            raise StorageFailed("the WAL could not be synced")
        sync(wal)
        kept[wal.path] = wal.path.stat().st_size

    monkeypatch.setattr(WalWriter, "sync", syncing)

    async def store(message: str) -> list[str]:
        with trio.fail_after(PATIENCE_SECONDS):
            while True:
                entry = daemon.entry(message=message)
                reply = await daemon.call("POST", "/v1/ingest", daemon.key, json=entry)
                if reply.status_code == 200:
                    ids: list[str] = reply.json()["ids"]
                    return ids
                await trio.sleep(0.02)

    async def listed() -> list[str]:
        reply = await daemon.call("GET", f"/v1/projects/{daemon.project}/logs", daemon.key)
        return [log["message"] for log in reply.json()["logs"]]

    async with make_daemon(tmp_path / "data", **OPTIONS) as daemon:
        await store("kept")
        await until(lambda: bool(kept))
        loses.set()
        lost = await store("lost")
        assert await listed() == ["lost", "kept"]
        await until(lambda: not loses.is_set())
        assert await store("new") == lost
        assert await listed() == ["new", "kept"]
