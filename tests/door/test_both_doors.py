"""The same bytes at both doors: what comes back may not tell the fast lane from the HTTP server.

Streams of requests that are valid, odd or damaged, cut into pieces, go to a daemon with a lane and
to one without, which have the same data. Each stream ends with a request that ends the connection;
where damage hides it, one of the daemon's deadlines does: so nothing here waits for silence.
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
from raw_http import get, read_to_end
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


async def _said(daemon: Daemon, pieces: list[bytes]) -> bytes:
    """What came back until the daemon closed, without what differs from one request to the next."""
    async with (
        await trio.open_tcp_stream("127.0.0.1", daemon.port) as stream,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(_send, stream, pieces)
        text = await read_to_end(stream)
        nursery.cancel_scope.cancel()
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return text


async def _send(stream: trio.SocketStream, pieces: list[bytes]) -> None:
    try:
        for piece in pieces:
            await stream.send_all(piece)
            await trio.sleep(0.001)  # so that the next one is another read
    except trio.BrokenResourceError:
        pass  # answered and closed before the end


async def test_a_query_whose_client_half_closes_is_given_up_at_both_doors(doors: Doors) -> None:
    """Or answered, where it was faster: but never half."""
    path = f"/v1/projects/{doors.names.project}/logs"
    head = get(path, f"Authorization: Bearer {doors.names.key}")
    for daemon in (doors.lane, doors.server):
        async with await trio.open_tcp_stream("127.0.0.1", daemon.port) as stream:
            await stream.send_all(head)
            await stream.send_eof()
            received = await read_to_end(stream)
            assert not received or received.endswith(b"}")


async def test_the_limit_of_a_head_is_the_same_to_the_byte(doors: Doors) -> None:
    path = f"/v1/projects/{doors.names.project}/logs"
    for size in (*range(32_700, 32_790, 3), 40_000, 65_530):
        head = get(path, f"Authorization: Bearer {doors.names.key}", "X: ")
        head = head.replace(b"X: ", b"X: " + b"a" * (size - len(head)))
        pieces = [head, LAST]
        assert await _said(doors.lane, pieces) == await _said(doors.server, pieces), size
