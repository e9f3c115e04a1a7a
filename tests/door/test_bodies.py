"""Bodies at the door: limits, compression, slowness, memory."""

import gc
import gzip
import json
import tracemalloc
import zlib
from contextlib import AsyncExitStack
from typing import Protocol

import pytest
import trio
import zstandard
from live_daemon import Daemon, DaemonFactory
from raw_http import (
    PATIENCE_SECONDS,
    Answer,
    assert_healthy,
    connected,
    parse,
    read_answer,
    read_to_end,
    send_what_is_taken,
)
from raw_http import request as http_request

from logd.config import KIB, MIB
from logd.door.body import IncomingBody, Message
from logd.door.memory import BodyMemory

LIMIT = 128 * KIB


class Ingest(Protocol):
    def __call__(self, daemon: Daemon, *headers: str, body: bytes = b"") -> bytes: ...


@pytest.fixture(params=["lane", "handed over", "server"])
def way(request: pytest.FixtureRequest) -> str:
    """The fast lane answers, or leaves the request to the HTTP server, or is not there."""
    return str(request.param)


@pytest.fixture
def lane(way: str) -> bool:
    return way != "server"


@pytest.fixture
def ingest(way: str) -> Ingest:
    marks = ("TE: trailers",) if way == "handed over" else ()

    def make(daemon: Daemon, *headers: str, body: bytes = b"") -> bytes:
        credential = f"Authorization: Bearer {daemon.key}"
        return http_request("POST", "/v1/ingest", credential, *marks, *headers, body=body)

    return make


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def test_a_declared_body_over_the_limit_is_refused_unread(
    make_daemon: DaemonFactory, ingest: Ingest
) -> None:
    async with make_daemon(max_body_bytes=LIMIT) as daemon, connected(daemon) as stream:
        await stream.send_all(ingest(daemon, "Content-Length: 1000000000"))
        answer = await read_answer(stream)
        assert (answer.status, answer.code) == (413, "body_too_large")
        assert answer.headers["connection"] == "close"


async def test_a_chunked_body_over_the_limit_is_cut(
    make_daemon: DaemonFactory, ingest: Ingest
) -> None:
    async with make_daemon(max_body_bytes=LIMIT) as daemon:
        async with connected(daemon) as stream:
            await stream.send_all(ingest(daemon, "Transfer-Encoding: chunked"))
            await send_what_is_taken(stream, chunk(b" " * 65_536) * 5)
            answer = parse(await read_to_end(stream))
        assert answer is not None
        assert (answer.status, answer.code) == (413, "body_too_large")
        await assert_healthy(daemon)


async def test_a_body_a_little_over_the_limit_leaves_the_connection_usable(
    make_daemon: DaemonFactory, ingest: Ingest
) -> None:
    async with make_daemon(max_body_bytes=LIMIT) as daemon, connected(daemon) as stream:
        size = LIMIT + 1000
        await stream.send_all(ingest(daemon, f"Content-Length: {size}", body=b" " * size))
        answer = await read_answer(stream)
        assert answer.status == 413
        assert "connection" not in answer.headers
        await stream.send_all(ingest(daemon, "Content-Length: 2", body=b"[]"))
        assert (await read_answer(stream, answer.rest)).status == 200


async def test_a_body_of_the_limit_is_taken(make_daemon: DaemonFactory, ingest: Ingest) -> None:
    async with make_daemon(max_body_bytes=LIMIT) as daemon, connected(daemon) as stream:
        body = b"[]" + b" " * (LIMIT - 2)
        await stream.send_all(ingest(daemon, f"Content-Length: {len(body)}", body=body))
        assert (await read_answer(stream)).status == 200


async def test_the_answer_to_an_unread_body_arrives(make_daemon: DaemonFactory) -> None:
    """The client writes all of a large body before it looks for an answer."""
    async with make_daemon(max_body_bytes=LIMIT) as daemon, connected(daemon) as stream:
        size = 4_000_000
        await stream.send_all(
            http_request("POST", "/v1/ingest", f"Content-Length: {size}") + b" " * size
        )
        answer = parse(await read_to_end(stream))
        assert answer is not None
        assert answer.status == 401


async def test_a_small_refused_body_leaves_the_connection_usable(
    daemon: Daemon, ingest: Ingest
) -> None:
    async with connected(daemon) as stream:
        await stream.send_all(
            http_request("POST", "/v1/ingest", "Content-Length: 5", body=b"hello")
        )
        first = await read_answer(stream)
        assert first.status == 401
        assert "connection" not in first.headers
        await stream.send_all(ingest(daemon, "Content-Length: 2", body=b"[]"))
        assert (await read_answer(stream, first.rest)).status == 200


