"""Request bodies on their way in: counted, timed, and bounded all together."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from logd.api.errors import BodyTooLarge, BodyTooSlow
from logd.door.limits import MIN_BODY_BYTES_PER_SECOND, SKIPPED_BYTES
from logd.errors import Overloaded

Message = dict[str, Any]
"""An ASGI message."""

_WORTH_KEEPING_BYTES: Final = 1024
"""A piece of fewer is copied."""


class BodyMemory:
    """The bytes of all request bodies that are in memory at once."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.held_bytes = 0

    def take(self, count: int) -> None:
        """Raises Overloaded."""
        if self.held_bytes + count > self._max_bytes:
            raise Overloaded("too many large requests at once")
        self.held_bytes += count

    def give_back(self, count: int) -> None:
        self.held_bytes -= count


class _Pieces:
    """A body's pieces, in order. Small ones are copied together: each by itself would take many
    times what it holds."""

    def __init__(self) -> None:
        self._pieces: list[bytes | bytearray] = []

    def add(self, piece: bytes) -> None:
        if len(piece) >= _WORTH_KEEPING_BYTES:
            self._pieces.append(piece)
        elif self._pieces and isinstance(last := self._pieces[-1], bytearray):
            last += piece
        else:
            self._pieces.append(bytearray(piece))

    def clear(self) -> None:
        self._pieces.clear()

    def joined(self) -> bytes:
        return b"".join(self._pieces)


class IncomingBody:
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
        self._receive = receive
        self._declared_bytes = declared_bytes
        self._memory = memory
        self._stall_seconds = stall_seconds
        self._began_at = trio.current_time()
        self._came = 0
        self._held = 0
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
        return pieces.joined()

    def hold(self, count: int) -> None:
        """See `Body.hold`. Where that fails the request does: what it held is free at once, or
        all that arrive together would fail together."""
        try:
            self._memory.take(count)
        except Overloaded:
            self.release()
            raise
        self._held += count

    def release(self) -> None:
        """What was held for this body is free again."""
        self._memory.give_back(self._held)
        self._held = 0

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
        if progress.cancelled_caught or self._trickles():
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

    def _trickles(self) -> bool:
        elapsed = trio.current_time() - self._began_at
        slow = elapsed > self._stall_seconds and self._came < elapsed * MIN_BODY_BYTES_PER_SECOND
        return slow and not self.complete
