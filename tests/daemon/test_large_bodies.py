"""What takes long of a large request does not hold up the event loop: other threads do it."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest
import trio
from live_daemon import Daemon

from logd.api.joining import joined
from logd.daemon import bodies
from logd.entry import ProjectId, Seq
from logd.format import body
from logd.format.logid import log_id
from logd.store.wal import WalWriter

ENTRIES = 9_000
LOOP = threading.main_thread()


class Calls:
    """By whom functions were called: (name, on the event loop), in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.noted: list[tuple[str, bool]] = []

    def note(self, module: Any, name: str) -> None:
        real: Callable[..., Any] = getattr(module, name)

        def noting(*args: Any, **more: Any) -> Any:
            self.noted.append((name, threading.current_thread() is LOOP))
            return real(*args, **more)

        self._monkeypatch.setattr(module, name, noting)

    def take(self) -> list[tuple[str, bool]]:
        noted, self.noted = self.noted, []
        return noted


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


async def send(daemon: Daemon, sent: bytes, query: str = "", key: str | None = None) -> Any:
    """What came of it, and the status."""
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = await daemon.call(
        "POST", f"/v1/ingest{query}", daemon.key, content=sent, headers=headers
    )
    return answer.status_code, answer.json()


def ids_from(daemon: Daemon, first: str, count: int) -> list[str]:
    """That id, and those of the entries stored after it."""
    project, seq = ProjectId(daemon.project), int(first[-12:], 16)
    return [log_id(project, Seq(seq + n)) for n in range(count)]


def many(daemon: Daemon, count: int, **fields: Any) -> bytes:
    entry = msgspec.json.encode(daemon.entry(**fields))
    return b"[%b]" % b",".join([entry] * count)


async def test_the_ids_of_many_entries_are_written_elsewhere(daemon: Daemon, calls: Calls) -> None:
    calls.note(bodies, "ids_json")
    status, done = await send(daemon, many(daemon, ENTRIES))
    assert status == 200
    assert done["ids"] == ids_from(daemon, done["ids"][0], ENTRIES)
    assert calls.take() == [("ids_json", False)]
    assert (await send(daemon, many(daemon, 1000)))[0] == 200
    assert calls.take() == [("ids_json", True)], "a common batch is not worth a thread"


async def test_the_ids_of_a_mixed_batch_are_written_elsewhere(daemon: Daemon, calls: Calls) -> None:
    calls.note(bodies, "ids_json_of_kept")
    good, bad = json.dumps(daemon.entry()), "{}"
    faulty = {0, 17, 4095, 4096, ENTRIES - 1}
    mixed = ",".join([bad if n in faulty else good for n in range(ENTRIES)])
    status, done = await send(daemon, b"[%b]" % mixed.encode(), "?partial=true")
    assert (status, done["ingested"]) == (207, ENTRIES - len(faulty))
    assert {n for n, text in enumerate(done["ids"]) if text is None} == faulty
    ids = [text for text in done["ids"] if text is not None]
    assert ids == ids_from(daemon, ids[0], len(ids))
    assert calls.take() == [("ids_json_of_kept", False)]


async def test_a_partial_batch_without_a_fault_is_not_looked_at_entry_by_entry(
    daemon: Daemon, calls: Calls
) -> None:
    calls.note(bodies, "decode_good_entries")
    for count in (1, 100, ENTRIES):
        status, done = await send(daemon, many(daemon, count), "?partial=true")
        assert (status, done["ingested"]) == (200, count)
        assert done["ids"] == ids_from(daemon, done["ids"][0], count)
    assert calls.take() == []
    assert await send(daemon, b"[]", "?partial=true") == (200, {"ingested": 0, "ids": []})
    status, done = await send(daemon, b"[%b,{}]" % many(daemon, 100)[1:-1], "?partial=true")
    assert (status, done["ingested"], done["ids"][-1]) == (207, 100, None)
    assert calls.take() == [("decode_good_entries", False)]


@pytest.mark.parametrize("count", [120, 400])  # in what the express takes as well, and beyond
async def test_entry_by_entry_a_body_is_looked_at_elsewhere(
    daemon: Daemon, calls: Calls, count: int
) -> None:
    calls.note(body, "decode_carefully")
    entry = msgspec.json.encode(daemon.entry(meta={"filler": "x" * 250}))
    good = b",".join([entry] * count)
    foreign = entry.replace(daemon.project.encode(), b"00000000-0000-4000-8000-000000000000")
    for last, code in ((b"{}", "invalid_entries"), (foreign, "foreign_project")):
        _, problem = await send(daemon, b"[%b,%b]" % (good, last))
        assert problem["code"] == code
        assert calls.take() == [("decode_carefully", False)]
    with_escape = entry.replace(b"INFO", b"INF\\u004f")  # good, and the quick way is not sure
    status, done = await send(daemon, b"[%b,%b]" % (good, with_escape))
    assert (status, done["ingested"]) == (200, count + 1)


