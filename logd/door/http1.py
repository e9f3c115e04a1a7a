"""Hypercorn's HTTP/1.1, narrowed: what it lets through that could harm is refused here.

Hypercorn would switch a plain connection to HTTP/2 (upgrade or prior knowledge) and to WebSocket;
both have inputs that raise out of the connection. Here neither exists: an `Upgrade` is ignored,
as RFC 9110 allows, and the HTTP/2 preface is a bad request. h11 accepts Content-Length together
with Transfer-Encoding, the stuff of request smuggling: refused. Refusals are problems, too.

What is overridden here is internal to Hypercorn, as it is in 0.17 and 0.18: the dependency is
bounded accordingly, and the tests of the door go through every one of these places.
"""

import contextlib
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, cast

import h11
import trio
from hypercorn.config import Config as HypercornConfig
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.events import Response as ResponseEvent
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ASGIReceiveEvent, ASGISendEvent, ConnectionState, Scope
from hypercorn.utils import parse_socket_addr

from logd.api.errors import BadHead
from logd.api.exchange import make_head
from logd.api.problems import problem_response
from logd.door.heads import HOST, REASONS
from logd.door.limits import KEEP_ALIVE_SECONDS, MAX_HEAD_BYTES, MAX_HEADERS
from logd.door.lines import Lines
from logd.door.stream import GuardedStream
from logd.entry import RandomBytes

log = logging.getLogger("logd.door")

_RECEIVE_BYTES: Final = 65_536

_Sendable = h11.Response | h11.InformationalResponse | h11.Data | h11.EndOfMessage

_REFUSALS: Final = {
    400: ("malformed_request", "this is not an HTTP/1.1 request"),
    408: ("head_too_slow", "the request's head did not arrive in time"),
    431: (
        "head_too_large",
        f"a request's head may have {MAX_HEAD_BYTES} bytes and {MAX_HEADERS} headers",
    ),
    501: ("unsupported_transfer_encoding", "the only transfer encoding is chunked"),
    505: ("unsupported_http_version", "this server speaks HTTP/1.1"),
}


def make_hypercorn_config() -> HypercornConfig:
    config = HypercornConfig()
    config.include_server_header = False
    config.h11_max_incomplete_size = MAX_HEAD_BYTES
    config.keep_alive_timeout = KEEP_ALIVE_SECONDS
    config.keep_alive_max_requests = 1_000_000
    config.errorlog = log
    config.max_app_queue_size = 2  # of pieces of a body that the app has not taken yet
    return config


class HttpConnection(TCPServer):
    """One connection, plain or TLS after its handshake, served until it ends."""

    def __init__(
        self,
        app: AppWrapper,
        config: HypercornConfig,
        context: WorkerContext,
        stream: GuardedStream,
        head_seconds: float,
        first_head_seconds: float,
        random_bytes: RandomBytes,
    ) -> None:
        """`first_head_seconds`: for the first head instead. Raises OSError where the client is
        gone already."""
        super().__init__(app, config, context, ConnectionState({}), cast(Any, stream))
        self._guarded = stream
        socket = stream.socket
        self._client = parse_socket_addr(socket.family, socket.getpeername())
        self._server = parse_socket_addr(socket.family, socket.getsockname())
        self._head_seconds = head_seconds
        self._first_head_seconds = first_head_seconds
        self._random_bytes = random_bytes
        self._reading = trio.CancelScope()
        self._receiving = trio.CancelScope()
        self._is_overdue = False
        self._idle = trio.CancelScope()
        self._idle_seconds = head_seconds
        self._head_begun = False

    async def run(self) -> None:
        try:
            async with _Apps() as self._task_group:
                self._http = self._make_protocol()
                self.protocol = cast(ProtocolWrapper, self._http)
                await self.idle_task.restart(self._task_group, self._idle_timeout)
                with self._reading:
                    await self._read_data()
                await self._http.handle(Closed())
                await self.idle_task.stop()
        finally:
            await self._close()

    def _make_protocol(self) -> "_Http1":
        return _Http1(
            self.app,
            self.config,
            self.context,
            self._task_group,
            ConnectionState({}),
            self._guarded.tls,
            self._client,
            self._server,
            self.protocol_send,
            self._random_bytes,
        )

    async def _read_data(self) -> None:
        while not (self._is_overdue and self._guarded.idle_since is not None):
            data: bytes | None = None
            try:
                with trio.CancelScope() as self._receiving:
                    data = await self._guarded.receive_some(_RECEIVE_BYTES)
            except (trio.ClosedResourceError, trio.BrokenResourceError):
                break
            if data is None:
                break
            self._note_arrival()
            await self._http.handle(RawData(data))
            if not data:
                if self._http.owes_answer():
                    await trio.sleep_forever()  # until nothing can be sent any more
                break

    def _note_arrival(self) -> None:
        """From its first byte on, a request's head has a deadline of its own."""
        if not self._head_begun:
            self._head_begun = True
            self._idle.deadline = trio.current_time() + self._first_head_seconds
            self._first_head_seconds = self._head_seconds

    async def _idle_timeout(self) -> None:
        """Runs from the end of one request until the next one's head is complete."""
        self._is_overdue = False
        self._head_begun = self._http.has_unread_input()
        seconds = self._head_seconds if self._head_begun else self._idle_seconds
        self._idle = trio.CancelScope(deadline=trio.current_time() + seconds)
        self._idle_seconds = self.config.keep_alive_timeout
        with self._idle:
            await self.context.terminated.wait()
        with trio.CancelScope(shield=True):
            if self._head_begun and self._idle.cancelled_caught:
                await self._http.refuse(_refusal(408))
            self._is_overdue = True
            self._receiving.cancel()  # what came in this moment is a request to be answered

    async def protocol_send(self, event: Event) -> None:
        """Once nothing can be sent any more, nothing is read either. Hypercorn's reader may be
        waiting for the end of a response then, to go on to the next request."""
        if isinstance(event, Closed):
            self._guarded.linger = True
        elif isinstance(event, Updated):
            self._guarded.idle_since = trio.current_time() if event.idle else None
        await super().protocol_send(event)
        if self._guarded.closed:
            self._reading.cancel()


