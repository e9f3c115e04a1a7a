"""The door with an app of its own: disconnects, inherited sockets, service manager."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from quart import Response
from quart_trio import QuartTrio
from raw_http import PATIENCE_SECONDS, get, read_answer

from logd.config import Address
from logd.door import systemd
from logd.door.limits import Limits
from logd.door.listener import Door, open_listeners

LIMITS = Limits(
    max_connections=10,
    body_memory_bytes=1 << 20,
    handshake_seconds=10,
    head_seconds=10,
    stall_seconds=10,
    grace_seconds=1,
)
LOOPBACK = (Address("127.0.0.1", 0),)


@asynccontextmanager
async def served(app: QuartTrio) -> AsyncIterator[int]:
    """The port of a door before the app."""
    async with trio.open_nursery() as nursery:
        app.nursery = nursery
        listeners = await open_listeners(LOOPBACK, [])
        stop = trio.Event()
        door = Door(lambda: app, LIMITS, None, os.urandom, cores=2)
        nursery.start_soon(door.serve, listeners, stop)
        yield listeners[0].socket.getsockname()[1]
        stop.set()


class Patient:
    """An app whose one route waits for ever, and tells when it starts and when it is cancelled."""

    def __init__(self) -> None:
        self.started = trio.Event()
        self.cancelled = trio.Event()
        self.app = QuartTrio("patient", static_folder=None)
        self.app.add_url_rule("/wait", view_func=self.wait)

    async def wait(self) -> Response:
        self.started.set()
        try:
            await trio.sleep_forever()
        finally:
            self.cancelled.set()


async def test_a_client_that_leaves_cancels_its_request() -> None:
    patient = Patient()
    async with served(patient.app) as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(get("/wait"))
        with trio.fail_after(PATIENCE_SECONDS):
            await patient.started.wait()
            await stream.aclose()
            await patient.cancelled.wait()


async def test_stopping_cancels_what_outlasts_the_grace() -> None:
    patient = Patient()
    async with served(patient.app) as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(get("/wait"))
        await patient.started.wait()
    assert patient.cancelled.is_set()
    await stream.aclose()


async def test_a_crash_outside_the_operations_is_a_problem_that_leaks_nothing() -> None:
    app = QuartTrio("crashing", static_folder=None)

    async def crash(_scope: object, _receive: object, _send: object) -> None:
        raise KeyError("secret detail")

    app.asgi_app = crash  # type: ignore[method-assign,assignment]
    async with served(app) as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(get("/wait"))
        answer = await read_answer(stream)
        assert (answer.status, answer.code) == (500, "internal_error")
        assert b"secret" not in answer.body
        await stream.aclose()


async def test_sockets_of_the_service_manager_are_served() -> None:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        copy = socket.socket(fileno=os.dup(opened.fileno()))
        copy.setblocking(False)
        (listener,) = await open_listeners(LOOPBACK, [copy])
        assert listener.socket.getsockname() == opened.getsockname()
        await listener.aclose()


def test_sockets_for_another_process_are_left_alone() -> None:
    assert systemd.inherited_sockets({}, 7) == []
    assert systemd.inherited_sockets({"LISTEN_PID": "8", "LISTEN_FDS": "1"}, 7) == []


@pytest.mark.parametrize("abstract", [False, True])
def test_the_service_manager_is_told(tmp_path: Path, abstract: bool) -> None:
    name = f"@logd-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0"))
        systemd.notify({"NOTIFY_SOCKET": name}, systemd.READY)
        assert manager.recv(100) == b"READY=1"


def test_the_watchdog_is_of_this_process_or_of_none() -> None:
    on = {"WATCHDOG_USEC": "30000000"}
    assert systemd.watchdog_seconds({}, 7) is None
    assert systemd.watchdog_seconds(on, 7) == 30.0
    assert systemd.watchdog_seconds(on | {"WATCHDOG_PID": "7"}, 7) == 30.0
    assert systemd.watchdog_seconds(on | {"WATCHDOG_PID": "8"}, 7) is None
    assert systemd.watchdog_seconds({"WATCHDOG_USEC": "0"}, 7) is None


def test_without_a_service_manager_nobody_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.setblocking(False)
        for environ in ({}, {"NOTIFY_SOCKET": ""}):
            systemd.notify(environ, systemd.READY)
            with pytest.raises(BlockingIOError):
                manager.recv(100)
        systemd.notify({"NOTIFY_SOCKET": address}, systemd.ALIVE)
        assert manager.recv(100) == systemd.ALIVE
