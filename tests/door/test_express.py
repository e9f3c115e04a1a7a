"""Requests of one entry: begun where they arrive, answered out of the commit, yet as any other."""

import errno
import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
import trio
import trio.testing
from live_daemon import Daemon, DaemonFactory
from raw_http import (
    Answer,
    Stream,
    assert_healthy,
    connected,
    post_entry,
    read_answer,
    read_to_end,
    request,
)
from waiting import until

from logd.api.dispatch import Api
from logd.daemon import ingest, queries
from logd.daemon.bodies import decode_small
from logd.door import express
from logd.entry import ProjectId
from logd.store.limits import StoreLimits

SLOW_SECONDS = 0.05


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncs that the event loop does not wait for."""
    sync: Callable[[int], None] = os.fdatasync

    def slowly(descriptor: int) -> None:
        time.sleep(SLOW_SECONDS)
        sync(descriptor)

    monkeypatch.setattr(os, "fdatasync", slowly)


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncs that the event loop waits for."""
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: None)


def ids(*answers: Answer) -> list[str]:
    assert [answer.status for answer in answers] == [200] * len(answers)
    return [json.loads(answer.body)["ids"][0] for answer in answers]


async def store(daemon: Daemon, stream: Stream, **fields: Any) -> list[str]:
    """Its id, when it is stored."""
    await stream.send_all(post_entry(daemon, **fields))
    return ids(await read_answer(stream))


async def listed(daemon: Daemon) -> list[str]:
    """Ids, in order of arrival."""
    path = f"/v1/projects/{daemon.project}/logs?limit=1000"
    logs = (await daemon.call("GET", path, daemon.key)).json()["logs"]
    return sorted((log["id"] for log in logs), key=lambda one: one[-12:])


async def test_each_is_visible_when_it_is_answered(make_daemon: DaemonFactory) -> None:
    async with make_daemon() as daemon, connected(daemon) as stream:
        stored = []
        for number in range(30):
            stored += await store(daemon, stream, message=f"m {number}")
            assert await listed(daemon) == stored


async def test_a_revoked_key_and_a_deleted_project_are_refused_at_once(
    make_daemon: DaemonFactory,
) -> None:
    async with make_daemon() as daemon, connected(daemon) as stream:
        await store(daemon, stream)
        await store(daemon, stream)
        keys = f"/v1/projects/{daemon.project}/keys"
        (key,) = (await daemon.call("GET", keys, daemon.admin)).json()
        reply = await daemon.call("DELETE", f"{keys}/{key['id']}", daemon.admin)
        assert reply.status_code == 204
        await stream.send_all(post_entry(daemon))
        answer = await read_answer(stream)
        assert (answer.status, answer.code) == (401, "credential_unknown")


async def test_its_refusals_are_those_of_the_other_way(make_daemon: DaemonFactory) -> None:
    async with make_daemon() as daemon:
        await daemon.call("POST", "/v1/ingest", daemon.key, json=daemon.entry())
        wrong: list[dict[str, Any]] = [
            {"level": "LOUD"},
            {"projectId": "0b7e8f0a-52c1-4c0e-9d0a-7f4f3c2b1a00"},
            {"source": ""},
            {"unknown": 1},
        ]
        for fields in wrong:
            answers = []
            marks: list[tuple[str, ...]] = [(), ("TE: trailers",)]
            for mark in marks:
                async with connected(daemon) as stream:
                    await stream.send_all(post_entry(daemon, "X-Request-Id: same", *mark, **fields))
                    answers.append(await read_answer(stream))
            assert answers[0].status >= 400
            assert answers[0].body == answers[1].body


async def test_pipelined_requests_are_answered_in_order(make_daemon: DaemonFactory) -> None:
    async with make_daemon() as daemon, connected(daemon) as stream:
        await stream.send_all(b"".join(post_entry(daemon, message=f"m {n}") for n in range(5)))
        answers, rest = [], b""
        for _ in range(5):
            answers.append(await read_answer(stream, rest))
            rest = answers[-1].rest
        assert ids(*answers) == await listed(daemon)


