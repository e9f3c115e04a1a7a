"""The same bytes at both doors: what comes back may not tell the fast lane from the HTTP server.

Streams of requests that are valid, odd or damaged, cut into pieces, go to a daemon with a lane and
to one without, which have the same data. Each stream ends with a request that is answered, or the
daemon closes, or one of its deadlines ends the wait: so nothing here waits for silence.
"""

import random
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from live_daemon import Daemon, running_daemon
from raw_http import PATIENCE_SECONDS, get, request
from request_streams import LAST, Names, make_stream

STREAMS = 1000
_AT_ONCE = 100
_DEADLINE_SECONDS = 1.5

_VARYING = (
    (re.compile(rb"(?m)^date: [^\r]*\r\n"), b""),
    (re.compile(rb"(?m)^x-request-id: [0-9a-f]{32}\r$"), b"x-request-id: fresh\r"),
    (re.compile(rb'"requestId":"[0-9a-f]{32}"'), b'"requestId":"fresh"'),
    (re.compile(rb"log_[0-9a-f-]{36}"), b"log_id"),
    (re.compile(rb'"nextCursor":"[^"]+"'), b'"nextCursor":"of this moment"'),
)


@dataclass(frozen=True)
class Doors:
    lane: Daemon
    server: Daemon
    names: Names


@pytest.fixture
async def doors(tmp_path: Path) -> AsyncIterator[Doors]:
    """Two daemons with the same users, keys and entries."""
    async with running_daemon(tmp_path / "lane") as first:
        entries = [
            first.entry(level=level, message=f"stored {n}", timestamp=f"2020-01-01T00:00:{n:02}Z")
            for n, level in enumerate(("INFO", "ERROR") * 20)
        ]
        stored = await first.call("POST", "/v1/ingest", first.key, json=entries)
        names = Names(first.project, first.key, first.admin, stored.json()["ids"][0])
    shutil.copytree(tmp_path / "lane", tmp_path / "server")
    limits: dict[str, Any] = {
        "max_body_bytes": 65_536,
        "request_timeout_seconds": _DEADLINE_SECONDS,
        "stall_timeout_seconds": _DEADLINE_SECONDS,
    }
    async with (
        running_daemon(tmp_path / "lane", lane=True, **limits) as lane,
        running_daemon(tmp_path / "server", lane=False, **limits) as server,
    ):
        yield Doors(lane, server, names)


@pytest.mark.parametrize("seed", range(4))
async def test_a_stream_of_requests_gets_the_same_bytes_at_both_doors(
    doors: Doors, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(seed)
    streams = [make_stream(chance, doors.names) for _ in range(STREAMS // 4)]
    suspects: list[list[bytes]] = []
    async with trio.open_nursery() as nursery:
        turns = trio.CapacityLimiter(_AT_ONCE)
        for pieces in streams:
            nursery.start_soon(_compare, doors, pieces, suspects, turns)
    for pieces in suspects:  # in a crowd a deadline may have come between two pieces
        assert await _said(doors.lane, pieces) == await _said(doors.server, pieces), pieces
    assert "ended with an error" not in caplog.text


async def _compare(
    doors: Doors, pieces: list[bytes], suspects: list[list[bytes]], turns: trio.CapacityLimiter
) -> None:
    async with turns:
        if await _said(doors.lane, pieces) != await _said(doors.server, pieces):
            suspects.append(pieces)


async def _said(daemon: Daemon, pieces: list[bytes]) -> tuple[bytes, bool]:
    """(what came back, without what differs from one request to the next; whether the daemon
    closed before its client did)."""
    received = bytearray()
    stream = await trio.open_tcp_stream("127.0.0.1", daemon.port)
    async with stream, trio.open_nursery() as nursery:
        nursery.start_soon(_send, stream, pieces)
        with trio.fail_after(PATIENCE_SECONDS):
            closed = await _receive(stream, received)
        nursery.cancel_scope.cancel()
    text = bytes(received)
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return text, closed


async def _send(stream: trio.SocketStream, pieces: list[bytes]) -> None:
    try:
        for piece in pieces:
            await stream.send_all(piece)
            await trio.sleep(0.001)  # so that the next one is another read
    except trio.BrokenResourceError:
        pass  # answered and closed before the end


async def _receive(stream: trio.SocketStream, received: bytearray) -> bool:
    """Until the answer to the last request, or until the daemon closes: whether it did."""
    while not LAST_ANSWER.search(received):
        try:
            piece = await stream.receive_some(65_536)
        except trio.BrokenResourceError:
            return True
        if not piece:
            return True
        received += piece
    return False


LAST_ANSWER = re.compile(rb"x-request-id: %b\r\n.*\r\n\r\n\{.*\}" % LAST, re.DOTALL)


async def test_a_query_whose_client_half_closes_is_given_up_at_both_doors(doors: Doors) -> None:
    """Or answered, where it was faster: but never half."""
    path = f"/v1/projects/{doors.names.project}/logs"
    head = get(path, f"Authorization: Bearer {doors.names.key}")
    for daemon in (doors.lane, doors.server):
        async with await trio.open_tcp_stream("127.0.0.1", daemon.port) as stream:
            await stream.send_all(head)
            await stream.send_eof()
            received = bytearray()
            with trio.fail_after(PATIENCE_SECONDS):
                assert await _receive(stream, received)
            assert not received or received.endswith(b"}")


async def test_the_limit_of_a_head_is_the_same_to_the_byte(doors: Doors) -> None:
    path = f"/v1/projects/{doors.names.project}/logs"
    for size in range(32_700, 32_790, 3):
        head = get(path, f"Authorization: Bearer {doors.names.key}", "X: ")
        head = head.replace(b"X: ", b"X: " + b"a" * (size - len(head)))
        pieces = [head + request("GET", "/livez", f"X-Request-Id: {LAST.decode()}")]
        assert await _said(doors.lane, pieces) == await _said(doors.server, pieces), size