@pytest.mark.parametrize(
    ("encoding", "bomb"),
    [
        ("gzip", gzip.compress(bytes(50_000_000))),
        ("deflate", zlib.compress(bytes(50_000_000))),
        ("zstd", zstandard.ZstdCompressor().compress(bytes(500_000_000))),
        ("zstd", zstandard.ZstdCompressor(write_content_size=False).compress(bytes(500_000_000))),
    ],
    ids=["gzip", "deflate", "zstd with a size", "zstd without"],
)
async def test_a_bomb_is_refused_at_the_limit(
    make_daemon: DaemonFactory, ingest: Ingest, encoding: str, bomb: bytes
) -> None:
    async with make_daemon(max_body_bytes=LIMIT) as daemon, connected(daemon) as stream:
        assert len(bomb) < LIMIT
        await stream.send_all(
            ingest(
                daemon,
                f"Content-Encoding: {encoding}",
                f"Content-Length: {len(bomb)}",
                body=bomb,
            )
        )
        answer = await read_answer(stream)
        assert (answer.status, answer.code) == (413, "body_too_large")
        await assert_healthy(daemon)


async def test_a_body_that_stalls_is_answered_408(
    make_daemon: DaemonFactory, ingest: Ingest
) -> None:
    async with make_daemon(stall_timeout_seconds=0.2) as daemon, connected(daemon) as stream:
        await stream.send_all(ingest(daemon, "Content-Length: 100", body=b"["))
        answer = parse(await read_to_end(stream))
        assert answer is not None
        assert (answer.status, answer.code) == (408, "body_too_slow")


async def test_a_body_that_trickles_is_answered_408(
    make_daemon: DaemonFactory, ingest: Ingest
) -> None:
    async with make_daemon(stall_timeout_seconds=0.3) as daemon, connected(daemon) as stream:
        await stream.send_all(ingest(daemon, "Content-Length: 100000"))
        received = await _trickle(stream)
        answer = parse(received)
        assert answer is not None
        assert (answer.status, answer.code) == (408, "body_too_slow")


async def test_a_body_that_came_quickly_and_then_trickles_is_answered_408(
    make_daemon: DaemonFactory, ingest: Ingest
) -> None:
    async with make_daemon(stall_timeout_seconds=0.3) as daemon, connected(daemon) as stream:
        await stream.send_all(ingest(daemon, "Content-Length: 100000", body=b" " * 98_000))
        received = await _trickle(stream)  # 40 s to its end
        answer = parse(received)
        assert answer is not None
        assert (answer.status, answer.code) == (408, "body_too_slow")


async def _trickle(stream: trio.SocketStream) -> bytes:
    """A byte every 20 ms, until the daemon closes; what it said."""
    async with trio.open_nursery() as nursery:

        async def send() -> None:
            while True:
                await send_what_is_taken(stream, b" ")
                await trio.sleep(0.02)

        nursery.start_soon(send)
        received = await read_to_end(stream)
        nursery.cancel_scope.cancel()
    return received


async def test_bodies_beyond_the_memory_are_turned_away_and_others_go_on(
    make_daemon: DaemonFactory, ingest: Ingest
) -> None:
    async with make_daemon(max_body_bytes=LIMIT, body_memory_bytes=LIMIT) as daemon:
        half = LIMIT // 2
        async with connected(daemon) as holder, connected(daemon) as other:
            head = ingest(daemon, f"Content-Length: {LIMIT}")
            await holder.send_all(head + b" " * (half + 1))
            await other.send_all(head + b" " * (half + 1))
            refused = await _first_answer(holder, other)
            assert (refused.status, refused.code) == (503, "overloaded")
            assert refused.headers["retry-after"] == "1"
        async with connected(daemon) as stream:
            body = b"[]" + b" " * (LIMIT - 2)
            await stream.send_all(ingest(daemon, f"Content-Length: {LIMIT}", body=body))
            assert (await read_answer(stream)).status == 200, "all memory is free again"