async def test_queries_that_were_sent_ahead_leave_turns_to_others(
    make_daemon: DaemonFactory,
) -> None:
    """The event loop may stand still for each of them, but not for all."""
    requests, turns = 200, 40
    async with make_daemon() as daemon, connected(daemon) as stream:
        credential = f"Authorization: Bearer {daemon.key}"
        data = request("GET", f"/v1/projects/{daemon.project}/logs?limit=1", credential)
        await stream.send_all(data)
        assert (await read_answer(stream)).status == 200
        await stream.send_all(data * requests)
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        came = await stream.receive_some(1 << 20)
        assert came.count(b"HTTP/1.1 200") < requests / 2


@pytest.mark.usefixtures("slow_disk")
async def test_what_comes_while_one_is_under_way_waits_for_it(make_daemon: DaemonFactory) -> None:
    async with make_daemon() as daemon, connected(daemon) as stream:
        await stream.send_all(post_entry(daemon))
        first = await read_answer(stream)
        for _ in range(4):
            await stream.send_all(post_entry(daemon))
            await trio.sleep(SLOW_SECONDS / 5)
        answers, rest = [first], b""
        for _ in range(4):
            answers.append(await read_answer(stream, rest))
            rest = answers[-1].rest
        assert ids(*answers) == await listed(daemon)


@pytest.mark.usefixtures("slow_disk")
async def test_one_that_was_sent_ahead_of_an_answer_is_answered(make_daemon: DaemonFactory) -> None:
    """Though nothing else comes that would make the daemon look."""
    async with make_daemon() as daemon, connected(daemon) as stream:
        stored = await store(daemon, stream)
        for _ in range(3):
            await stream.send_all(post_entry(daemon))
            await trio.sleep(SLOW_SECONDS / 2)
            await stream.send_all(post_entry(daemon))
            with trio.fail_after(10):
                first = await read_answer(stream)
                stored += ids(first, await read_answer(stream, first.rest))
        assert await listed(daemon) == stored


async def test_one_behind_a_request_that_fills_a_read_is_answered(
    make_daemon: DaemonFactory,
) -> None:
    """The daemon is told of both at once, and reads the first alone."""
    async with make_daemon() as daemon, connected(daemon) as stream:
        await store(daemon, stream)
        large = filling(daemon, 65_536)
        for _ in range(30):  # the kernel takes larger pieces at once after some
            await stream.send_all(large)
            assert (await read_answer(stream)).status == 200
        await trio.testing.wait_all_tasks_blocked()
        both = large + post_entry(daemon)
        assert os.write(stream.socket.fileno(), both) == len(both)
        first = await read_answer(stream)
        assert first.status == 200
        ids(await read_answer(stream, first.rest))


def filling(daemon: Daemon, size: int) -> bytes:
    """A request of so many bytes."""
    long = {"filler": "x" * 50_000}
    rest = size - len(post_entry(daemon, meta=long, message=""))
    data = post_entry(daemon, meta={"filler": "x" * (50_000 + rest)}, message="")
    assert len(data) == size
    return data


async def test_a_request_may_come_in_pieces(make_daemon: DaemonFactory) -> None:
    async with make_daemon() as daemon, connected(daemon) as stream:
        stored = []
        data = post_entry(daemon)
        for cut in range(1, len(data), 17):
            await stream.send_all(data[:cut])
            await trio.sleep(0.001)
            await stream.send_all(data[cut:])
            stored += ids(await read_answer(stream))
        assert await listed(daemon) == stored