class _Parser(h11.Connection):
    """h11, which takes bytes behind a connection's last request for an error. Hypercorn would close
    for that before the request is answered; here they are nobody's."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._receive_buffer = Lines()

    def receive_data(self, data: bytes) -> None:
        if not data or self.their_state is not h11.MUST_CLOSE:
            super().receive_data(data)

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        if self.their_state is h11.MUST_CLOSE:
            return h11.NEED_DATA
        return super().next_event()


class _Http1(H11Protocol):
    """HTTP/1.1 and nothing else."""

    def __init__(
        self,
        app: AppWrapper,
        config: HypercornConfig,
        context: WorkerContext,
        task_group: TaskGroup,
        connection_state: ConnectionState,
        ssl: bool,
        client: tuple[str, int] | None,
        server: tuple[str, int] | None,
        send: Callable[[Event], Awaitable[None]],
        random_bytes: RandomBytes,
    ) -> None:
        super().__init__(
            app, config, context, task_group, connection_state, ssl, client, server, send
        )
        self.connection = _Parser()
        self._random_bytes = random_bytes
        self._method = b""
        self._headers: Iterable[tuple[bytes, bytes]] = ()

    async def handle(self, event: Event) -> None:
        try:
            await super().handle(event)
        except BadHead as refusal:
            await self.refuse(refusal)

    def has_unread_input(self) -> bool:
        """Whether the client has begun its next request before the answer to this one."""
        return bool(self.connection.trailing_data[0])

    def owes_answer(self) -> bool:
        """Whether a whole request is being answered whose client may have closed its side: what is
        done must be told. A question is given up instead, as most who leave close so."""
        is_whole = self.connection.their_state in {h11.DONE, h11.MUST_CLOSE, h11.CLOSED}
        return is_whole and self.stream is not None and self._method not in {b"GET", b"HEAD"}

    async def refuse(self, refusal: BadHead) -> None:
        """Answer a request whose head goes no further, and close."""
        if self.connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            await self._answer(refusal)
        await self.send(Closed())

    async def stream_send(self, event: StreamEvent) -> None:
        if isinstance(event, ResponseEvent) and self.context.terminated.is_set():
            closing = [*event.headers, (b"connection", b"close")]
            event = dataclasses.replace(event, headers=closing)
        await super().stream_send(event)

    async def _check_protocol(self, event: h11.Request) -> None:
        """In place of Hypercorn's, which changes to HTTP/2. Raises BadHead."""
        self._method = event.method
        self._headers = event.headers
        check_head(event)

    async def _create_stream(self, request: h11.Request) -> None:
        await super()._create_stream(_plain(request))

    async def _send_h11_event(self, event: _Sendable) -> None:
        if isinstance(event, h11.Response | h11.InformationalResponse):
            event = dataclasses.replace(event, reason=REASONS.get(event.status_code, b""))
        await super()._send_h11_event(event)

    async def _send_error_response(self, status_code: int) -> None:
        """In place of Hypercorn's: what h11 could not read."""
        await self._answer(_refusal(status_code))

    async def _answer(self, refusal: BadHead) -> None:
        has_head = self.connection.our_state is h11.SEND_RESPONSE
        sent = self._headers if has_head else ()
        request_id = make_head("", "", sent, self._random_bytes).request_id
        response = problem_response(
            status=refusal.status,
            code=refusal.code,
            detail=refusal.detail,
            request_id=request_id,
            headers=(("x-request-id", request_id), ("connection", "close")),
        )
        headers = [(name.encode(), value.encode()) for name, value in response.headers]
        headers.append((b"content-length", b"%d" % len(response.body)))
        headers += self.config.response_headers("h11")
        answers_head = has_head and self._method == b"HEAD"
        await self._send_h11_event(h11.Response(status_code=response.status, headers=headers))
        if not answers_head:
            await self._send_h11_event(h11.Data(data=response.body))
        await self._send_h11_event(h11.EndOfMessage())


