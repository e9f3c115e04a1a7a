"""HTTP by hand: for what no decent client would send."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import trio
from live_daemon import Daemon

PATIENCE_SECONDS = 20
"""How long a test waits for what must come. Never for what must not."""


Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


class Answer(msgspec.Struct, frozen=True):
    """`headers`: by lower-case name. `rest`: what came behind this answer."""

    status: int
    headers: dict[str, str]
    body: bytes
    rest: bytes

    @property
    def code(self) -> str:
        """Of a problem."""
        return str(msgspec.json.decode(self.body)["code"])


@asynccontextmanager
async def connected(daemon: Daemon) -> AsyncIterator[trio.SocketStream]:
    stream = await trio.open_tcp_stream("127.0.0.1", daemon.port)
    async with stream:
        yield stream


async def read_to_end(stream: Stream) -> bytes:
    """All until the daemon closes; a reset counts as that."""
    received = bytearray()
    with trio.fail_after(PATIENCE_SECONDS):
        try:
            while piece := await stream.receive_some(65_536):
                received += piece
        except trio.BrokenResourceError:
            pass
    return bytes(received)


async def read_answer(stream: Stream, have: bytes = b"") -> Answer:
    """The next answer on the connection, of a known length."""
    received = bytearray(have)
    with trio.fail_after(PATIENCE_SECONDS):
        while (answer := parse(bytes(received))) is None:
            piece = await stream.receive_some(65_536)
            assert piece, f"closed after {bytes(received)!r}"
            received += piece
    return answer


def parse(data: bytes) -> Answer | None:
    """The first answer in `data`, None while it is incomplete."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if not end:
        return None
    status_line, *lines = head.decode("ascii").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    status = int(status_line.split(" ")[1])
    if 100 <= status < 200:
        return Answer(status, headers, b"", rest)
    length = int(headers.get("content-length", "0"))
    if len(rest) < length:
        return None
    return Answer(status, headers, rest[:length], rest[length:])


async def exchange(daemon: Daemon, data: bytes) -> bytes:
    """All that comes back for these bytes, until the daemon closes."""
    async with connected(daemon) as stream:
        await send_what_is_taken(stream, data)
        return await read_to_end(stream)


async def send_what_is_taken(stream: trio.SocketStream, data: bytes) -> None:
    """The daemon may answer and close before it has all."""
    with suppress(trio.BrokenResourceError):
        await stream.send_all(data)


async def assert_healthy(daemon: Daemon) -> None:
    """A decent request on a new connection works."""
    async with connected(daemon) as stream:
        await stream.send_all(b"GET /livez HTTP/1.1\r\nHost: test\r\n\r\n")
        answer = await read_answer(stream)
    assert answer.status == 200
    assert not daemon.stopped.is_set()


def get(path: str, *headers: str) -> bytes:
    return request("GET", path, *headers)


def request(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: test", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def post_entry(daemon: Daemon, *headers: str, **fields: Any) -> bytes:
    """Stores one entry of the daemon's project."""
    body = json.dumps(daemon.entry(**fields)).encode()
    return request(
        "POST",
        "/v1/ingest",
        f"Authorization: Bearer {daemon.key}",
        f"Content-Length: {len(body)}",
        *headers,
        body=body,
    )