async def test_large_bodies_that_do_not_end_leave_memory_for_small_ones(
    make_daemon: DaemonFactory, ingest: Ingest
) -> None:
    async with make_daemon(max_body_bytes=LIMIT, body_memory_bytes=4 * LIMIT) as daemon:
        large = ingest(daemon, f"Content-Length: {LIMIT}")
        async with AsyncExitStack() as stack:
            unfinished, whole = large + b" " * (LIMIT - 1), large + b"[]" + b" " * (LIMIT - 2)
            await _until_refused(daemon, stack, unfinished, whole)
            small = json.dumps([daemon.entry()]).encode()
            for body in (small, small + b" " * 10_000):
                async with connected(daemon) as stream:
                    size = f"Content-Length: {len(body)}"
                    await stream.send_all(ingest(daemon, size, body=body))
                    assert (await read_answer(stream)).status == 200


async def test_large_bodies_of_no_declared_size_leave_memory_for_small_ones(
    make_daemon: DaemonFactory, ingest: Ingest
) -> None:
    async with make_daemon(max_body_bytes=LIMIT, body_memory_bytes=4 * LIMIT) as daemon:
        large = ingest(daemon, "Transfer-Encoding: chunked") + chunk(b" " * (LIMIT - 2))
        async with AsyncExitStack() as stack:
            await _until_refused(daemon, stack, large, large + chunk(b"[]") + chunk(b""))
            body = json.dumps(daemon.entry()).encode()
            async with connected(daemon) as stream:
                await stream.send_all(ingest(daemon, f"Content-Length: {len(body)}", body=body))
                assert (await read_answer(stream)).status == 200


async def _until_refused(
    daemon: Daemon, stack: AsyncExitStack, unfinished: bytes, whole: bytes
) -> None:
    """Until the memory is spent on requests that do not end: so long a whole one is answered."""
    with trio.fail_after(PATIENCE_SECONDS):
        while True:
            holder = await stack.enter_async_context(connected(daemon))
            await send_what_is_taken(holder, unfinished)
            async with connected(daemon) as stream:
                await send_what_is_taken(stream, whole)
                answer = await read_answer(stream)
            if answer.status != 200:
                assert (answer.status, answer.code) == (503, "overloaded")
                return


async def _first_answer(*streams: trio.SocketStream) -> Answer:
    answers: list[Answer] = []
    async with trio.open_nursery() as nursery:

        async def wait(stream: trio.SocketStream) -> None:
            answers.append(await read_answer(stream))
            nursery.cancel_scope.cancel()

        for stream in streams:
            nursery.start_soon(wait, stream)
    return answers[0]


async def test_a_body_in_small_pieces_takes_no_more_memory_than_it_holds() -> None:
    """Nearly: as objects of their own they would take twenty times as much."""
    pieces, arrived = 20_000, 0
    taken: list[int] = []

    async def receive() -> Message:
        nonlocal arrived
        arrived += 1
        await trio.lowlevel.checkpoint()
        if arrived < pieces:
            return {"body": b"%02d" % (arrived % 100), "type": "http.request", "more_body": True}
        gc.collect()
        taken.append(tracemalloc.get_traced_memory()[0])
        return {"body": b"", "type": "http.request", "more_body": False}

    body = IncomingBody(receive, None, BodyMemory(MIB), 10.0)
    tracemalloc.start()
    try:
        data = await body.read(MIB)
    finally:
        tracemalloc.stop()
    assert data == b"".join(b"%02d" % (number % 100) for number in range(1, pieces))
    assert taken[0] < 8 * len(data)


async def test_pieces_of_all_sizes_keep_their_order(daemon: Daemon, ingest: Ingest) -> None:
    sizes = (1, 1023, 2, 1024, 1025, 3, 5000, 4, 4)
    meta = {str(number): str(number) * size for number, size in enumerate(sizes)}
    left = json.dumps(daemon.entry(meta=meta)).encode()
    async with connected(daemon) as stream:
        await stream.send_all(ingest(daemon, "Transfer-Encoding: chunked"))
        for size in sizes:
            await stream.send_all(chunk(left[:size]))
            left = left[size:]
        await stream.send_all(chunk(left) + b"0\r\n\r\n")
        assert (await read_answer(stream)).status == 200
    listed = await daemon.call("GET", f"/v1/projects/{daemon.project}/logs", daemon.key)
    assert listed.json()["logs"][0]["meta"] == meta


async def test_a_chunked_body_arrives_whole(daemon: Daemon, ingest: Ingest) -> None:
    async with connected(daemon) as stream:
        await stream.send_all(ingest(daemon, "Transfer-Encoding: chunked"))
        for piece in (b"[", b" ", b"]"):
            await stream.send_all(chunk(piece))
        await stream.send_all(b"0\r\n\r\n")
        assert (await read_answer(stream)).status == 200