def _refusal(status: int) -> BadHead:
    known = status if status in _REFUSALS else 400
    return BadHead(known, *_REFUSALS[known])


def check_head(request: h11.Request) -> None:
    """What h11 accepts and we don't. Raises BadHead."""
    if not request.http_version.startswith(b"1."):
        raise _refusal(505)
    if request.method != request.method.upper():  # Hypercorn would take `head` for HEAD, h11 not
        raise BadHead(400, "malformed_request", "methods are in upper case")
    names = [name for name, _ in request.headers]
    if b"transfer-encoding" in names:
        if b"content-length" in names:
            detail = "Content-Length and Transfer-Encoding exclude each other"
            raise BadHead(400, "malformed_request", detail)
        if request.http_version < b"1.1":
            raise BadHead(400, "malformed_request", "HTTP/1.0 has no Transfer-Encoding")
    size = len(request.target) + sum(len(name) + len(value) + 4 for name, value in request.headers)
    if size > MAX_HEAD_BYTES:
        raise _refusal(431)
    host = dict(request.headers).get(b"host", b"")
    if len(host) > 260 or not HOST.fullmatch(host):
        raise BadHead(400, "malformed_request", "the Host header is no host")
    if _origin_form(request.target) is None:
        raise BadHead(400, "malformed_request", "the request target must be a path or a URL")


def _plain(request: h11.Request) -> h11.Request:
    """The request with its target in origin form, and without the wish to switch protocols."""
    target = _origin_form(request.target)
    headers = [(name, value) for name, value in request.headers if name != b"upgrade"]
    if target == request.target and len(headers) == len(request.headers):
        return request
    return h11.Request(
        method=request.method,
        target=target or b"/",
        headers=headers,
        http_version=request.http_version,
    )


def _origin_form(target: bytes) -> bytes | None:
    """`/path?query` of that, of a URL or of `*`; None where it is neither."""
    if target.startswith(b"/"):
        return target
    if target == b"*":
        return b"/*"
    scheme, separator, rest = target.partition(b"://")
    if scheme.lower() not in (b"http", b"https") or not separator:
        return None
    authority, slash, path = rest.partition(b"/")
    return slash + path if slash and authority and b"?" not in authority else None


class _Apps(TaskGroup):
    """Runs the app, one request after the other. Unlike Hypercorn's, a message for an app that has
    ended is dropped instead of waited on, and no error is swallowed."""

    async def spawn_app(
        self,
        app: AppWrapper,
        config: HypercornConfig,
        scope: Scope,
        send: Callable[[ASGISendEvent | None], Awaitable[None]],
    ) -> Callable[[ASGIReceiveEvent], Awaitable[None]]:
        assert self._nursery is not None
        inward, messages = trio.open_memory_channel[ASGIReceiveEvent](config.max_app_queue_size)

        async def run() -> None:
            async with messages:
                await app(scope, messages.receive, send, trio.to_thread.run_sync, _no_threads)
                await send(None)

        async def put(message: ASGIReceiveEvent) -> None:
            with contextlib.suppress(trio.BrokenResourceError):  # the app may have ended
                await inward.send(message)

        self._nursery.start_soon(run)
        return put


def _no_threads(*_: object) -> None:
    raise AssertionError("BUG: an ASGI app has no thread to come back from")
