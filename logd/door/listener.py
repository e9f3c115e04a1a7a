"""The listener: accepts connections, guards each, and closes them in an orderly way.

No connection can end the process: whatever it raises ends with its guard. No connection can keep
the process from ending: when the grace is over, what is left is cut.
"""

import errno
import logging
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from logd.api.dispatch import Api
from logd.config import Address, BadConfig
from logd.door.complaints import Complaints
from logd.door.heads import date_header
from logd.door.lane import Lane
from logd.door.limits import LINGER_SECONDS, MIN_IDLE_SECONDS, Limits
from logd.door.memory import BodyMemory
from logd.door.stream import GuardedStream, Transport
from logd.entry import RandomBytes

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

    from logd.door.server import HttpServer

log = logging.getLogger("logd.door")

BACKLOG: Final = 1024
_OUT_OF_RESOURCES: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_PAUSE_SECONDS: Final = 0.1


def load_tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """Raises BadConfig where the files are no certificate and its key."""
    for option, file in (("tls_cert", certificate), ("tls_key", key)):
        try:
            file.open("rb").close()  # OpenSSL does not say which of them it could not read
        except OSError as error:
            raise BadConfig(option, f"{file}: {error.strerror}") from error

    def refuse() -> str:  # else OpenSSL asks at the terminal, and waits
        raise BadConfig("tls_key", f"{key} is encrypted: a key without a pass phrase is needed")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key, refuse)
    except OSError as error:  # ssl.SSLError is one
        detail = f"{certificate} and {key} are no certificate and its key: {error}"
        raise BadConfig("tls_cert, tls_key", detail) from error
    return context


async def open_listeners(
    addresses: Sequence[Address], inherited: Sequence[socket.socket]
) -> list[trio.SocketListener]:
    """Listening sockets: those that the service manager opened, else our own on `addresses`.
    Raises OSError that names the address that cannot be had."""
    if inherited:
        return [trio.SocketListener(trio.socket.from_stdlib_socket(one)) for one in inherited]
    listeners: list[trio.SocketListener] = []
    for address in addresses:
        try:
            listeners += await trio.open_tcp_listeners(
                address.port, host=address.host, backlog=BACKLOG
            )
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), str(address)) from error
    return listeners


