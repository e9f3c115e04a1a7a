"""A project whose storage fails while a group is under way."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from live_daemon import Daemon, DaemonFactory
from raw_http import PATIENCE_SECONDS, connected, post_entry, read_answer

from logd.daemon.deputy import Deputy
from logd.errors import StorageFailed
from logd.store.index import IndexChange, ProjectIndex
from logd.store.wal import WalWriter

CHUNK_ENTRIES = 64
LATE_SECONDS = 0.5
"""Enough to open a project anew."""


class Faults:
    """The index fails once, when a write of the WAL has begun; that write takes its time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_armed = False
        self._freezing = threading.Event()
        self._writing = threading.Event()
        self.failed = threading.Event()
        apply, write = ProjectIndex.apply, WalWriter._write

        def failing(index: ProjectIndex, change: IndexChange) -> None:
            if self.failed.is_set() or not self.is_armed:
                apply(index, change)
                return
            self._freezing.set()
            assert self._writing.wait(PATIENCE_SECONDS)
            self.failed.set()
            raise StorageFailed("the index cannot be written")

        def late(wal: WalWriter, buffers: Sequence[bytes]) -> None:
            if self._freezing.is_set() and not self._writing.is_set():
                self._writing.set()
                assert self.failed.wait(PATIENCE_SECONDS)
                time.sleep(LATE_SECONDS)
            write(wal, buffers)

        # the deputy is tried each time, so that it is a write of its that takes long
        monkeypatch.setattr(Deputy, "is_able", lambda _: True)
        monkeypatch.setattr(ProjectIndex, "apply", failing)
        monkeypatch.setattr(WalWriter, "_write", late)


async def listed(daemon: Daemon) -> set[str]:
    path = f"/v1/projects/{daemon.project}/logs?limit=1000"
    reply = await daemon.call("GET", path, daemon.key)
    return {log["message"] for log in reply.json()["logs"]}


async def test_a_group_under_way_when_the_index_fails_is_not_lost(
    make_daemon: DaemonFactory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    """Its file is neither read nor closed before it is written."""
    faults = Faults(monkeypatch)
    data = tmp_path / "data"
    stored = set()
    async with (
        make_daemon(data, chunk_entries=CHUNK_ENTRIES) as daemon,
        connected(daemon) as stream,
    ):
        for number in range(3 * CHUNK_ENTRIES):
            await stream.send_all(post_entry(daemon, message=f"entry {number}"))
            answer = await read_answer(stream)
            if answer.status == 200:
                stored.add(f"entry {number}")
            else:
                assert (answer.status, answer.code) == (503, "storage_failed")
                await trio.sleep(0.01)
            faults.is_armed = True
        assert faults.failed.is_set()
        assert len(stored) > CHUNK_ENTRIES
        assert stored <= await listed(daemon)
    assert "could not be written" not in caplog.text
    async with make_daemon(data) as daemon:
        assert stored <= await listed(daemon)