async def test_what_is_stored_is_answered_where_no_more_threads_can_be_started(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, run_sync, stored = WalWriter.append, trio.to_thread.run_sync, threading.Event()

    def appending(wal: WalWriter, buffers: Sequence[bytes], *, sync: bool) -> None:
        append(wal, buffers, sync=sync)
        stored.set()

    async def starting(*args: Any, **more: Any) -> Any:
        if stored.is_set():
            raise RuntimeError("can't start new thread")
        return await run_sync(*args, **more)

    with monkeypatch.context() as patched:
        patched.setattr(WalWriter, "append", appending)
        patched.setattr(trio.to_thread, "run_sync", starting)
        status, done = await send(daemon, many(daemon, ENTRIES))
    assert (status, done["ingested"]) == (200, ENTRIES)
    assert done["ids"] == ids_from(daemon, done["ids"][0], ENTRIES)


@pytest.mark.parametrize("query", ["", "?partial=true"])
async def test_many_timestamps_of_different_forms_are_read_elsewhere(
    daemon: Daemon, calls: Calls, query: str
) -> None:
    entry = msgspec.json.encode(daemon.entry(timestamp="TS"))
    calls.note(body, "_several")
    forms = (b"2026-01-31T12:00:00.5+01:00", b"2026-01-31T13:00:00.5+02:00")
    for count, by_whom in ((200, [True]), (1200, [True, False])):
        sent = [entry.replace(b"TS", forms[n % 2]) for n in range(count)]
        status, done = await send(daemon, b"[%b]" % b",".join(sent), query)
        assert (status, done["ingested"]) == (200, count)
        assert calls.take() == [("_several", on_loop) for on_loop in by_whom]
    answer = await daemon.call(
        "GET", f"/v1/projects/{daemon.project}/logs?from=2026-01-31&to=2026-02-01", daemon.key
    )
    assert answer.json()["total"] == 1400
    assert {log["ts"] for log in answer.json()["logs"]} == {"2026-01-31T11:00:00.500Z"}


@pytest.mark.parametrize("value", [b"{}", b"0"])
async def test_many_small_values_are_looked_at_elsewhere(
    daemon: Daemon, calls: Calls, value: bytes
) -> None:
    await send(daemon, msgspec.json.encode(daemon.entry()))  # the project is open then
    calls.note(body, "examine")
    for count, on_loop in ((1, True), (2000, False)):
        status, problem = await send(daemon, b"[%b]" % b",".join([value] * count))
        assert (status, problem["code"]) == (400, "invalid_entries")
        assert calls.take() == [("examine", on_loop)], "by whom, and once"


@pytest.mark.parametrize("megabytes", [1, 4])
async def test_a_large_body_with_a_key_is_hashed_elsewhere(
    daemon: Daemon, calls: Calls, megabytes: int
) -> None:
    calls.note(bodies, "_digests")
    large = many(daemon, 16 * megabytes, meta={"filler": "x" * 64_000})
    first = await send(daemon, large, key="once")
    assert first[0] == 200
    assert await send(daemon, large, key="once") == first
    assert (await send(daemon, large + b" ", key="once"))[0] == 422
    assert calls.take() == [("_digests", False)] * 3


async def test_many_bytes_are_joined_elsewhere() -> None:
    class Pieces(Sequence[bytes]):
        """Notes who reads it."""

        def __init__(self, pieces: list[bytes]) -> None:
            self._pieces = pieces
            self.last_read_by: threading.Thread | None = None

        def __len__(self) -> int:
            return len(self._pieces)

        def __getitem__(self, index: Any) -> Any:
            return self._pieces[index]

        def __iter__(self) -> Iterator[bytes]:
            self.last_read_by = threading.current_thread()
            return iter(self._pieces)

    some = [bytes([n]) * 100_000 for n in range(5)]
    for pieces, is_loop in ((Pieces(some), True), (Pieces(some * 5), False)):
        text = await joined(pieces)
        assert (pieces.last_read_by is LOOP) == is_loop
        assert hashlib.sha256(text).digest() == hashlib.sha256(b"".join(pieces)).digest()
