"""SIGTERM: the listener closes, requests in flight finish, nothing keeps the process."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trio
from live_daemon import Daemon, DaemonFactory
from raw_http import (
    PATIENCE_SECONDS,
    assert_healthy,
    connected,
    get,
    read_answer,
    read_to_end,
    request,
)

from logd.api.dispatch import Api
from logd.daemon import queries
from logd.daemon.admin_client import admin_call
from logd.daemon.admin_requests import UserAdd
from logd.door import express
from logd.errors import DirectoryLocked
from logd.store.wal import WalWriter


async def test_a_request_in_flight_is_finished_and_new_ones_find_no_listener(
    daemon: Daemon,
) -> None:
    body = b"[]"
    async with connected(daemon) as stream:
        await stream.send_all(
            request(
                "POST",
                "/v1/ingest",
                f"Authorization: Bearer {daemon.key}",
                "Expect: 100-continue",
                f"Content-Length: {len(body)}",
            )
        )
        interim = await read_answer(stream)  # so the request is under way
        daemon.stop.set()
        await _until_refused(daemon)
        await stream.send_all(body)
        answer = await read_answer(stream, interim.rest)
        assert answer.status == 200
        assert answer.headers["connection"] == "close"
        assert await read_to_end(stream) == b""
    with trio.fail_after(PATIENCE_SECONDS):
        await daemon.stopped.wait()


async def _until_refused(daemon: Daemon) -> None:
    with trio.fail_after(PATIENCE_SECONDS):
        while True:
            try:
                async with connected(daemon):
                    await trio.sleep(0.01)
            except OSError:
                return


@pytest.mark.both_doors
@pytest.mark.parametrize("path", ["/livez", "/v1/projects/{project}/logs"])
async def test_idle_connections_are_closed_at_once(make_daemon: DaemonFactory, path: str) -> None:
    async with make_daemon(shutdown_grace_seconds=3600) as daemon, connected(daemon) as stream:
        await stream.send_all(get(path.format(project=daemon.project)))
        await read_answer(stream)
        daemon.stop.set()
        assert await read_to_end(stream) == b""
        with trio.fail_after(PATIENCE_SECONDS):
            await daemon.stopped.wait()


@pytest.mark.both_doors
async def test_a_request_that_outlasts_the_grace_is_cut(make_daemon: DaemonFactory) -> None:
    async with make_daemon(shutdown_grace_seconds=0.2) as daemon, connected(daemon) as stream:
        head = request("POST", "/v1/ingest", f"Authorization: Bearer {daemon.key}")
        await stream.send_all(head[:-2] + b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n")
        await read_answer(stream)
        daemon.stop.set()
        assert b" 200 " not in await read_to_end(stream)
        with trio.fail_after(PATIENCE_SECONDS):
            await daemon.stopped.wait()


@pytest.mark.both_doors
async def test_a_reader_that_stalls_does_not_keep_the_process(make_daemon: DaemonFactory) -> None:
    async with make_daemon(shutdown_grace_seconds=0.2, stall_timeout_seconds=3600) as daemon:
        entry = daemon.entry(message="x" * 8000, meta={"filler": "y" * 60_000})
        for _ in range(3):
            await daemon.call("POST", "/v1/ingest", daemon.key, json=[entry] * 100)
        path = f"/v1/projects/{daemon.project}/logs?limit=1000"
        async with connected(daemon) as stream:
            await stream.send_all(get(path, f"Authorization: Bearer {daemon.key}"))
            assert (await stream.receive_some(1000)).startswith(b"HTTP/1.1 200")
            daemon.stop.set()
            with trio.fail_after(PATIENCE_SECONDS):
                await daemon.stopped.wait()


async def test_an_answer_that_is_taken_after_the_stop_ends_its_connection(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was given at once, but for what the client did not take."""
    monkeypatch.setattr(queries, "_AT_HAND_SECONDS", 10.0)
    monkeypatch.setattr(express, "_AT_ONCE_SECONDS", 10.0)
    async with make_daemon(shutdown_grace_seconds=3600) as daemon:
        entries = [daemon.entry(message="x" * 8000) for _ in range(100)]
        stored = await daemon.call("POST", "/v1/ingest", daemon.key, json=entries)
        assert stored.status_code == 200
        with trio.socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await client.connect(("127.0.0.1", daemon.port))
            stream = trio.SocketStream(client)
            monkeypatch.setattr(Api, "answer", None)
            path = f"/v1/projects/{daemon.project}/logs"
            await stream.send_all(get(path, f"Authorization: Bearer {daemon.key}"))
            begun = await stream.receive_some(1)
            daemon.stop.set()
            await _until_refused(daemon)
            answer = await read_answer(stream, bytes(begun))
            assert answer.status == 200
            assert await read_to_end(stream) == b""
        with trio.fail_after(PATIENCE_SECONDS):
            await daemon.stopped.wait()


