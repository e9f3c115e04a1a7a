"""What the daemon does now and then, on a disk that fails."""

import errno
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from live_daemon import Daemon, DaemonFactory
from waiting import PATIENCE_SECONDS, until

import logd.run
from logd.control.store import Control
from logd.daemon import logs
from logd.daemon.scan_processes import ScanProcesses
from logd.errors import StorageFull
from logd.store.files import OsFiles

_FULL = StorageFull("no space is left")
_FAILED = OSError(errno.EIO, "Input/output error")
FAULTS = [
    (Control, "flush_last_used", _FULL),
    (Control, "flush_last_used", _FAILED),
    (Control, "project_purged", _FULL),
    (OsFiles, "remove_tree", _FAILED),
    (OsFiles, "rename", _FAILED),
]


class Fault:
    """A method that fails as long as it is on."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, owner: type, method: str, error: Exception
    ) -> None:
        self.is_on = True
        self.times = 0
        sound: Callable[..., Any] = getattr(owner, method)

        def failing(*args: Any) -> Any:
            if self.is_on:
                self.times += 1
                raise error
            return sound(*args)

        monkeypatch.setattr(owner, method, failing)


async def delete(daemon: Daemon) -> int:
    assert (
        await daemon.call("POST", "/v1/ingest", daemon.key, json=daemon.entry())
    ).status_code == 200
    path = f"/v1/orgs/{daemon.org}/projects/{daemon.project}"
    return (await daemon.call("DELETE", path, daemon.admin)).status_code


@pytest.mark.parametrize(("owner", "method", "error"), FAULTS)
async def test_what_fails_is_tried_again_and_ends_nothing(
    make_daemon: DaemonFactory,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    owner: type,
    method: str,
    error: Exception,
) -> None:
    monkeypatch.setattr(logd.run, "_CHORES_SECONDS", 0.05)
    data = tmp_path / "data"
    async with make_daemon(data) as daemon:
        fault = Fault(monkeypatch, owner, method, error)
        assert await delete(daemon) == 204
        await until(lambda: fault.times >= 3)
        assert (await daemon.call("GET", "/livez")).status_code == 200
        fault.is_on = False
        await until(lambda: not any((data / "projects").iterdir()))


async def test_a_deleted_project_that_cannot_be_removed_keeps_no_daemon_from_starting(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    fault = Fault(monkeypatch, OsFiles, "remove_tree", _FAILED)
    async with make_daemon(data) as daemon:
        assert await delete(daemon) == 204
    assert any((data / "projects").iterdir())
    async with make_daemon(data) as daemon:
        assert (await daemon.call("GET", "/livez")).status_code == 200
    fault.is_on = False
    async with make_daemon(data) as daemon:
        assert not any((data / "projects").iterdir())


async def test_where_no_thread_can_be_started_the_daemon_goes_on(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logd.run, "_CHORES_SECONDS", 0.05)
    async with make_daemon() as daemon:
        await daemon.call("PUT", "/v1/me", daemon.admin, json={"name": "Old"})
        times = 0

        async def refusing(*_args: object, **_more: object) -> None:
            nonlocal times
            times += 1
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as refused:
            refused.setattr(trio.to_thread, "run_sync", refusing)
            await until(lambda: times >= 3)
            change = await daemon.call("PUT", "/v1/me", daemon.admin, json={"name": "New"})
            entries = [daemon.entry(message="m" * 8000) for _ in range(1000)]
            large = await daemon.call("POST", "/v1/ingest", daemon.key, json=entries)
        for response in (change, large):
            assert response.status_code == 503
            assert response.json()["code"] == "overloaded"
            assert "retry-after" in response.headers
        change = await daemon.call("PUT", "/v1/me", daemon.admin, json={"name": "New"})
        assert change.status_code == 200


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """To open projects, or to freeze. Those that were wanted."""
    start, wanted = threading.Thread.start, list[str]()

    def starting(thread: threading.Thread) -> None:
        if thread.name.startswith(("open-", "freeze-")):
            wanted.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starting)
    return wanted


async def test_where_no_thread_can_be_started_the_daemon_ends_in_an_orderly_way(
    make_daemon: DaemonFactory, no_threads: list[str]
) -> None:
    async with make_daemon() as daemon:
        refused = await daemon.call("POST", "/v1/ingest", daemon.key, json=daemon.entry())
        assert refused.status_code == 503
        daemon.stop.set()
        with trio.fail_after(PATIENCE_SECONDS):
            await daemon.stopped.wait()
    assert len(no_threads) > 1


async def test_where_no_thread_can_be_started_scan_processes_rest_later(
    make_daemon: DaemonFactory, no_threads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "QUIET_SECONDS", 0.02)
    monkeypatch.setattr(ScanProcesses, "is_quiet", True)
    async with make_daemon() as daemon:
        await until(lambda: len(no_threads) > 3)
        assert (await daemon.call("GET", "/livez")).status_code == 200
