"""Clients that close their side when they have sent their request: they still read."""

import json
import os
import socket

import pytest
import trio.testing
from live_daemon import Daemon
from raw_http import connected, get, parse, post_entry, read_answer, read_to_end, request

pytestmark = pytest.mark.both_doors


def chunked(daemon: Daemon) -> bytes:
    body = json.dumps(daemon.entry()).encode()
    head = request(
        "POST",
        "/v1/ingest",
        f"Authorization: Bearer {daemon.key}",
        "Transfer-Encoding: chunked",
    )
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


async def said_to(daemon: Daemon, data: bytes, *, known: bool) -> bytes:
    """What comes back for bytes that arrive together with the end of what the client sends.
    `known`: after another request on the connection."""
    async with connected(daemon) as stream:
        if known:
            await stream.send_all(get("/livez"))
            assert (await read_answer(stream)).status == 200
            await trio.testing.wait_all_tasks_blocked()
        os.write(stream.socket.fileno(), data)
        stream.socket.shutdown(socket.SHUT_WR)
        return await read_to_end(stream)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    "headers", [(), ("Connection: close",), ("Expect: 100-continue",), ("TE: trailers",)]
)
async def test_entries_are_stored_and_answered(
    daemon: Daemon, headers: tuple[str, ...], known: bool
) -> None:
    for count in range(1, 4):
        received = await said_to(daemon, post_entry(daemon, *headers), known=known)
        assert received.count(b"HTTP/1.1 200") == 1
        assert received.endswith(b"]}")
        assert await stored(daemon) == count
    received = await said_to(daemon, chunked(daemon), known=known)
    assert received.startswith(b"HTTP/1.1 200")


async def test_all_that_were_sent_ahead_are_answered(daemon: Daemon) -> None:
    received = await said_to(daemon, post_entry(daemon) * 3, known=True)
    assert received.count(b"HTTP/1.1 200") == 3
    assert await stored(daemon) == 3


async def test_what_was_created_is_told(daemon: Daemon) -> None:
    body = json.dumps({"name": "Other", "slug": "other"}).encode()
    head = request(
        "POST",
        "/v1/orgs",
        f"Authorization: Bearer {daemon.admin}",
        f"Content-Length: {len(body)}",
    )
    received = await said_to(daemon, head + body, known=False)
    answer = parse(received)
    assert answer is not None
    assert (answer.status, json.loads(answer.body)["slug"]) == (201, "other")


async def test_a_body_that_was_not_all_sent_stores_nothing(daemon: Daemon) -> None:
    received = await said_to(daemon, post_entry(daemon)[:-1], known=False)
    assert b" 200 " not in received
    assert await stored(daemon) == 0


@pytest.mark.parametrize("path", ["", "/stats"])
async def test_a_question_ends_its_connection_answered_or_not(daemon: Daemon, path: str) -> None:
    await daemon.call("POST", "/v1/ingest", daemon.key, json=daemon.entry())
    credential = f"Authorization: Bearer {daemon.key}"
    question = get(f"/v1/projects/{daemon.project}/logs{path}", credential)
    for _ in range(5):
        received = await said_to(daemon, question, known=True)
        assert not received or received.endswith(b"}")


async def stored(daemon: Daemon) -> int:
    path = f"/v1/projects/{daemon.project}/logs/stats"
    return int((await daemon.call("GET", path, daemon.key)).json()["INFO"])