@pytest.mark.both_doors
async def test_what_comes_with_the_stop_is_answered_or_not_stored(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On an open connection, at any moment of the first steps of the stop. The disk is slow."""
    sync = WalWriter.sync

    def syncing(wal: WalWriter) -> None:
        time.sleep(0.02)
        sync(wal)

    monkeypatch.setattr(WalWriter, "sync", syncing)
    answered: set[str] = set()
    before: dict[str, Daemon] = {}
    for steps in range(12):
        data = tmp_path / str(steps)
        async with make_daemon(data) as daemon, connected(daemon) as stream:
            await stream.send_all(_partial(daemon, "before"))
            assert (await read_answer(stream)).status == 200
            daemon.stop.set()
            for _ in range(steps % 4):
                await trio.lowlevel.checkpoint()
            os.write(stream.socket.fileno(), _partial(daemon, "late"))  # without another step
            if b" 200 " in await read_to_end(stream):
                answered.add(data.name)
            before[data.name] = daemon
    stored = set()
    for name, was in before.items():
        async with make_daemon(tmp_path / name) as daemon:
            path = f"/v1/projects/{was.project}/logs?search=late"
            reply = await daemon.call("GET", path, was.key)
            if reply.json()["total"]:
                stored.add(name)
    assert stored == answered


def _partial(daemon: Daemon, message: str) -> bytes:
    """A request of the kind that every door takes its time for."""
    body = json.dumps(daemon.entry(message=message)).encode()
    headers = (f"Authorization: Bearer {daemon.key}", f"Content-Length: {len(body)}")
    return request("POST", "/v1/ingest?partial=true", *headers, body=body)


async def test_readyz_says_that_the_daemon_is_stopping(make_daemon: DaemonFactory) -> None:
    async with make_daemon(shutdown_grace_seconds=3600) as daemon, connected(daemon) as stream:
        await stream.send_all(
            request("GET", "/readyz", "Expect: 100-continue", "Content-Length: 1")
        )
        interim = await read_answer(stream)
        daemon.stop.set()
        await _until_refused(daemon)
        await stream.send_all(b"x")
        answer = await read_answer(stream, interim.rest)
        assert (answer.status, answer.code) == (503, "not_ready")
        assert answer.headers["retry-after"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_process_with_exit_code_0(
    tmp_path: Path, number: signal.Signals
) -> None:
    program = (
        "import os, sys; from pathlib import Path; from logd.config import load; "
        "from logd.run import run; "
        "flags = {'data': sys.argv[1], 'listen': '127.0.0.1:0'}; "
        "sys.exit(run(load(flags, {}), os.environ))"
    )
    process = await trio.lowlevel.open_process(
        [sys.executable, "-c", program, str(tmp_path / "data")],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with trio.fail_after(PATIENCE_SECONDS):
        await _until_serving(process)
        reply = await trio.to_thread.run_sync(
            admin_call, tmp_path / "data", UserAdd("a@example.com")
        )
        assert reply.token is not None
        process.send_signal(number)
        assert process.stderr is not None
        async with process.stderr:
            said = b"".join([piece async for piece in process.stderr])
        assert await process.wait() == 0
    assert b"stopped" in said
    assert reply.token.encode() not in said


async def _until_serving(process: trio.Process) -> None:
    assert process.stderr is not None
    said = b""
    while b"serving" not in said:
        piece = await process.stderr.receive_some()
        assert piece, said
        said += piece


async def test_the_service_manager_hears_of_the_whole_life(
    tmp_path: Path, make_daemon: DaemonFactory
) -> None:
    address = tmp_path / "notify"
    manager = trio.socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with manager:
        await manager.bind(str(address))
        environ = {"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "30000000"}
        async with make_daemon(environ=environ):
            assert {await manager.recv(100), await manager.recv(100)} == {b"READY=1", b"WATCHDOG=1"}
        assert await manager.recv(100) == b"STOPPING=1"


async def test_a_second_daemon_on_the_same_directory_is_refused(
    daemon: Daemon, make_daemon: DaemonFactory
) -> None:
    before = contents(daemon.data)
    with pytest.RaisesGroup(pytest.RaisesExc(DirectoryLocked)):
        async with make_daemon(data=daemon.data):
            pytest.fail("it serves")
    assert contents(daemon.data) == before
    await assert_healthy(daemon)
    answer = await daemon.call("POST", "/v1/ingest", daemon.key, json=daemon.entry())
    assert answer.status_code == 200


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
