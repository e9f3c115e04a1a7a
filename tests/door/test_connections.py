"""The door with an app of its own: disconnects, TLS, inherited sockets, service manager."""

import os
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from quart import Response
from quart_trio import QuartTrio
from raw_http import PATIENCE_SECONDS, get, read_answer, read_to_end

from logd.config import Address
from logd.door import systemd
from logd.door.limits import Limits
from logd.door.listener import Door, load_tls, open_listeners

LIMITS = Limits(
    max_connections=10,
    body_memory_bytes=1 << 20,
    head_seconds=10,
    stall_seconds=10,
    grace_seconds=1,
)
LOOPBACK = (Address("127.0.0.1", 0),)


@asynccontextmanager
async def served(app: QuartTrio, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a door before the app."""
    async with trio.open_nursery() as nursery:
        app.nursery = nursery
        listeners = await open_listeners(LOOPBACK, [])
        stop = trio.Event()
        nursery.start_soon(Door(app, LIMITS, tls, os.urandom).serve, listeners, stop)
        yield listeners[0].socket.getsockname()[1]
        stop.set()


class Patient:
    """An app whose one route waits for ever, and tells when it starts and when it is cancelled."""

    def __init__(self) -> None:
        self.started = trio.Event()
        self.cancelled = trio.Event()
        self.app = QuartTrio("patient", static_folder=None)
        self.app.add_url_rule("/wait", view_func=self.wait)
        self.app.add_url_rule("/crash", view_func=self.crash)

    async def wait(self) -> Response:
        self.started.set()
        try:
            await trio.sleep_forever()
        finally:
            self.cancelled.set()

    async def crash(self) -> Response:
        raise KeyError("secret detail")


async def test_a_client_that_leaves_cancels_its_request() -> None:
    patient = Patient()
    async with served(patient.app) as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(get("/wait"))
        # what brings the body must be read first: the exchange of a GET is complete at once
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
