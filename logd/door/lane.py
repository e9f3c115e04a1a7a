"""The fast lane: plain requests to the data plane, and probes, without the HTTP server behind it.

Each connection begins here. A request is the lane's if its head is beyond doubt and its path is
hot; it is answered by the same `Api.answer` that the app calls. The first request that is not,
whatever the reason, moves the whole connection, that request's bytes first, to the HTTP server,
which serves it from then on. So the lane may be as narrow as it likes: it decides nothing but
whether it is sure.

What it is sure of is in `hot.py`.
"""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Final, NamedTuple

import trio

from logd.api.dispatch import Api
from logd.api.errors import BodyTooLarge
from logd.api.exchange import Head, Header, Response
from logd.api.express import Told
from logd.door.body import IncomingBody, Message
from logd.door.complaints import Complaints
from logd.door.express import Platform, Spot
from logd.door.heads import REASONS
from logd.door.hot import Request, holds_head, hot_request, may_become_hot
from logd.door.limits import KEEP_ALIVE_SECONDS, LINGER_SECONDS, MAX_HEAD_BYTES, Limits
from logd.door.memory import SMALL_BODIES, BodyMemory, HeldRequest
from logd.door.stream import GuardedStream
from logd.entry import RandomBytes
from logd.errors import Overloaded

_RECEIVE_BYTES: Final = 65_536
_WATCH_SECONDS: Final = 1.0
_BODY_RECEIVE_BYTES: Final = 1 << 20
_END_OF_HEAD: Final = b"\r\n\r\n"
_JOINED_BYTES: Final = 65_536  # a larger response is not copied to be one piece with its head


class HandOver(NamedTuple):
    """What the lane leaves to the HTTP server: bytes, and how long their head may still take."""

    unread: bytes
    head_seconds: float


class Lane:
    """The fast lanes of all connections."""

    def __init__(
        self,
        api: Api,
        limits: Limits,
        memory: BodyMemory,
        random_bytes: RandomBytes,
        server_headers: Callable[[], list[tuple[bytes, bytes]]],
        complaints: Complaints,
        cores: int,
    ) -> None:
        """`server_headers()`: what the HTTP server adds to every response; `cores`: those that the
        process may use."""
        self._api = api
        self._limits = limits
        self._memory = memory
        self._random_bytes = random_bytes
        self._server_headers = server_headers
        self._dated_at = -1
        self._dated = b""
        self._connections: set[_Connection] = set()
        self._stopping = False
        self._platform = Platform(
            self._begin,
            self._answer_at_once,
            api.express,
            self._give_back,
            self._encode_kept,
            memory,
            complaints,
            cores,
        )

    def stop(self) -> None:
        """Connections that wait for a request end now, the others after their answer."""
        self._stopping = self._platform.is_stopping = True
        for connection in self._connections:
            if connection.waits_until is not None:
                connection.end_wait()

    async def watch(self) -> None:
        """What all connections share, until it is cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._platform.run)
                nursery.start_soon(self._end_long_waits)
        finally:
            self._platform.close()

    async def _end_long_waits(self) -> None:
        """One look a second at every connection is far cheaper than a timeout of its own for
        every wait."""
        while True:
            await trio.sleep(_WATCH_SECONDS)
            now = trio.current_time()
            for connection in self._connections:
                if connection.waits_until is not None and connection.waits_until < now:
                    connection.end_wait()

    async def run(self, stream: GuardedStream) -> HandOver | None:
        """Serve a connection until the HTTP server is to go on with it; None: it ended."""
        connection = _Connection(stream, self._limits, self._platform)
        self._connections.add(connection)
        try:
            return await self._run(connection)
        finally:
            connection.leave()
            self._connections.discard(connection)

    async def _run(self, connection: "_Connection") -> HandOver | None:
        while not self._stopping:
            connection.stream.idle_since = trio.current_time()
            head_bytes: bytes | None = None
            # Of its own each time: one that was cancelled too late must not reach the request.
            with trio.CancelScope() as connection.waiting:
                head_bytes = await connection.next_head()
            if connection.waiting.cancelled_caught:  # what did not arrive in time is not ours
                return connection.hand_over() if connection.unread else None
            if head_bytes is None:
                return None
            request = hot_request(head_bytes)
            if request is None:
                return connection.hand_over()
            connection.consume(len(head_bytes))
            connection.stream.idle_since = None
            if not await self._serve(connection, request):
                return None
            if connection.unread:  # what was sent ahead may be answered without a wait
                await trio.lowlevel.checkpoint()
        return None

    def _begin(self, data: bytes, told: Told) -> int | None:
        """See `express.Begin`."""
        request = self._whole_request(data)
        if request is None or request.ticket is None:
            return None
        body = data[len(data) - request.length :]
        try:
            self._memory.take(SMALL_BODIES, request.length)
        except Overloaded:
            return None
        if self._api.express.take(request.ticket, body, told):
            return request.length
        self._give_back(request.length)
        return None

    def _give_back(self, count: int) -> None:
        """What `_begin` took."""
        self._memory.give_back(SMALL_BODIES, count)

    def _answer_at_once(self, data: bytes) -> Response | None:
        """See `express.AnswerAtOnce`."""
        request = self._whole_request(data)
        if request is None or request.length:
            return None
        return self._api.answer_at_once(request.text.head(self._random_bytes))

    def _whole_request(self, data: bytes) -> Request | None:
        """The one that these bytes are, if they are one, no more and no less."""
        end = data.find(_END_OF_HEAD, 0, MAX_HEAD_BYTES) + len(_END_OF_HEAD)
        if end < len(_END_OF_HEAD) or self._stopping:
            return None
        request = hot_request(data[:end])
        return request if request is not None and len(data) == end + request.length else None

    async def _serve(self, connection: "_Connection", request: Request) -> bool:
        """Answer a request; whether another may follow on the connection."""
        head = request.text.head(self._random_bytes)
        ready = connection.take(request.length)
        if ready is not None:
            body = _ReadyBody(ready, self._memory)
            try:
                response = await self._answer_ready(connection, head, body)
                if response is not None:
                    await self._send(connection, response, not self._stopping)
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
        if connection.spot is not None:
            with trio.CancelScope() as scope, connection.spot.listening(scope.cancel):
                return await self._api.answer(head, body)
            return None
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
            await self._send(connection, response, keep)
        finally:
            body.release()
        connection.stream.linger = not body.complete
        return keep

    async def _send(self, connection: "_Connection", response: Response, keep: bool) -> None:
        head, body = self._encode_head(response, keep, trio.current_time()), response.body
        if len(body) > _JOINED_BYTES:
            await connection.stream.send_all(head)
            await connection.stream.send_all(body)
        else:
            await connection.stream.send_all(head + body)

    def _encode_kept(self, response: Response, now: float) -> tuple[bytes, bool]:
        """A small answer, and whether another request may follow on the connection."""
        keep = not self._stopping
        return self._encode_head(response, keep, now) + response.body, keep

    def _encode_head(self, response: Response, keep: bool, now: float) -> bytes:
        name, value = response.headers[-1]
        return b"%b%b\r\ncontent-length: %d\r\n%b%b\r\n" % (
            _first_lines(response.status, response.headers[:-1]),
            f"{name}: {value}".encode(),
            len(response.body),
            b"" if keep else b"connection: close\r\n",
            self._common_headers(int(now)),
        )

    def _common_headers(self, second: int) -> bytes:
        """The date among them: made once a second."""
        if second != self._dated_at:
            self._dated = b"".join([b"%b: %b\r\n" % pair for pair in self._server_headers()])
            self._dated_at = second
        return self._dated


@lru_cache(maxsize=256)
def _first_lines(status: int, headers: tuple[Header, ...]) -> bytes:
    """The status line and these headers: most responses begin alike."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers]).encode()
    return b"HTTP/1.1 %d %b\r\n%b" % (status, REASONS.get(status, b""), lines)


