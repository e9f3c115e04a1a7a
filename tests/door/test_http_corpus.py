"""Thousands of damaged requests: whatever comes, the next decent request is answered."""

import random
from collections.abc import Callable

import pytest
import trio
from live_daemon import Daemon, DaemonFactory
from raw_http import (
    PATIENCE_SECONDS,
    assert_healthy,
    connected,
    get,
    read_to_end,
    request,
    send_what_is_taken,
)

pytestmark = pytest.mark.both_doors

INPUTS = 2000


def seeds(daemon: Daemon) -> list[bytes]:
    credential = f"Authorization: Bearer {daemon.key}"
    entry = f'{{"projectId":"{daemon.project}","level":"INFO","message":"m","source":"s"}}'.encode()
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(entry), entry)
    return [
        get("/livez"),
        get("/livez") * 3,
        get("/v1/orgs/mine", f"Authorization: Bearer {daemon.admin}"),
        get(f"/v1/projects/{daemon.project}/logs?level=INFO&search=m&limit=5", credential),
        request("POST", "/v1/ingest", credential, f"Content-Length: {len(entry)}", body=entry),
        request("POST", "/v1/ingest", credential, "Transfer-Encoding: chunked", body=chunked),
        request(
            "POST",
            "/v1/ingest?partial=true",
            credential,
            "Content-Encoding: gzip",
            f"Content-Length: {len(entry)}",
            body=entry,
        ),
        request("PUT", "/v1/me", f"Authorization: Bearer {daemon.admin}", "Content-Length: 0"),
        request("POST", "/v1/ingest", "Expect: 100-continue", "Content-Length: 10"),
        get("/livez", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA"),
        get(
            "/livez",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        )
        + b"\x81\x05hello",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
        b"GET /livez HTTP/1.0\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    ]


def flip(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(1, len(data) + 1)]


def drop(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + data[at + chance.randrange(1, 8) :]


def insert(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(FRAGMENTS) + data[at:]


def repeat(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    end = min(len(data), start + chance.randrange(1, 40))
    return data[:end] + data[start:end] * chance.choice((1, 2, 50)) + data[end:]


def split_lines(data: bytes, chance: random.Random) -> bytes:
    return data.replace(b"\r\n", chance.choice((b"\n", b"\r", b"\r\n ", b"\r\n\r\n")))


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip,
    cut,
    drop,
    insert,
    repeat,
    split_lines,
)

FRAGMENTS = (
    b"\r\n",
    b"\n",
    b"\x00",
    b"\xff\xfe",
    b" ",
    b":",
    b"%",
    b"%00",
    b"?",
    b"#",
    b"//",
    b"Content-Length: 5\r\n",
    b"Content-Length: 99999999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: identity, chunked\r\n",
    b"Host: b\r\n",
    b"Connection: close\r\n",
    b"Upgrade: h2c\r\n",
    b"Authorization: Bearer x\r\n",
    b"Content-Encoding: zstd\r\n",
    b"Content-Type: text/\xe9\r\n",
    b"X-Request-Id: \xff\r\n",
    b"0\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"a" * 5000,
)


@pytest.mark.parametrize("seed", range(4))
async def test_damaged_requests_leave_the_daemon_healthy(
    make_daemon: DaemonFactory, seed: int
) -> None:
    async with make_daemon(shutdown_grace_seconds=3600) as daemon:
        await _send_damaged(daemon, random.Random(seed))
        await daemon.http.aclose()
        daemon.stop.set()
        with trio.fail_after(PATIENCE_SECONDS):
            await daemon.stopped.wait()  # at once: no connection was left hanging


async def _send_damaged(daemon: Daemon, chance: random.Random) -> None:
    originals = seeds(daemon)
    for _ in range(INPUTS // 4):
        data = chance.choice(originals)
        for _ in range(chance.randrange(1, 4)):
            data = chance.choice(MUTATIONS)(data, chance) or b" "
        async with connected(daemon) as stream:
            await send_what_is_taken(stream, data)
            await stream.send_eof()
            received = await read_to_end(stream)
        assert b"HTTP/1.1 500" not in received, data
        assert b"Traceback" not in received, data
        await assert_healthy(daemon)
