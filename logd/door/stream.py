"""A connection as the HTTP server sees it: sends that cannot stall, and a close that waits.

The server's `aclose` only ends its use of the stream. The connection's guard closes the transport
afterwards, when the client had time to read the answer.
"""

import trio

from logd.door.limits import SEND_PIECE_BYTES

Transport = trio.SocketStream | trio.SSLStream[trio.SocketStream]


class GuardedStream:
    """`at_eof`: the client has sent all it will. `linger`: it may still be sending a request
    that was answered already."""

    def __init__(self, transport: Transport, stall_seconds: float) -> None:
        self._transport = transport
        self._stall_seconds = stall_seconds
        self._closed = False
        self._receiving: trio.CancelScope | None = None
        self.at_eof = False
        self.linger = False

    @property
    def tls(self) -> bool:
        return isinstance(self._transport, trio.SSLStream)

    @property
    def socket(self) -> trio.socket.SocketType:
        if isinstance(self._transport, trio.SSLStream):
            return self._transport.transport_stream.socket
        return self._transport.socket

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

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Raises ClosedResourceError, also when `aclose` is called meanwhile."""
        if self._closed:
            raise trio.ClosedResourceError
        with trio.CancelScope() as self._receiving:
            data = bytes(await self._transport.receive_some(max_bytes))
            self.at_eof = not data
            return data
        raise trio.ClosedResourceError

    async def send_all(self, data: bytes) -> None:
        """Raises BrokenResourceError where the client does not take a piece in time."""
        view = memoryview(data)
        for start in range(0, len(view), SEND_PIECE_BYTES):
            if self._closed:
                raise trio.ClosedResourceError
            with trio.move_on_after(self._stall_seconds) as progress:
                await self._transport.send_all(view[start : start + SEND_PIECE_BYTES])
            if progress.cancelled_caught:
                self.abort()
                raise trio.BrokenResourceError("the client stopped reading")

    async def send_eof(self) -> None:
        """Nothing yet: the guard sends it."""

    async def aclose(self) -> None:
        self._closed = True
        if self._receiving is not None:
            self._receiving.cancel()
        await trio.lowlevel.checkpoint()

    def abort(self) -> None:
        """Close at once. Whoever waits for the transport gets ClosedResourceError."""
        self._closed = True
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
            if isinstance(self._transport, trio.SocketStream):
                await self._transport.send_eof()
            while await self._transport.receive_some(SEND_PIECE_BYTES):
                pass
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # gone: nothing to wait for
