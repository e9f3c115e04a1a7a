"""A connection as the HTTP server sees it: sends that cannot stall, and a close that waits.

The server's `aclose` only ends its use of the stream. The connection's guard closes the transport
afterwards, when the client had time to read the answer.
"""

import os
from collections.abc import Callable

import trio

from logd.door.limits import MIN_ANSWER_BYTES_PER_SECOND, SEND_PIECE_BYTES
from logd.door.pace import Pace

Transport = trio.SocketStream | trio.SSLStream[trio.SocketStream]


class GuardedStream:
    """`closed`: the server is done with it. `at_eof`: the client has sent all it will.
    `linger`: it may still be sending a request that was answered already. `idle_since`: when it
    last began to wait for a request's head, in trio's time, None while one is being answered.
    `on_abort` is called before the descriptor closes without a warning."""

    def __init__(self, transport: Transport, stall_seconds: float) -> None:
        self._transport = transport
        self._stall_seconds = stall_seconds
        self.closed = False
        self.at_eof = False
        self.linger = False
        self.idle_since: float | None = trio.current_time()
        self.on_abort: Callable[[], None] | None = None
        self._put_back = b""
        self._fd: int | None = None
        if isinstance(transport, trio.SocketStream):
            self._fd = transport.socket.fileno()

    @property
    def plain_fd(self) -> int | None:
        """The socket's descriptor where what it carries is not encrypted."""
        return self._fd

    @property
    def tls(self) -> bool:
        return isinstance(self._transport, trio.SSLStream)

    @property
    def socket(self) -> trio.socket.SocketType:
        return self._wire.socket

    @property
    def _wire(self) -> trio.SocketStream:
        """What carries the bytes as they are sent, encrypted or not."""
        if isinstance(self._transport, trio.SSLStream):
            return self._transport.transport_stream
        return self._transport

    async def handshake(self, seconds: float) -> bool:
        """Of TLS, where that is spoken; whether there is a connection to serve."""
        if not isinstance(self._transport, trio.SSLStream):
            return True
        try:
            with trio.fail_after(seconds):
                await self._transport.do_handshake()
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            return False
        return True

    async def receive_some(self, max_bytes: int) -> bytes:
        if self.closed:
            raise trio.ClosedResourceError
        if self._put_back:
            data, self._put_back = self._put_back[:max_bytes], self._put_back[max_bytes:]
            await trio.lowlevel.checkpoint()
            return data
        if self._fd is not None:
            data = await self._receive_plain(max_bytes)
        else:
            data = bytes(await self._transport.receive_some(max_bytes))
        self.at_eof = not data
        return data

    def put_back(self, data: bytes) -> None:
        """These bytes were received and not used: they come again first."""
        self._put_back = data

    async def send_all(self, data: bytes) -> None:
        """Raises BrokenResourceError where the client is gone, or does not take a piece in time,
        or too little over a time; the stream is closed then."""
        if self.closed:
            raise trio.ClosedResourceError
        try:
            sent = self.send_at_once(data)
        except trio.BrokenResourceError:
            self.abort()
            raise
        if sent == len(data):
            return
        pace = Pace(self._stall_seconds, MIN_ANSWER_BYTES_PER_SECOND)
        view = memoryview(data)[sent:]
        while view:
            if self.closed:
                raise trio.ClosedResourceError
            piece, view = view[:SEND_PIECE_BYTES], view[SEND_PIECE_BYTES:]
            await self._send_piece(piece)
            if pace.is_too_slow(len(piece)) and view:
                self.abort()
                raise trio.BrokenResourceError("the client reads too slowly")

    async def _receive_plain(self, max_bytes: int) -> bytes:
        """Without trio's socket layer, which costs as much as all else a small request needs.
        Raises BrokenResourceError, ClosedResourceError."""
        assert self._fd is not None
        while True:
            try:
                return os.read(self._fd, max_bytes)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._fd)
                if self.closed:
                    raise trio.ClosedResourceError from None
            except OSError as error:
                raise trio.BrokenResourceError("the connection broke") from error

    def send_at_once(self, data: bytes) -> int:
        """What the kernel takes without waiting, in bytes. Raises BrokenResourceError, after which
        it is to be aborted. The stream must not be closed. Needs no event loop."""
        if self._fd is None:
            return 0
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise trio.BrokenResourceError("the connection broke") from error

    async def _send_piece(self, piece: memoryview) -> None:
        try:
            with trio.fail_after(self._stall_seconds):
                await self._transport.send_all(piece)
        except (trio.BrokenResourceError, trio.TooSlowError) as error:
            self.abort()
            raise trio.BrokenResourceError("the client does not read") from error

    async def send_eof(self) -> None:
        """Nothing yet: the guard sends it."""

    async def aclose(self) -> None:
        self.closed = True
        await trio.lowlevel.checkpoint()

    def abort(self) -> None:
        """Close at once. Whoever waits for the transport gets ClosedResourceError."""
        if self.on_abort is not None:
            self.on_abort()
        self.closed = True
        self.linger = False
        self.socket.close()

    async def finish(self, seconds: float) -> None:
        """Close the transport; before, where the client may still be sending, discard for so
        long what comes."""
        with trio.move_on_after(seconds):
            if self.linger and not self.at_eof:
                await self._discard()
            await self._transport.aclose()
        await trio.aclose_forcefully(self._transport)

    async def _discard(self) -> None:
        try:
            await self._wire.send_eof()  # of TCP: no goodbye of TLS follows later either
            while await self._transport.receive_some(SEND_PIECE_BYTES):
                pass
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # gone: nothing to wait for