class Door:
    """Serves an ASGI app on listeners that are open already."""

    def __init__(
        self,
        make_app: "Callable[[], ASGIFramework]",
        limits: Limits,
        tls: ssl.SSLContext | None,
        random_bytes: RandomBytes,
        cores: int,
        api: Api | None = None,
    ) -> None:
        """`make_app`: is called in a thread when the first connection needs the HTTP server;
        `cores`: those that the process may use; `api`: what the fast lane answers from; without it
        there is no lane."""
        self._make_app = make_app
        self._limits = limits
        self._tls = tls
        self._random_bytes = random_bytes
        self._memory = BodyMemory(limits.body_memory_bytes)
        self._server: HttpServer | None = None
        self._making_server = trio.Lock()
        self._stopping = False
        self._complaints = Complaints(log)
        self._lane: Lane | None = None
        if api is not None:
            self._lane = Lane(
                api,
                limits,
                self._memory,
                random_bytes,
                lambda: [date_header(time.time())],
                self._complaints,
                cores,
            )
        self._streams: set[GuardedStream] = set()
        self._one_less = trio.Event()

    async def serve(self, listeners: Sequence[trio.SocketListener], stop: trio.Event) -> None:
        """Until `stop`: then the listeners close first, requests in flight may finish, and what
        is not done within the grace is cut."""
        async with trio.open_nursery() as outer:
            if self._lane is not None:
                outer.start_soon(self._lane.watch)
            async with trio.open_nursery() as connections:
                outer.start_soon(self._cut_in_the_end, stop, connections.cancel_scope)
                await self._accept_until(stop, listeners, connections)
                self._stopping = True
                if self._server is not None:
                    await self._server.stop()
                if self._lane is not None:
                    self._lane.stop()
            outer.cancel_scope.cancel()

    async def _cut_in_the_end(self, stop: trio.Event, connections: trio.CancelScope) -> None:
        """Sends are shielded from cancellation: only a closed socket ends them in time."""
        try:
            await stop.wait()
            await trio.sleep(self._limits.grace_seconds)
        finally:
            for stream in self._streams:
                stream.abort()
            connections.cancel()

    async def _accept_until(
        self,
        stop: trio.Event,
        listeners: Sequence[trio.SocketListener],
        connections: trio.Nursery,
    ) -> None:
        try:
            async with trio.open_nursery() as accepting:
                for listener in listeners:
                    accepting.start_soon(self._accept, listener, connections)
                await stop.wait()
                accepting.cancel_scope.cancel()
        finally:
            for listener in listeners:
                listener.socket.close()

    async def _accept(self, listener: trio.SocketListener, connections: trio.Nursery) -> None:
        while True:
            while len(self._streams) >= self._limits.max_connections:
                await self._wait_for_room(listener)
            try:
                transport = await listener.accept()
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                self._complaints.note(f"cannot accept connections: {error.strerror}")
                await trio.sleep(_PAUSE_SECONDS)
                continue
            stream = self._wrap(transport)
            self._streams.add(stream)
            connections.start_soon(self._guard, stream)

    async def _wait_for_room(self, listener: trio.SocketListener) -> None:
        await trio.lowlevel.wait_readable(listener.socket)  # only when somebody wants it
        if len(self._streams) >= self._limits.max_connections:
            self._complaints.note("at max_connections: new ones wait in the listen queue")
            self._cut_an_idle_one()
            with trio.move_on_after(_PAUSE_SECONDS):
                await self._one_less.wait()

    def _cut_an_idle_one(self) -> None:
        """The connection that has waited longest for a request to come. So those who only hold
        connections cannot keep out those who use them."""
        latest = trio.current_time() - MIN_IDLE_SECONDS
        idle = [s for s in self._streams if s.idle_since is not None and s.idle_since <= latest]
        if idle:
            min(idle, key=lambda stream: stream.idle_since or latest).abort()

    def _wrap(self, transport: trio.SocketStream) -> GuardedStream:
        wrapped: Transport = transport
        if self._tls is not None:
            wrapped = trio.SSLStream(transport, self._tls, server_side=True, https_compatible=True)
        return GuardedStream(wrapped, self._limits.stall_seconds)

    async def _guard(self, stream: GuardedStream) -> None:
        try:
            if await stream.handshake(self._limits.handshake_seconds):
                await self._serve_connection(stream)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client is gone
        except Exception as error:  # noqa: BLE001  # the root of a connection's task
            self._complaints.note("a connection ended with an error", error)
        finally:
            with trio.CancelScope(shield=True):
                await stream.finish(LINGER_SECONDS)
            self._streams.discard(stream)
            self._one_less.set()
            self._one_less = trio.Event()

    async def _serve_connection(self, stream: GuardedStream) -> None:
        """In the lane as long as that is sure of the requests, then by the HTTP server."""
        head_seconds = self._limits.head_seconds
        if self._lane is not None:
            rest = await self._lane.run(stream)
            if rest is None:
                return
            stream.put_back(rest.unread)
            head_seconds = rest.head_seconds
            del rest  # or what it holds would be kept as long as the connection
        server = await self._http_server()
        await server.serve(stream, head_seconds)

    async def _http_server(self) -> "HttpServer":
        """Made when it is first needed, without holding up the connections that need it not."""
        async with self._making_server:
            if self._server is None:
                self._server = await trio.to_thread.run_sync(self._make_server)
                if self._stopping:
                    await self._server.stop()
        return self._server

    def _make_server(self) -> "HttpServer":
        from logd.door.server import HttpServer

        return HttpServer(self._make_app(), self._limits, self._memory, self._random_bytes)
