"""Pages of entries that are as large as entries may be."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio
from live_daemon import Daemon, DaemonFactory
from raw_http import PATIENCE_SECONDS, connected, get, read_answer

from logd.config import KIB, MIB

pytestmark = pytest.mark.both_doors

LIMIT = 128 * KIB


async def store(daemon: Daemon, count: int) -> list[str]:
    """The ids, newest first. 70 KB an entry, of which some has to be escaped."""
    ids: list[str] = []
    for number in range(count):
        entry = daemon.entry(
            message='"\n\x00é' * 1000, tags=[f"n-{number}"], meta={"n": number, "x": "y" * 65_000}
        )
        answer = await daemon.call("POST", "/v1/ingest", daemon.key, json=entry)
        assert answer.status_code == 200
        ids += answer.json()["ids"]
    return ids[::-1]


def page_of(daemon: Daemon, limit: int) -> bytes:
    """A request."""
    path = f"/v1/projects/{daemon.project}/logs?limit={limit}"
    return get(path, f"Authorization: Bearer {daemon.key}")


async def content(daemon: Daemon, path: str) -> bytes:
    answer = await daemon.call("GET", path, daemon.key)
    assert answer.status_code == 200
    return answer.content


@pytest.mark.parametrize("limit", [1, 14, 15, 16, 50, 60, 1000])
async def test_a_page_holds_its_entries_byte_for_byte(daemon: Daemon, limit: int) -> None:
    logs = f"/v1/projects/{daemon.project}/logs"
    ids = await store(daemon, 60)
    entries = [await content(daemon, f"{logs}/{log_id}") for log_id in ids[:limit]]
    page = await content(daemon, f"{logs}?limit={limit}")
    cursor = json.loads(page)["nextCursor"]
    assert (cursor is None) == (limit >= 60)
    tail = b'],"nextCursor":%b,"total":60}' % json.dumps(cursor).encode()
    assert page == b'{"logs":[' + b",".join(entries) + tail


async def test_large_pages_in_flight_are_as_many_as_the_memory_for_bodies_has_room_for(
    make_daemon: DaemonFactory,
) -> None:
    async with make_daemon(max_body_bytes=LIMIT, body_memory_bytes=2 * LIMIT - 1) as daemon:
        await store(daemon, 200)
        large, small = page_of(daemon, 1000), page_of(daemon, 10)
        async with connected(daemon) as first, connected(daemon) as second:
            await first.send_all(large)
            begun = bytes(await first.receive_some(100))  # and reads no more, for now
            await second.send_all(large)
            refused = await read_answer(second)
            assert (refused.status, refused.code) == (503, "overloaded")
            await second.send_all(small)
            assert (await read_answer(second)).status == 200
            answer = await read_answer(first, begun)
            assert answer.status == 200
            assert len(json.loads(answer.body)["logs"]) == 200
            await first.send_all(small)
            assert (await read_answer(first)).status == 200
            await second.send_all(large)
            assert (await read_answer(second)).status == 200


async def test_pages_that_are_not_read_leave_memory_for_entries_and_small_pages(
    make_daemon: DaemonFactory,
) -> None:
    async with make_daemon(max_body_bytes=LIMIT, body_memory_bytes=4 * LIMIT) as daemon:
        await store(daemon, 200)
        large, small = page_of(daemon, 1000), page_of(daemon, 1)
        async with AsyncExitStack() as stack:
            begun = 0
            for _ in range(4):
                reader = await stack.enter_async_context(connected(daemon))
                await reader.send_all(large)
                begun += bytes(await reader.receive_some(12)) == b"HTTP/1.1 200"
            assert begun >= 1
            async with connected(daemon) as stream:
                await stream.send_all(large)
                refused = await read_answer(stream)
                assert (refused.status, refused.code) == (503, "overloaded")
                await stream.send_all(small)
                assert (await read_answer(stream)).status == 200
            for many in (1, 100):
                body = [daemon.entry()] * many
                answer = await daemon.call("POST", "/v1/ingest", daemon.key, json=body)
                assert answer.status_code == 200


async def test_small_pages_that_are_not_read_are_bounded_too(make_daemon: DaemonFactory) -> None:
    memory = 4 * LIMIT
    async with make_daemon(max_body_bytes=LIMIT, body_memory_bytes=memory) as daemon:
        await store(daemon, 12)
        logs, page = f"/v1/projects/{daemon.project}/logs", page_of(daemon, 1000)
        assert 0.8 * MIB < len(await content(daemon, f"{logs}?limit=1000")) < MIB
        async with AsyncExitStack() as stack:
            begun = []
            for _ in range(20):
                reader = await stack.enter_async_context(_narrow(daemon))
                await reader.send_all(page)
                with trio.fail_after(PATIENCE_SECONDS):
                    begun.append(bytes(await reader.receive_some(12)))
            # Each counts an eighth of the memory, and all of them half of it.
            assert begun == [b"HTTP/1.1 200"] * 4 + [b"HTTP/1.1 503"] * 16
            answer = await daemon.call("POST", "/v1/ingest", daemon.key, json=daemon.entry())
            assert answer.status_code == 200
            await content(daemon, f"{logs}?limit=1")
        with trio.fail_after(PATIENCE_SECONDS):
            while True:  # they are gone, and soon the daemon knows
                answer = await daemon.call("GET", f"{logs}?limit=1000", daemon.key)
                if answer.status_code == 200:
                    return
                assert answer.json()["code"] == "overloaded"


@asynccontextmanager
async def _narrow(daemon: Daemon) -> AsyncIterator[trio.SocketStream]:
    """A connection on which little is under way that was not read."""
    client = trio.socket.socket()
    client.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, 4096)
    await client.connect(("127.0.0.1", daemon.port))
    async with trio.SocketStream(client) as stream:
        yield stream


async def test_pages_asked_again_are_the_same_though_only_some_of_them_is_remembered(
    daemon: Daemon,
) -> None:
    logs = f"/v1/projects/{daemon.project}/logs"
    sizes = [1, 600, 5000]  # more of them than are remembered, and some that never are
    entries = [daemon.entry(message=f"{n} " + "x" * sizes[n % 3]) for n in range(3000)]
    for start in range(0, 3000, 1000):
        answer = await daemon.call(
            "POST", "/v1/ingest", daemon.key, json=entries[start : start + 1000]
        )
        assert answer.status_code == 200

    async def pages() -> list[bytes]:
        found, cursor = [], ""
        while True:
            found.append(await content(daemon, f"{logs}?limit=300{cursor}"))
            following = json.loads(found[-1])["nextCursor"]
            if following is None:
                return found
            cursor = f"&cursor={following}"

    first = await pages()
    shown = [entry for page in first for entry in json.loads(page)["logs"]]
    assert [entry["message"] for entry in shown] == [e["message"] for e in entries[::-1]]
    assert await pages() == first
    assert await pages() == first


async def test_what_is_remembered_of_a_page_is_of_its_project_alone(daemon: Daemon) -> None:
    path = f"/v1/orgs/{daemon.org}/projects"
    answer = await daemon.call("POST", path, daemon.admin, json={"name": "Other"})
    other = answer.json()["id"]
    path = f"/v1/projects/{other}/keys"
    key = (await daemon.call("POST", path, daemon.admin, json={"name": "k"})).json()["key"]
    projects = [(daemon.project, daemon.key, "of the one"), (other, key, "of the other")]
    for project, secret, message in projects:
        entry = daemon.entry(projectId=project, message=message)
        answer = await daemon.call("POST", "/v1/ingest", secret, json=entry)
        assert answer.status_code == 200, answer.text
    for _ in range(2):
        for project, secret, message in projects:
            answer = await daemon.call("GET", f"/v1/projects/{project}/logs", secret)
            (shown,) = answer.json()["logs"]
            assert (shown["projectId"], shown["message"]) == (project, message)
