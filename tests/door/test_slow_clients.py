"""Clients that hold connections: the door takes them back."""

import pytest
import trio.testing
from live_daemon import Daemon, DaemonFactory
from raw_http import (
    PATIENCE_SECONDS,
    assert_healthy,
    connected,
    get,
    parse,
    read_answer,
    read_to_end,
    request,
)

from logd.door.server import HttpServer
from logd.door.stream import GuardedStream

pytestmark = pytest.mark.both_doors


@pytest.mark.parametrize("begun", [b"GET /livez HTTP/1.1\r\nHost: te", b"POST /v1/inge", b"G"])
async def test_a_head_that_does_not_get_done_is_answered_408(
    make_daemon: DaemonFactory, begun: bytes
) -> None:
    async with make_daemon(request_timeout_seconds=0.2) as daemon, connected(daemon) as stream:
        await stream.send_all(begun)
        answer = parse(await read_to_end(stream))
        assert answer is not None
        assert (answer.status, answer.code) == (408, "head_too_slow")


async def test_a_connection_without_a_byte_is_closed(make_daemon: DaemonFactory) -> None:
    async with make_daemon(request_timeout_seconds=0.2) as daemon, connected(daemon) as stream:
        assert await read_to_end(stream) == b""


@pytest.mark.parametrize("path", ["/livez", "/v1/projects/{project}/logs"])
async def test_the_second_head_has_a_deadline_too(make_daemon: DaemonFactory, path: str) -> None:
    async with make_daemon(request_timeout_seconds=0.2) as daemon, connected(daemon) as stream:
        credential = f"Authorization: Bearer {daemon.key}"
        head = get(path.format(project=daemon.project), credential)
        await stream.send_all(head)
        first = await read_answer(stream)
        assert first.status == 200
        await stream.send_all(head[:-5])
        answer = parse(first.rest + await read_to_end(stream))
        assert answer is not None
        assert answer.status == 408


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the heads of connections may take that the HTTP server gets, in order."""
    seconds: list[float] = []
    serve = HttpServer.serve

    async def note(server: HttpServer, stream: GuardedStream, head_seconds: float) -> None:
        seconds.append(head_seconds)
        await serve(server, stream, head_seconds)

    monkeypatch.setattr(HttpServer, "serve", note)
    return seconds


HEAD_SECONDS = 3.0


@pytest.mark.parametrize("first", [b"", get("/livez")], ids=["at once", "after another"])
async def test_a_head_that_the_lane_waited_for_has_no_more_time(
    make_daemon: DaemonFactory, handed_over: list[float], lane: bool, first: bytes
) -> None:
    """The lane waits for as long as it may become its own, and then it is the server's."""
    async with make_daemon(request_timeout_seconds=0.2) as daemon, connected(daemon) as stream:
        await stream.send_all(first)
        if first:
            assert (await read_answer(stream)).status == 200
        await stream.send_all(b"POST /v1/inge")
        answer = parse(await read_to_end(stream))
        assert answer is not None
        assert answer.code == "head_too_slow"
    assert handed_over == [0.0 if lane else 0.2]


async def test_a_head_that_stops_being_hot_has_the_rest_of_its_time(
    make_daemon: DaemonFactory, handed_over: list[float], lane: bool
) -> None:
    async with make_daemon(request_timeout_seconds=HEAD_SECONDS) as daemon:
        async with connected(daemon) as stream:
            await stream.send_all(b"POST /v1/inge")
            await trio.testing.wait_all_tasks_blocked()
            await stream.send_all(b"nious HTTP/1.1\r\n")
            await trio.testing.wait_all_tasks_blocked()
            await stream.send_all(b"Host: test\r\n\r\n")
            assert (await read_answer(stream)).status == 404
        if lane:
            assert handed_over[0] < HEAD_SECONDS
        async with connected(daemon) as stream:  # one that is whole has no more to do with it
            await stream.send_all(get("/v1/ingenious"))
            assert (await read_answer(stream)).status == 404
        assert handed_over[1] == HEAD_SECONDS


