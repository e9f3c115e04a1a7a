"""What a daemon reads before anybody asks: the newest chunks of its projects, if these are few."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from live_daemon import Daemon, DaemonFactory
from waiting import until

from logd.entry import Seq
from logd.errors import Corruption, StorageFailed
from logd.store.chunk_reader import ChunkReader
from logd.store.index import ProjectIndex
from logd.store.project import Project

CHUNK_ENTRIES = 64
CHUNKS = 3
LARGE_CACHE = {"chunk_entries": CHUNK_ENTRIES, "cache_bytes": 16 << 20}
SMALL_CACHE = {"chunk_entries": CHUNK_ENTRIES, "cache_bytes": 1 << 20}


class Seen:
    """Which projects were opened, and which chunks were read ahead, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened: list[str] = []
        self.chunks: list[Seq] = []
        self.fault: Exception | None = None
        read_ahead, init = ChunkReader.read_ahead, Project.__init__

        def reading(chunk: ChunkReader) -> None:
            self.chunks.append(chunk.first_seq)
            if self.fault is not None and chunk.first_seq == CHUNK_ENTRIES:
                raise self.fault
            read_ahead(chunk)

        def opening(project: Project, *of_project: Any) -> None:
            init(project, *of_project)
            self.opened.append(project.project)

        monkeypatch.setattr(ChunkReader, "read_ahead", reading)
        monkeypatch.setattr(Project, "__init__", opening)

    def forget(self) -> None:
        self.opened.clear()
        self.chunks.clear()


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


@pytest.fixture
async def filled(make_daemon: DaemonFactory, tmp_path: Path, seen: Seen) -> Path:
    """The data directory of a daemon that has so many chunks of its project, and is stopped. What
    it did is not among what was `seen`."""
    data = tmp_path / "data"
    async with make_daemon(data, chunk_entries=CHUNK_ENTRIES) as daemon:
        await fill(daemon)
    seen.forget()
    return data


async def fill(daemon: Daemon) -> None:
    """So many chunks of the daemon's project."""
    for number in range(CHUNKS):
        words = [f"word{number} {index}" for index in range(CHUNK_ENTRIES)]
        entries = [daemon.entry(message=message) for message in words]
        stored = await daemon.call("POST", "/v1/ingest", daemon.key, json=entries)
        assert stored.status_code == 200
        await until(partial(_is_frozen, daemon))


def _is_frozen(daemon: Daemon) -> bool:
    project = daemon.data / "projects" / daemon.project
    return any((project / "segments").iterdir()) and not any((project / "wal").iterdir())


async def found(daemon: Daemon, search: str) -> int:
    path = f"/v1/projects/{daemon.project}/logs"
    answer = await daemon.call("GET", path, daemon.key, params={"search": search})
    assert answer.status_code == 200
    return int(json.loads(answer.content)["total"])


async def test_a_start_reads_the_newest_chunks_first(
    make_daemon: DaemonFactory, filled: Path, seen: Seen
) -> None:
    async with make_daemon(filled, **LARGE_CACHE) as daemon:
        await until(lambda: len(seen.chunks) == CHUNKS)
        assert seen.opened == [daemon.project]
        assert seen.chunks == sorted(seen.chunks, reverse=True)
        assert await found(daemon, "word1") == CHUNK_ENTRIES


async def test_a_damaged_chunk_does_not_keep_the_others_from_being_read(
    make_daemon: DaemonFactory,
    filled: Path,
    seen: Seen,
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen.fault = Corruption(Path("a.seg"), 0, "damaged on purpose")
    async with make_daemon(filled, **LARGE_CACHE) as daemon:
        await until(lambda: len(seen.chunks) == CHUNKS)
        assert await found(daemon, "word2") == CHUNK_ENTRIES
    assert "damaged on purpose" in caplog.text


async def test_where_the_index_cannot_be_mapped_again_the_project_is_reopened(
    make_daemon: DaemonFactory,
    filled: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def failing(_index: ProjectIndex) -> None:
        raise StorageFailed("no memory on purpose")

    monkeypatch.setattr(ProjectIndex, "let_go", failing)
    async with make_daemon(filled, **LARGE_CACHE) as daemon:
        await until(lambda: "was reopened" in caplog.text)
        assert "no memory on purpose" in caplog.text
        assert await found(daemon, "word2") == CHUNK_ENTRIES


async def test_what_nobody_foresaw_ends_the_reading_and_not_the_daemon(
    make_daemon: DaemonFactory,
    filled: Path,
    seen: Seen,
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen.fault = MemoryError("short on purpose")
    async with make_daemon(filled, **LARGE_CACHE) as daemon:
        await until(lambda: "short on purpose" in caplog.text)
        assert await found(daemon, "word0") == CHUNK_ENTRIES
    assert len(seen.chunks) == CHUNKS - 1


async def test_a_project_that_cannot_be_opened_ends_nothing(
    make_daemon: DaemonFactory,
    filled: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def failing(*_: Any) -> None:
        raise MemoryError("short on purpose")

    with monkeypatch.context() as patched:
        patched.setattr(Project, "__init__", failing)
        async with make_daemon(filled, **LARGE_CACHE) as daemon:
            await until(lambda: "short on purpose" in caplog.text)
            patched.undo()
            assert await found(daemon, "word0") == CHUNK_ENTRIES


async def test_nothing_is_read_ahead_into_a_small_cache(
    make_daemon: DaemonFactory, filled: Path, seen: Seen
) -> None:
    async with make_daemon(filled, **SMALL_CACHE) as daemon:
        path = f"/v1/projects/{daemon.project}/logs/stats"
        assert (await daemon.call("GET", path, daemon.key)).status_code == 200
        await trio.sleep(0.2)
        assert seen.opened == [daemon.project]
        assert seen.chunks == []
        assert await found(daemon, "word0") == CHUNK_ENTRIES


async def test_of_many_projects_none_is_opened_before_somebody_comes(
    make_daemon: DaemonFactory, filled: Path, seen: Seen
) -> None:
    async with make_daemon(filled, **LARGE_CACHE) as daemon:
        for number in range(4):
            path = f"/v1/orgs/{daemon.org}/projects"
            made = await daemon.call("POST", path, daemon.admin, json={"name": f"P {number}"})
            entry = daemon.entry(projectId=made.json()["id"])
            path = f"/v1/projects/{made.json()['id']}/keys"
            key = (await daemon.call("POST", path, daemon.admin, json={"name": "k"})).json()["key"]
            assert (await daemon.call("POST", "/v1/ingest", key, json=[entry])).status_code == 200
    seen.forget()
    async with make_daemon(filled, **LARGE_CACHE) as daemon:
        assert (await daemon.call("GET", "/readyz")).status_code == 200
        assert seen.opened == []
        assert await found(daemon, "word0") == CHUNK_ENTRIES
        assert seen.opened == [daemon.project]
        await until(lambda: len(seen.chunks) == CHUNKS)
