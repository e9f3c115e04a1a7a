"""The fast lane: plain requests to the data plane, and probes, without the HTTP server behind it.

Each connection begins here. A request is the lane's if its head is beyond doubt and its path is
hot; it is answered by the same `Api.answer` that the app calls. The first request that is not,
whatever the reason, moves the whole connection, that request's bytes first, to the HTTP server,
which serves it from then on. So the lane may be as narrow as it likes: it decides nothing but
whether it is sure.

What it is sure of: an HTTP/1.1 request whose head ends in CR LF CR LF and which llhttp takes, with
one Host, no Transfer-Encoding, Upgrade or Expect, no Connection but keep-alive, and for POST one
Content-Length. The body is then exactly the next so many bytes, and the next request follows.
"""

import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Final

import httptools
import msgspec
import trio

from logd.api.dispatch import Api
from logd.api.errors import BodyTooLarge
from logd.api.exchange import Head, HeadText, Response, read_head
from logd.door.body import BodyMemory, IncomingBody, Message
from logd.door.heads import HOST, REASONS
from logd.door.limits import KEEP_ALIVE_SECONDS, LINGER_SECONDS, MAX_HEAD_BYTES, Limits
from logd.door.stream import GuardedStream
from logd.entry import RandomBytes

_RECEIVE_BYTES: Final = 65_536
_WATCH_SECONDS: Final = 1.0
_BODY_RECEIVE_BYTES: Final = 1 << 20
_END_OF_HEAD: Final = b"\r\n\r\n"
_HOT_BEGINNINGS: Final = (b"POST /v1/ingest", b"GET /v1/projects/", b"GET /livez", b"GET /readyz")
_HOT: Final = re.compile(
    rb"(?:POST /v1/ingest|GET /v1/projects/[0-9a-f-]{36}/logs(?:/stats|/log_[0-9a-f-]{36})?"
    rb"|GET /(?:livez|readyz))"
    rb"(?:\?[!-~]*)? HTTP/1\.1\r\n"
)
_DOUBTFUL: Final = frozenset(
    (b"transfer-encoding", b"upgrade", b"expect", b"te", b"trailer", b"http2-settings")
)