async def _cancel_when_cut(body: IncomingBody, scope: trio.CancelScope) -> None:
    await body.settled.wait()
    if body.client_gone:
        scope.cancel()


class _ReadyBody(HeldRequest):
    """A body that has come already, with its head."""

    complete = True

    def __init__(self, data: bytes, memory: BodyMemory) -> None:
        super().__init__(memory, len(data))
        self._data = data

    async def read(self, max_bytes: int) -> bytes:
        """See `Body.read`."""
        if len(self._data) > max_bytes:
            raise BodyTooLarge(max_bytes)
        self.hold(len(self._data))
        return self._data


class _Connection:
    """A connection's bytes: `unread` came and belongs to no request answered here.

    `waits_until`: while it waits for a head, the time at which `waiting` is to be cancelled.
    `spot`: None where what it carries is encrypted.
    """

    def __init__(self, stream: GuardedStream, limits: Limits, platform: Platform) -> None:
        self.stream = stream
        self.unread = b""
        self._limits = limits
        self._idle_seconds = limits.head_seconds
        self.waiting = trio.CancelScope()
        self.waits_until: float | None = None
        self._head_until: float | None = None
        fd = stream.plain_fd
        self.spot = None if fd is None else Spot(platform, self, fd)

    def end_wait(self) -> None:
        """For a head. What comes from now on is not begun: nobody could answer it."""
        if self.spot is not None:
            self.spot.end_wait()
        self.waiting.cancel()

    def leave(self) -> None:
        """The lane is done with it."""
        if self.spot is not None:
            self.spot.leave()

    async def next_head(self) -> bytes | None:
        """The next request's head with the empty line behind it, or whatever came where the lane
        is not sure of it; None where the connection ends."""
        self._head_until = None
        self.waits_until = trio.current_time() + self._idle_seconds
        self._idle_seconds = KEEP_ALIVE_SECONDS
        if self.unread:
            self._note_head()
        try:
            while True:
                end = self.unread.find(_END_OF_HEAD, 0, MAX_HEAD_BYTES)
                if end >= 0:
                    return self.unread[: end + len(_END_OF_HEAD)]
                if not may_become_hot(self.unread):
                    return self.unread
                if not self.unread and self.spot is not None:
                    if not await self.spot.park():
                        return None
                    self._note_head()
                    self.stream.idle_since = trio.current_time()
                    if self.unread:
                        continue
                data = await self._receive(_RECEIVE_BYTES)
                if not data:
                    return self.unread or None
                if not self.unread:
                    self._note_head()
                self.unread += data
        finally:
            self.waits_until = None

    def _note_head(self) -> None:
        """From its first byte on, a request's head has a deadline of its own."""
        self.waits_until = self._head_until = trio.current_time() + self._limits.head_seconds

    def hand_over(self) -> HandOver:
        seconds = self._limits.head_seconds
        if self._head_until is not None and not holds_head(self.unread):
            seconds = max(0.0, self._head_until - trio.current_time())
        unread, self.unread = self.unread, b""
        return HandOver(unread, seconds)

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
