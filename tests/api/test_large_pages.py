"""Pages of entries that are as large as entries may be."""

import json

import pytest
from live_daemon import Daemon, DaemonFactory
from raw_http import connected, get, read_answer

from logd.config import KIB

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
        large, small = (
            get(
                f"/v1/projects/{daemon.project}/logs?limit={limit}",
                f"Authorization: Bearer {daemon.key}",
            )
            for limit in (1000, 10)
        )
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