class Lane:
    """The fast lanes of all connections."""

    def __init__(
        self,
        api: Api,
        limits: Limits,
        memory: BodyMemory,
        random_bytes: RandomBytes,
        server_headers: Callable[[], list[tuple[bytes, bytes]]],
    ) -> None:
        """`server_headers()`: what the HTTP server adds to every response."""
        self._api = api
        self._limits = limits
        self._memory = memory
        self._random_bytes = random_bytes
        self._server_headers = server_headers
        self._dated_at = -1
        self._dated = b""
        self._connections: set[_Connection] = set()
        self._stopping = False

    def stop(self) -> None:
        """Connections that wait for a request end now, the others after their answer."""
        self._stopping = True
        for connection in self._connections:
            if connection.waits_until is not None:
                connection.waiting.cancel()

    async def watch(self) -> None:
        """Ends the waits that are over. One look a second at every connection is far cheaper than
        a timeout of its own for every wait."""
        while True:
            await trio.sleep(_WATCH_SECONDS)
            now = trio.current_time()
            for connection in self._connections:
                if connection.waits_until is not None and connection.waits_until < now:
                    connection.waiting.cancel()

    async def run(self, stream: GuardedStream) -> bytes | None:
        """Serve a connection. Bytes: the HTTP server goes on, these come first; None: it ended."""
        connection = _Connection(stream, self._limits)
        self._connections.add(connection)
        try:
            with connection.waiting:
                return await self._run(connection)
            return connection.unread or None  # a head that did not arrive in time is not ours
        finally:
            self._connections.discard(connection)

    async def _run(self, connection: "_Connection") -> bytes | None:
        while not self._stopping:
            connection.stream.idle_since = trio.current_time()
            head_bytes = await connection.next_head()
            if head_bytes is None:
                return None
            request = _read_head(head_bytes)
            if request is None:
                return connection.unread
            connection.consume(len(head_bytes))
            connection.stream.idle_since = None
            if not await self._serve(connection, request):
                return None
        return None

    async def _serve(self, connection: "_Connection", request: "_Request") -> bool:
        """Answer a request; whether another may follow on the connection."""
        head = request.text.head(self._random_bytes)
        ready = connection.take(request.length)
        if ready is not None:
            body = _ReadyBody(ready, self._memory)
            try:
                response = await self._answer_ready(connection, head, body)
                if response is not None:
                    await connection.stream.send_all(self._encode(response, not self._stopping))
            finally:
                body.release()
            return response is not None and not self._stopping
        return await self._serve_arriving(connection, head, request.length)

    async def _answer_ready(
        self, connection: "_Connection", head: Head, body: "_ReadyBody"
    ) -> Response | None:
        """None where the client of a query is gone."""
        if head.method == "POST" or head.path.endswith("/stats"):
            return await self._api.answer(head, body)  # is done at once, or must be
        response: Response | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.cancel_when_gone, nursery.cancel_scope)
            response = await self._api.answer(head, body)
            nursery.cancel_scope.cancel()
        return response

    async def _serve_arriving(self, connection: "_Connection", head: Head, length: int) -> bool:
        body = IncomingBody(
            connection.body_messages(length), length, self._memory, self._limits.stall_seconds
        )
        response: Response | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_when_cut, body, nursery.cancel_scope)
                response = await self._api.answer(head, body)
                if not body.complete:
                    await body.skip(LINGER_SECONDS)
                    body.abandon()
                nursery.cancel_scope.cancel()
            if response is None:
                return False
            keep = body.complete and not self._stopping
            await connection.stream.send_all(self._encode(response, keep))
        finally:
            body.release()
        connection.stream.linger = not body.complete
        return keep

    def _encode(self, response: Response, keep: bool) -> bytes:
        pieces = [
            b"HTTP/1.1 %d %b\r\n" % (response.status, REASONS.get(response.status, b"")),
            _header_lines(response.headers),
            b"content-length: %d\r\n" % len(response.body),
            b"" if keep else b"connection: close\r\n",
            self._common_headers(),
            b"\r\n",
            response.body,
        ]
        return b"".join(pieces)

    def _common_headers(self) -> bytes:
        """The date among them: made once a second."""
        now = int(trio.current_time())
        if now != self._dated_at:
            self._dated = b"".join([b"%b: %b\r\n" % pair for pair in self._server_headers()])
            self._dated_at = now
        return self._dated


def _header_lines(headers: tuple[tuple[str, str], ...]) -> bytes:
    return "".join([f"{name}: {value}\r\n" for name, value in headers]).encode()


async def _cancel_when_cut(body: IncomingBody, scope: trio.CancelScope) -> None:
    await body.settled.wait()
    if body.client_gone:
        scope.cancel()


class _Request(msgspec.Struct, frozen=True):
    text: HeadText
    length: int


class _Callbacks:
    """What llhttp finds in a head."""

    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = False

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.complete = True


@lru_cache(maxsize=1024)
def _read_head(data: bytes) -> _Request | None:
    """The request, None where there is any doubt. A client's heads differ in little but the
    Content-Length, so most were read before."""
    whole = len(data) <= MAX_HEAD_BYTES and data.endswith(_END_OF_HEAD)
    if not whole or not _HOT.match(data) or not data.isascii():
        return None
    found = _Callbacks()
    parser = httptools.HttpRequestParser(found)
    try:
        parser.feed_data(data)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    if not found.complete:
        return None
    method = parser.get_method().decode()
    length = _body_length(method, found.headers)
    if length is None:
        return None
    return _Request(read_head(method, found.target.decode(), found.headers), length)


