"""Connections that wait for a request, watched together, and the requests that need no task.

In the lane a connection's task parks here until its client sends something. One task watches all
that are parked, through an epoll of its own in which a connection stays from request to request.
What comes as one whole request of the kind that `api/express.py` takes is begun at once, and
answered out of the commit that makes it durable; the connection's task sleeps on. Anything else,
and what is handed back, wakes the task, with the bytes in `unread`. While a task answers a query,
the same watch tells it if its client is gone.
"""

import os
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Protocol

import trio

from logd.api.exchange import Response
from logd.api.express import Asker
from logd.door.complaints import Complaints
from logd.door.limits import KEEP_ALIVE_SECONDS, MAX_HEAD_BYTES
from logd.door.stream import GuardedStream

_RECEIVE_BYTES: Final = 65_536
_EVENTS_AT_ONCE: Final = 256
_ROUNDS: Final = 4

Begin = Callable[[bytes, Asker], int | None]
"""Begins the request that these bytes are, if they are exactly one of the kind; the asker is told
later. How many bytes are held for it until then; None: nothing was done."""


class Waiter(Protocol):
    """A connection of the lane. `waits_until`: in trio's time, None while a request is answered;
    `unread`: bytes that came and are not answered."""

    stream: GuardedStream
    unread: bytes
    waits_until: float | None


class Platform:
    """Where connections are parked. Close it at the end."""

    def __init__(
        self,
        begin: Begin,
        commit: Callable[[], None],
        give_back: Callable[[int], None],
        encode: Callable[[Response, float], tuple[bytes, bool]],
        complaints: Complaints,
    ) -> None:
        """`commit()`: see to it that what was begun is answered; `give_back(count)`: so many bytes
        are held no more; `encode(response, now)`: its bytes, and whether the connection goes on
        after it."""
        self._commit = commit
        self.begin = begin
        self.give_back = give_back
        self.encode = encode
        self.complaints = complaints
        self._epoll = select.epoll()
        self._spots: dict[int, Spot] = {}

    async def run(self) -> None:
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for _ in range(_ROUNDS):
                ready = self._epoll.poll(0, _EVENTS_AT_ONCE)
                if not ready:
                    break
                for fd, _ in ready:
                    spot = self._spots.get(fd)
                    if spot is not None:
                        spot.look()
                self._commit()

    def watch(self, fd: int, spot: "Spot") -> None:
        """Tell the spot when there is something to read, now or later. Each time once."""
        if self._spots.get(fd) is spot:
            self._epoll.modify(fd, select.EPOLLIN | select.EPOLLET)
        else:
            self._epoll.register(fd, select.EPOLLIN | select.EPOLLET)
            self._spots[fd] = spot

    def forget(self, fd: int, spot: "Spot") -> None:
        """Before the descriptor is closed: another connection may get its number."""
        if self._spots.get(fd) is spot:
            del self._spots[fd]
            self._epoll.unregister(fd)

    def close(self) -> None:
        self._epoll.close()


class Spot:
    """A connection's place, from its beginning to the end of its time in the lane."""

    def __init__(self, platform: Platform, connection: Waiter, fd: int) -> None:
        self._platform = platform
        self._connection = connection
        self._stream = connection.stream
        self._fd = fd
        self._wake = trio.Event()
        self._parked = False
        self._under_way = b""
        self._held = 0
        self._came_meanwhile = False
        self._gone: Callable[[], None] | None = None
        self._ready: tuple[bytes, bool] | None = None
        self._sent = 0
        self._unsent = b""
        self._ends = False
        self._stream.on_abort = self.leave

    async def park(self) -> bool:
        """Until there is something for the task to do; whether the connection goes on."""
        self._wake = trio.Event()
        self._parked = True
        self._platform.watch(self._fd, self)
        try:
            await self._wake.wait()
        finally:
            self._parked = False
        if self._unsent:
            unsent, self._unsent = self._unsent, b""
            await self._stream.send_all(unsent)
        return not self._ends

    @contextmanager
    def listening(self, gone: Callable[[], None]) -> Iterator[None]:
        """While the task is not reading: `gone` is called if the client closes its side. What it
        sends instead is kept."""
        self._gone = gone
        self._platform.watch(self._fd, self)
        try:
            yield
        finally:
            self._gone = None

    def _listen(self, gone: Callable[[], None]) -> None:
        connection = self._connection
        try:
            while len(connection.unread) < MAX_HEAD_BYTES:
                data = os.read(self._fd, _RECEIVE_BYTES)
                if not data:
                    gone()
                    return
                connection.unread += data
        except BlockingIOError:
            return
        except OSError:
            gone()

    def leave(self) -> None:
        """It is no longer watched, and its task wakes."""
        self._platform.forget(self._fd, self)
        self._wake.set()

    def look(self) -> None:
        """There is something to read."""
        if not self._parked:
            if self._gone is not None:
                self._listen(self._gone)
            return  # its task reads
        if self._under_way:
            self._came_meanwhile = True
            return
        try:
            data = os.read(self._fd, _RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        held = self._platform.begin(data, self) if data else None
        if held is None:
            self._leave_to_task(data)
            return
        self._held = held
        self._under_way = data
        self._stream.idle_since = self._connection.waits_until = None

    def _leave_to_task(self, data: bytes) -> None:
        self._connection.unread = data
        self._parked = False
        self._wake.set()

    def expect(self, response: Response) -> None:
        """See `api.express.Asker`, whose methods these three are."""
        self._ready = self._platform.encode(response, trio.current_time())

    def tell(self) -> None:
        if self._ready is not None and self._parked and not self._stream.closed:
            with suppress(OSError):  # it is tried again when that can be dealt with
                self._sent = os.write(self._fd, self._ready[0])

    def settle(self, response: Response | None) -> None:
        """Never raises: it runs in the midst of a commit."""
        data, self._under_way = self._under_way, b""
        ready, self._ready = self._ready, None
        sent, self._sent = self._sent, 0
        self._platform.give_back(self._held)
        if not self._parked or self._stream.closed:
            return
        if response is None:
            self._leave_to_task(data)
            return
        try:
            now = trio.current_time()
            if ready is None or not sent:
                ready = self._platform.encode(response, now)
                sent = self._stream.send_at_once(ready[0])
            self._go_on(ready[0][sent:], ready[1], now)
        except trio.BrokenResourceError:
            pass  # the client is gone, and the task knows
        except Exception as error:  # noqa: BLE001  # the root of a request: the others are answered
            self._platform.complaints.note("an answer could not be sent", error)
            self._stream.abort()

    def _go_on(self, unsent: bytes, keep: bool, now: float) -> None:
        """After an answer, of which this is still to be sent."""
        if unsent or not keep:
            self._unsent = unsent
            self._ends = not keep
            self._parked = False
            self._wake.set()
            return
        self._stream.idle_since = now
        self._connection.waits_until = now + KEEP_ALIVE_SECONDS
        if self._came_meanwhile:
            self._came_meanwhile = False
            self.look()
