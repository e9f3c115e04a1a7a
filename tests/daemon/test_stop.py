"""The stop of a daemon with several projects that have work under way."""

import threading
from pathlib import Path

import pytest
import trio
from live_daemon import DaemonFactory
from raw_http import PATIENCE_SECONDS
from waiting import until

from logd.store.project import FreezeJob, Installation, Project

CHUNK_ENTRIES = 64
PROJECTS = 4


async def test_no_freeze_is_begun_any_more(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was answered is in the WAL: the stop waits for the one that is under way."""
    begun: list[str] = []
    may_go_on = threading.Event()
    freeze = Project.run_freeze

    def freezing(project: Project, job: FreezeJob) -> Installation:
        begun.append(project.project)
        assert may_go_on.wait(PATIENCE_SECONDS)
        return freeze(project, job)

    monkeypatch.setattr(Project, "run_freeze", freezing)
    data = tmp_path / "data"
    async with make_daemon(data, chunk_entries=CHUNK_ENTRIES) as daemon:
        readers = []
        for number in range(PROJECTS):
            path = f"/v1/orgs/{daemon.org}/projects"
            made = await daemon.call("POST", path, daemon.admin, json={"name": f"P {number}"})
            project = made.json()["id"]
            wanted = {"name": "k", "scopes": ["ingest", "read"]}
            path = f"/v1/projects/{project}/keys"
            key = (await daemon.call("POST", path, daemon.admin, json=wanted)).json()["key"]
            entries = [daemon.entry(projectId=project)] * CHUNK_ENTRIES
            stored = await daemon.call("POST", "/v1/ingest", key, json=entries)
            assert stored.status_code == 200
            readers.append((project, key))
        await until(lambda: len(begun) == 1)
        daemon.stop.set()
        await trio.sleep(0.2)
        may_go_on.set()
        with trio.fail_after(PATIENCE_SECONDS):
            await daemon.stopped.wait()
        assert len(begun) == 1
    async with make_daemon(data, chunk_entries=CHUNK_ENTRIES) as daemon:
        for project, key in readers:
            counts = await daemon.call("GET", f"/v1/projects/{project}/logs/stats", key)
            assert sum(counts.json().values()) == CHUNK_ENTRIES