async def test_a_head_with_bare_newlines_is_not_waited_for(
    make_daemon: DaemonFactory, handed_over: list[float]
) -> None:
    async with make_daemon(request_timeout_seconds=HEAD_SECONDS) as daemon:
        for end in (b"\n\r\n", b"\n\n"):
            async with connected(daemon) as stream:
                await stream.send_all(b"GET /livez HTTP/1.1\nHost: test" + end)
                assert (await read_answer(stream)).status == 200
    assert handed_over == [HEAD_SECONDS] * 2


async def test_a_client_that_does_not_read_is_cut(make_daemon: DaemonFactory) -> None:
    async with make_daemon(stall_timeout_seconds=0.2) as daemon:
        await _store_large_entries(daemon)
        path = f"/v1/projects/{daemon.project}/logs?limit=1000"
        async with connected(daemon) as stream:
            await stream.send_all(get(path, f"Authorization: Bearer {daemon.key}"))
            await _until_cut(stream)
        await assert_healthy(daemon)


async def test_a_client_that_pipelines_and_does_not_read_is_cut(make_daemon: DaemonFactory) -> None:
    async with make_daemon(stall_timeout_seconds=0.2) as daemon:
        await _store_large_entries(daemon)
        path = f"/v1/projects/{daemon.project}/logs?limit=1000"
        async with connected(daemon) as stream:
            await stream.send_all(get(path, f"Authorization: Bearer {daemon.key}") * 5)
            await _until_cut(stream)
        await assert_healthy(daemon)


async def _until_cut(stream: trio.SocketStream) -> None:
    """Without reading: until the connection is no longer one."""
    with trio.fail_after(PATIENCE_SECONDS):
        while True:
            try:
                await stream.send_all(b"\r\n")
            except trio.BrokenResourceError:
                return
            await trio.sleep(0.05)


async def _store_large_entries(daemon: Daemon) -> None:
    """More than the sockets' buffers hold."""
    entry = daemon.entry(message="x" * 8000, meta={"filler": "y" * 60_000})
    for _ in range(3):
        response = await daemon.call("POST", "/v1/ingest", daemon.key, json=[entry] * 100)
        assert response.status_code == 200


async def test_at_the_cap_an_idle_connection_makes_room(make_daemon: DaemonFactory) -> None:
    async with make_daemon(max_connections=2) as daemon:
        await daemon.http.aclose()
        async with connected(daemon) as one, connected(daemon) as two, connected(daemon) as three:
            await one.send_all(get("/livez"))
            assert (await read_answer(one)).status == 200
            await two.send_all(get("/livez"))
            assert (await read_answer(two)).status == 200
            await three.send_all(get("/livez"))
            assert (await read_answer(three)).status == 200
            assert await read_to_end(one) == b"", "the one that was idle longest"
            await two.send_all(get("/livez"))
            assert (await read_answer(two)).status == 200


async def test_at_the_cap_a_connection_at_work_is_left_alone(make_daemon: DaemonFactory) -> None:
    async with make_daemon(max_connections=1) as daemon:
        await daemon.http.aclose()
        credential = f"Authorization: Bearer {daemon.key}"
        async with connected(daemon) as worker, connected(daemon) as waiting:
            head = request("POST", "/v1/ingest", credential, "Content-Length: 2")
            await worker.send_all(head + b"[")
            await waiting.send_all(get("/livez"))
            with trio.move_on_after(1.5) as long_enough:
                await read_answer(waiting)
            assert long_enough.cancelled_caught
            await worker.send_all(b"]")
            assert (await read_answer(worker)).status == 200
            assert (await read_answer(waiting)).status == 200


async def test_250_idle_connections_leave_room_for_work(make_daemon: DaemonFactory) -> None:
    async with make_daemon(max_connections=300) as daemon, trio.open_nursery() as nursery:
        for _ in range(250):
            await nursery.start(_hold_half_a_head, daemon)
        await assert_healthy(daemon)
        nursery.cancel_scope.cancel()


async def _hold_half_a_head(
    daemon: Daemon, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    async with connected(daemon) as stream:
        await stream.send_all(b"GET /livez HTTP/1.1\r\n")
        task_status.started()
        await trio.sleep_forever()