def _body_length(method: str, headers: list[tuple[bytes, bytes]]) -> int | None:
    """Bytes of body that follow, None where a header raises a doubt."""
    hosts = 0
    length: int | None = None
    for name, value in headers:
        if name == b"host":
            hosts += 1
            if len(value) > 260 or not HOST.fullmatch(value):
                return None
        elif name == b"content-length":
            if length is not None or not value.isdigit() or len(value) > 12:
                return None
            length = int(value)
        elif name in _DOUBTFUL or (
            name == b"connection" and value.lower() not in (b"keep-alive", b"")
        ):
            return None
    if hosts != 1 or (method == "GET" and length):
        return None
    return 0 if method == "GET" else length


def _may_become_hot(data: bytes) -> bool:
    """Whether more bytes may turn these into a head that is the lane's."""
    begins_so = any(hot.startswith(data[: len(hot)]) for hot in _HOT_BEGINNINGS)
    return begins_so and len(data) < MAX_HEAD_BYTES and b"\n\n" not in data


class _ReadyBody:
    """A body that has come already, with its head."""

    complete = True

    def __init__(self, data: bytes, memory: BodyMemory) -> None:
        self._data = data
        self._memory = memory
        self._held = 0

    async def read(self, max_bytes: int) -> bytes:
        """See `Body.read`."""
        if len(self._data) > max_bytes:
            raise BodyTooLarge(max_bytes)
        self.hold(len(self._data))
        return self._data

    def hold(self, count: int) -> None:
        self._memory.take(count)
        self._held += count

    def release(self) -> None:
        """What was held for this body is free again."""
        self._memory.give_back(self._held)
        self._held = 0


class _Connection:
    """A connection's bytes: `unread` came and belongs to no request answered here.

    `waits_until`: while it waits for a head, the time at which `waiting` is to be cancelled.
    """

    def __init__(self, stream: GuardedStream, limits: Limits) -> None:
        self.stream = stream
        self.unread = b""
        self._limits = limits
        self._idle_seconds = limits.head_seconds
        self.waiting = trio.CancelScope()
        self.waits_until: float | None = None

    async def next_head(self) -> bytes | None:
        """The next request's head with the empty line behind it, or whatever came where the lane
        is not sure of it; None where the connection ends."""
        seconds = self._limits.head_seconds if self.unread else self._idle_seconds
        self._idle_seconds = KEEP_ALIVE_SECONDS
        self.waits_until = trio.current_time() + seconds
        try:
            while True:
                end = self.unread.find(_END_OF_HEAD, 0, MAX_HEAD_BYTES)
                if end >= 0:
                    return self.unread[: end + len(_END_OF_HEAD)]
                if not _may_become_hot(self.unread):
                    return self.unread
                data = await self._receive(_RECEIVE_BYTES)
                if not data:
                    return self.unread or None
                if not self.unread:
                    self.waits_until = trio.current_time() + self._limits.head_seconds
                self.unread += data
        finally:
            self.waits_until = None

    def consume(self, count: int) -> None:
        self.unread = self.unread[count:]

    async def _receive(self, max_bytes: int) -> bytes:
        try:
            return await self.stream.receive_some(max_bytes)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    def take(self, length: int) -> bytes | None:
        """The next `length` bytes if they have all come."""
        if len(self.unread) < length:
            return None
        data = self.unread[:length]
        self.consume(length)
        return data

    def body_messages(self, length: int) -> Callable[[], Awaitable[Message]]:
        """Receives the body as the messages that an HTTP server sends to an app."""
        missing = length

        async def receive() -> Message:
            nonlocal missing
            if self.unread and missing:
                data = self.unread[:missing]
                self.consume(len(data))
            else:
                data = await self._receive(min(missing, _BODY_RECEIVE_BYTES)) if missing else b""
                if missing and not data:
                    return {"type": "http.disconnect"}
            missing -= len(data)
            return {"type": "http.request", "body": data, "more_body": missing > 0}

        return receive

    async def cancel_when_gone(self, scope: trio.CancelScope) -> None:
        """Cancels once the client has closed its side. What it sends instead is kept."""
        while len(self.unread) < MAX_HEAD_BYTES:
            data = await self._receive(_RECEIVE_BYTES)
            if not data:
                scope.cancel()
                return
            self.unread += data