@pytest.mark.usefixtures("slow_disk")
async def test_on_a_slow_disk_all_are_answered(make_daemon: DaemonFactory) -> None:
    stored: list[str] = []

    async def produce(daemon: Daemon) -> None:
        async with connected(daemon) as stream:
            for _ in range(5):
                stored.extend(await store(daemon, stream))

    async with make_daemon() as daemon:
        async with trio.open_nursery() as nursery:
            for _ in range(12):
                nursery.start_soon(produce, daemon)
        assert sorted(await listed(daemon)) == sorted(stored)


@pytest.mark.usefixtures("slow_disk")
async def test_much_that_comes_at_once_is_not_decoded_at_once(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once: list[int] = [0]

    def decoding(project: ProjectId, bodies: Sequence[bytes], *rest: Any) -> Any:
        at_once[-1] += sum(map(len, bodies))
        return decode_small(project, bodies, *rest)

    async def note_turns_of_the_loop() -> None:
        while True:
            await trio.lowlevel.checkpoint()
            if at_once[-1]:
                at_once.append(0)

    monkeypatch.setattr(ingest, "decode_small", decoding)
    async with make_daemon() as daemon, AsyncExitStack() as stack, trio.open_nursery() as nursery:
        streams = [await stack.enter_async_context(connected(daemon)) for _ in range(48)]
        for stream in streams:
            await store(daemon, stream)
        nursery.start_soon(note_turns_of_the_loop)
        data = post_entry(daemon, meta={"filler": "x" * 40_000})
        for stream in streams:
            assert os.write(stream.socket.fileno(), data) == len(data)
        large = [ids(await read_answer(stream)) for stream in streams]
        nursery.cancel_scope.cancel()
        assert len(await listed(daemon)) == 2 * len(large)
    assert sum(at_once) > 48 * 40_000
    assert max(at_once) < 1 << 20


@pytest.mark.usefixtures("quick_disk")
async def test_a_quiet_project_is_frozen_after_them(make_daemon: DaemonFactory) -> None:
    """The one among them that makes it worth that is told to nobody but the writer."""
    async with make_daemon() as daemon, connected(daemon) as stream:
        worth = StoreLimits().min_freeze_entries
        entries = [daemon.entry(message=f"m {n}") for n in range(worth - 5)]
        await daemon.call("POST", "/v1/ingest", daemon.key, json=entries)
        for number in range(10):
            await store(daemon, stream, message=f"single {number}")
        await until(lambda: any(daemon.data.glob("projects/*/segments/*.seg")))
        assert len(await listed(daemon)) == 1000


async def test_a_failed_sync_is_told_with_the_headers_of_every_response(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_daemon() as daemon, connected(daemon) as stream:
        await stream.send_all(post_entry(daemon))
        good = await read_answer(stream)
        ids(good)

        def fail(descriptor: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, "fdatasync", fail)
        await stream.send_all(post_entry(daemon, "X-Request-Id: mine"))
        answer = await read_answer(stream)
        monkeypatch.undo()
        assert (answer.status, answer.headers["x-request-id"]) == (503, "mine")
        assert answer.headers["content-type"] == "application/problem+json"
        assert set(good.headers) <= set(answer.headers)


@pytest.mark.usefixtures("slow_disk")
async def test_one_under_way_is_answered_when_the_daemon_stops(make_daemon: DaemonFactory) -> None:
    async with make_daemon() as daemon, connected(daemon) as stream:
        await store(daemon, stream)
        await stream.send_all(post_entry(daemon))
        await trio.sleep(SLOW_SECONDS / 2)
        daemon.stop.set()
        answer = await read_answer(stream)
        ids(answer)
        assert answer.headers["connection"] == "close"
        assert await read_to_end(stream) == b""


@pytest.mark.usefixtures("slow_disk")
async def test_a_client_that_is_gone_leaves_its_entry_and_harms_nobody(
    make_daemon: DaemonFactory,
) -> None:
    async with make_daemon() as daemon:
        await daemon.call("POST", "/v1/ingest", daemon.key, json=daemon.entry())
        for _ in range(10):
            async with connected(daemon) as stream:
                await stream.send_all(post_entry(daemon))
                await trio.sleep(SLOW_SECONDS / 5)
        with trio.fail_after(20):
            while len(await listed(daemon)) < 11:  # noqa: ASYNC110  # no event comes of it
                await trio.sleep(SLOW_SECONDS)
        await assert_healthy(daemon)


@pytest.mark.usefixtures("slow_disk")
async def test_of_those_that_come_together_each_gets_its_own_answer(
    make_daemon: DaemonFactory,
) -> None:
    """Good ones, bad ones, arrays and lines, of known and unknown keys, at the same time: as each
    alone, behind a mark that keeps it out of the group."""
    async with make_daemon() as daemon:
        await daemon.call("POST", "/v1/ingest", daemon.key, json=daemon.entry())
        single = json.dumps(daemon.entry(message="x")).encode()
        json_head = f"Authorization: Bearer {daemon.key}"
        kinds: list[tuple[tuple[str, ...], bytes]] = [
            ((json_head,), single),
            ((json_head,), json.dumps(daemon.entry(level="LOUD")).encode()),
            ((json_head,), b"[" + single + b"," + single + b"]"),
            ((json_head,), single + b"," + single),
            ((json_head,), single[:-1]),
            ((json_head,), b""),
            ((json_head, "Content-Type: application/x-ndjson"), single + b"\n" + single + b"\n"),
            ((json_head, "Content-Type: application/x-ndjson"), b"\n"),
            (("Authorization: Bearer ldk_wrong",), single),
            ((f"Authorization: Bearer {daemon.admin}",), single),
            ((json_head,), single),
        ]

        async def answer_to(headers: tuple[str, ...], body: bytes) -> Answer:
            async with connected(daemon) as stream:
                length = f"Content-Length: {len(body)}"
                data = request(
                    "POST", "/v1/ingest", *headers, length, "X-Request-Id: same", body=body
                )
                await stream.send_all(data)
                return await read_answer(stream)

        alone = [await answer_to((*headers, "TE: trailers"), body) for headers, body in kinds]
        together: dict[int, Answer] = {}

        async def ask(number: int) -> None:
            together[number] = await answer_to(*kinds[number % len(kinds)])

        async with trio.open_nursery() as nursery:
            for number in range(4 * len(kinds)):
                nursery.start_soon(ask, number)
        stored = []
        for number, answer in together.items():
            expected = alone[number % len(kinds)]
            assert answer.status == expected.status
            if answer.status == 200:
                found = json.loads(answer.body)["ids"]
                assert len(found) == len(json.loads(expected.body)["ids"])
                stored += found
            else:
                assert answer.body == expected.body
        stored += [one for answer in alone for one in json.loads(answer.body).get("ids", [])]
        assert len(stored) == len(set(stored)) == 5 * (2 + 2 + 2)
        assert len(set(await listed(daemon)) - set(stored)) == 1  # the first one
        assert set(stored) <= set(await listed(daemon))


def question(daemon: Daemon, path: str, *headers: str) -> bytes:
    credential = f"Authorization: Bearer {daemon.key}"
    return request("GET", f"/v1/projects/{daemon.project}/logs{path}", credential, *headers)


@pytest.mark.parametrize("path", ["/stats", "", "?level=ERROR&limit=3", "?level=WARN"])
async def test_what_is_at_hand_is_answered_without_a_task(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(queries, "_AT_HAND_SECONDS", 10.0)
    monkeypatch.setattr(express, "_AT_ONCE_SECONDS", 10.0)
    async with make_daemon() as daemon, connected(daemon) as stream:
        await store(daemon, stream, level="ERROR")
        async with connected(daemon) as other:
            await other.send_all(question(daemon, path, "TE: trailers"))
            expected = await read_answer(other)
        monkeypatch.setattr(Api, "answer", None)
        for _ in range(3):
            await stream.send_all(question(daemon, path))
            answer = await read_answer(stream)
            assert (answer.status, answer.body) == (200, expected.body)


async def test_questions_are_refused_as_on_the_other_way(make_daemon: DaemonFactory) -> None:
    async with make_daemon() as daemon, connected(daemon) as stream:
        await store(daemon, stream)
        other_project = request(
            "GET",
            "/v1/projects/0b7e8f0a-52c1-4c0e-9d0a-7f4f3c2b1a00/logs",
            f"Authorization: Bearer {daemon.key}",
            "X-Request-Id: same",
        )
        nobody = request("GET", f"/v1/projects/{daemon.project}/logs", "X-Request-Id: same")
        refused = [
            question(daemon, path, "X-Request-Id: same")
            for path in (
                "?level=LOUD",
                "?limit=0",
                "?cursor=x",
                "?search=%22",
                "?more=1",
                "?from=x",
            )
        ]
        for data in [*refused, other_project, nobody]:
            await stream.send_all(data)
            answer = await read_answer(stream)
            assert answer.status >= 400
            async with connected(daemon) as other:
                await other.send_all(data.replace(b"X-Request-Id", b"TE: trailers\r\nX-Request-Id"))
                expected = await read_answer(other)
            assert (answer.status, answer.body) == (expected.status, expected.body)


async def test_a_question_is_not_helped_out_by_the_one_behind_it(
    make_daemon: DaemonFactory,
) -> None:
    """The first names no host, the second does."""
    async with make_daemon() as daemon, connected(daemon) as stream:
        await store(daemon, stream)
        second = question(daemon, "/stats")
        (host,) = [line for line in second.split(b"\r\n") if line.lower().startswith(b"host:")]
        await stream.send_all(second.replace(host + b"\r\n", b"") + second)
        assert (await read_answer(stream)).status == 400


async def test_an_answer_that_the_client_does_not_take_at_once_comes_whole(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the connection is idle after it as any other: it does not owe a head at once."""
    monkeypatch.setattr(queries, "_AT_HAND_SECONDS", 10.0)
    head_seconds = 0.2
    async with make_daemon(request_timeout_seconds=head_seconds) as daemon:
        entries = [daemon.entry(message=f"{n} " + "x" * 8000) for n in range(100)]
        stored = await daemon.call("POST", "/v1/ingest", daemon.key, json=entries)
        assert stored.status_code == 200
        socket = trio.socket.socket()
        socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, 4096)
        await socket.connect(("127.0.0.1", daemon.port))
        async with trio.SocketStream(socket) as stream:
            for _ in range(2):
                await stream.send_all(question(daemon, ""))
                await trio.sleep(0.05)
                answer = await read_answer(stream)
                logs = json.loads(answer.body)["logs"]
                assert [log["id"] for log in reversed(logs)] == stored.json()["ids"]
                await trio.sleep(head_seconds + 1.5)
            await stream.send_all(question(daemon, "/stats"))
            assert (await read_answer(stream)).status == 200


@pytest.mark.usefixtures("quick_disk")
async def test_those_who_store_and_ask_by_turns_see_what_they_stored(
    make_daemon: DaemonFactory,
) -> None:
    """Questions also come while the event loop stands still for commits."""

    async def work(daemon: Daemon, name: int) -> None:
        async with connected(daemon) as stream:
            for number in range(20):
                await store(daemon, stream, message=f"worker{name} {number}")
                await stream.send_all(question(daemon, f"?search=worker{name}&limit=1"))
                answer = await read_answer(stream)
                assert answer.status == 200
                page = json.loads(answer.body)
                assert page["total"] == number + 1
                assert page["logs"][0]["message"] == f"worker{name} {number}"

    async with make_daemon() as daemon, trio.open_nursery() as nursery:
        for name in range(12):
            nursery.start_soon(work, daemon, name)
