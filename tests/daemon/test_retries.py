"""Retries of requests whose records are in chunks, which are read in a thread."""

import hashlib
import json
import threading
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio
from live_daemon import Daemon, DaemonFactory
from waiting import PATIENCE_SECONDS, until

from logd.daemon.desk import Desk
from logd.entry import ProjectId, Seq
from logd.errors import StorageFailed
from logd.format.chunk import ChunkHead, IdempotencyRecord
from logd.format.part_table import Part
from logd.store.cache import PartCache
from logd.store.chunk_reader import ChunkReader
from logd.store.files import OsFiles
from logd.store.index import IndexChange, ProjectIndex
from logd.store.layout import DataLayout
from logd.store.segments import Segments

CHUNK_ENTRIES: Final = 64
KEY: Final = "batch-34385"
LOOKS_LIKE_IT: Final = "batch-62216"
"""The table of keys cannot tell it from the other: a chunk has to be read."""


class Gate:
    """Records in chunks are read only when it is open. `readers`: those who came to it, and `done`:
    those who have read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._open = threading.Event()
        self.readers = self.done = 0
        read = ChunkReader.idempotency_record

        def reading(chunk: ChunkReader, first_seq: Seq) -> IdempotencyRecord | None:
            self.readers += 1
            assert self._open.wait(PATIENCE_SECONDS)
            try:
                return read(chunk, first_seq)
            finally:
                self.done += 1

        monkeypatch.setattr(ChunkReader, "idempotency_record", reading)

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


class Answers:
    """Of requests that are sent at once."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.all: list[httpx.Response] = []

    async def send(self, key: str | None, prefix: str) -> None:
        self.all.append(await send(self._daemon, key, prefix))


async def send(daemon: Daemon, key: str | None, prefix: str, count: int = 3) -> httpx.Response:
    entries = [daemon.entry(message=f"{prefix} {n}") for n in range(count)]
    headers = {} if key is None else {"Idempotency-Key": key}
    return await daemon.call("POST", "/v1/ingest", daemon.key, json=entries, headers=headers)


async def send_frozen(daemon: Daemon) -> dict[str, Any]:
    """What is answered to a first request with the key, whose record is in a chunk by now."""
    first = await send(daemon, KEY, "first", CHUNK_ENTRIES)
    assert first.status_code == 200
    await until(partial(_is_frozen, daemon))
    return dict(first.json())


def _is_frozen(daemon: Daemon) -> bool:
    project = daemon.data / "projects" / daemon.project
    return any((project / "segments").iterdir()) and not any((project / "wal").iterdir())


async def again(daemon: Daemon) -> httpx.Response:
    return await send(daemon, KEY, "first", CHUNK_ENTRIES)


async def total(daemon: Daemon, search: str = "") -> int:
    path = f"/v1/projects/{daemon.project}/logs"
    reply = await daemon.call("GET", path, daemon.key, params={"search": search})
    return int(json.loads(reply.content)["total"])


def in_chunks(make_daemon: DaemonFactory) -> Any:
    return make_daemon(chunk_entries=CHUNK_ENTRIES)


def test_the_keys_of_these_tests_look_alike() -> None:
    def kept(key: str) -> tuple[int, bytes]:
        digest = hashlib.blake2b(key.encode(), digest_size=16, person=b"logd-idem-key").digest()
        return int.from_bytes(digest[:2], "big") >> 6, digest[2:5]

    assert kept(KEY) == kept(LOOKS_LIKE_IT)


async def test_retries_at_once_store_nothing_and_hold_up_nobody(
    make_daemon: DaemonFactory, gate: Gate
) -> None:
    async with in_chunks(make_daemon) as daemon:
        first = await send_frozen(daemon)
        answers = []

        async def retry() -> None:
            answers.append(await again(daemon))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(retry)
            nursery.start_soon(retry)
            await until(lambda: gate.readers == 1)
            assert (await send(daemon, None, "other")).status_code == 200
            assert (await send(daemon, "another", "other")).status_code == 200
            assert await total(daemon, "other") == 6
            assert not answers
            gate.open()
        assert [answer.json() for answer in answers] == [first, first]
        assert await total(daemon, "first") == CHUNK_ENTRIES
        conflict = await send(daemon, KEY, "different")
        assert (conflict.status_code, conflict.json()["code"]) == (422, "idempotency_conflict")


