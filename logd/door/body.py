"""Request bodies on their way in: counted and timed."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from logd.api.errors import BodyTooLarge, BodyTooSlow
from logd.api.joining import joined
from logd.door.limits import MIN_BODY_BYTES_PER_SECOND, SKIPPED_BYTES
from logd.door.memory import BodyMemory, HeldRequest
from logd.door.pace import Pace

Message = dict[str, Any]
"""An ASGI message."""

_WORTH_KEEPING_BYTES: Final = 1024
"""A piece of fewer is copied."""
_MOST_TOGETHER_BYTES: Final = 65_536  # what is copied once more in the end


class _Pieces:
    """A body's pieces, in order. Small ones are copied together: each by itself would take many
    times what it holds."""

    def __init__(self) -> None:
        self._pieces: list[bytes | bytearray] = []

    def add(self, piece: bytes) -> None:
        if len(piece) >= _WORTH_KEEPING_BYTES:
            self._pieces.append(piece)
        elif (
            self._pieces
            and isinstance(last := self._pieces[-1], bytearray)
            and len(last) < _MOST_TOGETHER_BYTES
        ):
            last += piece
        else:
            self._pieces.append(bytearray(piece))

    def clear(self) -> None:
        self._pieces.clear()

    async def joined(self) -> bytes:
        return await joined(self._pieces)


class IncomingBody(HeldRequest):
    """One body, from the ASGI messages that bring it.

    `complete`: all of it has come. `settled`: it is complete, nobody wants the rest, or the client
    is gone: from then on the messages are another's to receive.
    """

    def __init__(
        self,
        receive: Callable[[], Awaitable[Message]],
        declared_bytes: int | None,
        memory: BodyMemory,
        stall_seconds: float,
    ) -> None:
        super().__init__(memory, declared_bytes)
        self._receive = receive
        self._declared_bytes = declared_bytes
        self._stall_seconds = stall_seconds
        self._pace = Pace(stall_seconds, MIN_BODY_BYTES_PER_SECOND)
        self._came = 0
        self._given_up = False
        self.complete = False
        self.client_gone = False
        self.settled = trio.Event()

    async def read(self, max_bytes: int) -> bytes:
        """See `Body.read`. An oversize body is read on for a little, so that the client gets
        the answer on a connection that stays usable."""
        if self._declared_bytes is not None and self._declared_bytes > max_bytes + SKIPPED_BYTES:
            raise BodyTooLarge(max_bytes)
        pieces = _Pieces()
        while not self.complete:
            piece = await self._next()
            if self._came <= max_bytes:
                self.hold(len(piece))
                pieces.add(piece)
            else:
                pieces.clear()
                self.release()
                if self._came > max_bytes + SKIPPED_BYTES:
                    raise BodyTooLarge(max_bytes)
        if self._came > max_bytes:
            raise BodyTooLarge(max_bytes)
        return await pieces.joined()

    async def skip(self, seconds: float) -> None:
        """Read on to the end of an unwanted body where that is near, and comes soon."""
        most = self._came + SKIPPED_BYTES
        if self._given_up or (self._declared_bytes is not None and self._declared_bytes > most):
            return
        with trio.move_on_after(seconds):
            while not self.complete and self._came <= most:
                await self._receive_piece()

    def abandon(self) -> None:
        """Nobody wants the rest."""
        self.settled.set()

    async def _next(self) -> bytes:
        """The next piece. Raises BodyTooSlow."""
        with trio.move_on_after(self._stall_seconds) as progress:
            piece = await self._receive_piece()
        if progress.cancelled_caught or self._trickles(len(piece)):
            self._given_up = True
            raise BodyTooSlow(f"the body stalled, or was below {MIN_BODY_BYTES_PER_SECOND} bytes/s")
        return piece

    async def _receive_piece(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.client_gone = True
            self.settled.set()
            await trio.sleep_forever()  # the app is told, and cancels whoever waits here
        piece = bytes(message.get("body", b""))
        self._came += len(piece)
        if not message.get("more_body", False):
            self.complete = True
            self.settled.set()
        return piece

    def _trickles(self, count: int) -> bool:
        return self._pace.is_too_slow(count) and not self.complete