async def test_a_new_key_that_looks_like_one_in_a_chunk_is_stored_once(
    make_daemon: DaemonFactory, gate: Gate
) -> None:
    """Also where it comes twice while the chunk is read."""
    async with in_chunks(make_daemon) as daemon:
        await send_frozen(daemon)
        answers = Answers(daemon)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answers.send, LOOKS_LIKE_IT, "second")
            await until(lambda: gate.readers == 1)
            nursery.start_soon(answers.send, LOOKS_LIKE_IT, "second")
            assert (await send(daemon, None, "other")).status_code == 200
            gate.open()
        one, another = answers.all
        assert one.status_code == 200
        assert one.json() == another.json()
        assert await total(daemon, "second") == 3


async def test_who_goes_away_while_a_chunk_is_read_leaves_the_key_to_the_next(
    make_daemon: DaemonFactory, gate: Gate
) -> None:
    async with in_chunks(make_daemon) as daemon:
        first = await send_frozen(daemon)
        for key, prefix, readers in ((LOOKS_LIKE_IT, "second", 1), (KEY, "first", 2)):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send, daemon, key, prefix)
                await until(lambda readers=readers: gate.readers == readers)  # type: ignore[misc]
                nursery.cancel_scope.cancel()
        gate.open()
        assert (await again(daemon)).json() == first
        second = await send(daemon, LOOKS_LIKE_IT, "second")
        assert second.status_code == 200
        assert (await send(daemon, LOOKS_LIKE_IT, "second")).json() == second.json()
        assert await total(daemon, "second") == 3
        assert await total(daemon, "first") == CHUNK_ENTRIES


async def test_a_project_that_fails_while_a_chunk_is_read_stores_nothing_twice(
    make_daemon: DaemonFactory, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is reopened when the chunk was read, not before."""
    apply, failed = ProjectIndex.apply, threading.Event()
    wait_until_unused, waits, unused = Desk.wait_until_unused, trio.Event(), list[int]()

    async def waiting(desk: Desk) -> None:
        waits.set()
        await wait_until_unused(desk)
        unused.append(gate.done)

    def failing(index: ProjectIndex, change: IndexChange) -> None:
        if failed.is_set():
            apply(index, change)
        else:
            failed.set()
            raise StorageFailed("the index cannot be written")

    async with in_chunks(make_daemon) as daemon:
        first = await send_frozen(daemon)
        answers = Answers(daemon)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answers.send, LOOKS_LIKE_IT, "second")
            await until(lambda: gate.readers == 1)
            monkeypatch.setattr(ProjectIndex, "apply", failing)
            monkeypatch.setattr(Desk, "wait_until_unused", waiting)
            await send(daemon, None, "other", CHUNK_ENTRIES)
            await waits.wait()
            gate.open()
        second = await _until_stored(daemon, LOOKS_LIKE_IT)
        assert unused[0] == 1
        assert answers.all[0].status_code == 503 or answers.all[0].json() == second.json()
        assert (await send(daemon, LOOKS_LIKE_IT, "second")).json() == second.json()
        assert await total(daemon, "second") == 3
        assert (await again(daemon)).json() == first


async def _until_stored(daemon: Daemon, key: str) -> httpx.Response:
    with trio.fail_after(PATIENCE_SECONDS):
        while (answer := await send(daemon, key, "second")).status_code != 200:  # noqa: ASYNC110  # no event comes of it
            await trio.sleep(0.02)
    return answer


async def test_a_key_whose_record_is_damaged_is_taken_for_new_and_the_damage_is_told(
    make_daemon: DaemonFactory, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_chunks(make_daemon) as daemon:
        first = await send_frozen(daemon)
        path = _damage_records(daemon)
        stored = await again(daemon)
        assert stored.status_code == 200
        assert stored.json() != first
        assert await total(daemon, "first") == 2 * CHUNK_ENTRIES
    (message,) = [r.getMessage() for r in caplog.records if "Idempotency-Key" in r.getMessage()]
    assert f"{path} at byte" in message


def _damage_records(daemon: Daemon) -> Path:
    """Of the only chunk, in that file."""
    project = ProjectId(daemon.project)
    segments = Segments(OsFiles(), DataLayout(daemon.data).project(project), project, PartCache(0))
    (name,) = segments.names()
    ((offset, head),) = [each for each in segments.scan(name) if isinstance(each, tuple)]
    segments.close()
    assert isinstance(head, ChunkHead)
    path = segments.path(name)
    data = bytearray(path.read_bytes())
    data[offset + head.parts[Part.IDEMPOTENCY, 0].offset + 5] ^= 1
    path.write_bytes(data)
    return path
