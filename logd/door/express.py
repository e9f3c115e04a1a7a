"""Connections that wait for a request, watched together, and the requests that need no task.

In the lane a connection's task parks here until its client sends something. One task watches all
that are parked, through an epoll of its own in which a connection stays from request to request.
What comes as one whole request of the kind that `api/express.py` takes is begun at once, and
answered out of the commit that makes it durable; a question whose answer is at hand is answered
there and then. The connection's task sleeps on. Anything else, and what is handed back, wakes the
task, with the bytes in `unread`. While a task answers a query, the same watch tells it if its
client is gone.

Much of this is done by the deputy of the event loop (`daemon/deputy.py`): what only the loop itself
can do, such as to wake a task, is left to it with `soon`.
"""

import os
import select
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, Protocol

import trio

from logd.api.exchange import Response
from logd.api.express import Express, Told
from logd.daemon.deputy import Commit
from logd.daemon.threads import Patience
from logd.door.complaints import Complaints
from logd.door.limits import KEEP_ALIVE_SECONDS, MAX_HEAD_BYTES, UNCOUNTED_ANSWER_BYTES
from logd.door.memory import BodyMemory, Holding
from logd.door.stream import GuardedStream
from logd.errors import Overloaded

_RECEIVE_BYTES: Final = 65_536
_EVENTS_AT_ONCE: Final = 256
_ROUNDS: Final = 4
_LINGER_SECONDS: Final = 0.0001
_LONGEST_LINGER_SECONDS: Final = 0.0005
_AT_ONCE_SECONDS: Final = 0.002  # for answers, before the event loop goes on
_EVENTS: Final = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
_ENOUGH: Final = 16  # requests: a larger group would not make each of them much cheaper

Begin = Callable[[bytes, Told], int | None]
"""Begins the request that these bytes are, if they are exactly one of the kind; `Told` is called
later. How many bytes are held for it until then; None: nothing was done."""


AnswerAtOnce = Callable[[bytes], Response | None]
"""The answer to the request that these bytes are, if they are exactly one without a body and no
wait is needed. Called on the event loop only."""


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
        answer_at_once: AnswerAtOnce,
        express: Express,
        give_back: Callable[[int], None],
        encode: Callable[[Response, float], tuple[bytes, bool]],
        memory: BodyMemory,
        complaints: Complaints,
        cores: int,
    ) -> None:
        """`express`: commits what was begun; `give_back(count)`: so many bytes are held no more;
        `encode(response, now)`: its bytes, and whether the connection goes on after it;
        `memory`: for answers that are not sent yet;
        `cores`: those that the process may use."""
        self._express = express
        self.deputy = express.deputy
        self.begin = begin
        self._answer_at_once = answer_at_once
        self._answers_until = 0.0
        self.give_back = give_back
        self.encode = encode
        self.memory = memory
        self.complaints = complaints
        self.is_stopping = False
        """No connection is to wait for another request."""
        self.answered: set[Spot] = set()
        """Those whose clients may be about to send the next request."""
        self._patience = Patience()
        self._may_linger = cores > 1  # others use a core meanwhile
        self._epoll = select.epoll()
        self._spots: dict[int, Spot] = {}

    async def run(self) -> None:
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            self.answered.clear()
            self._answers_until = time.perf_counter() + _AT_ONCE_SECONDS
            for _ in range(_ROUNDS):
                if not self._look():
                    break
                has_much = self._express.has_much
                if not self.deputy.is_able():
                    self._express.commit_soon()
                    if has_much:
                        break
                    continue
                commit = self._express.take_commit()
                if commit is not None:
                    self.deputy.act(commit, self._take_next)
                    break

    def _look(self) -> int:
        """At all where there is something to read, or as many as bring enough to do: at how
        many."""
        ready = self._epoll.poll(0, _EVENTS_AT_ONCE)
        for number, (fd, events) in enumerate(ready):
            if self._express.has_much:
                self._look_later([fd for fd, _ in ready[number:]])
                return number
            spot = self._spots.get(fd)
            if spot is not None:
                self.answered.discard(spot)
                spot.look(events)
        return len(ready)

    def _look_later(self, descriptors: Iterable[int]) -> None:
        """The next look finds them again, which has been told of them."""
        for fd in descriptors:
            if fd in self._spots:
                self._epoll.modify(fd, _EVENTS)

    def _take_next(self) -> Commit | None:
        """What has come since the last commit, and what those who were answered send at once: more
        in a group is less work for each."""
        came = self._look()
        if self.answered and came < _ENOUGH and self._may_linger and self._patience.is_left():
            came += self._linger(_ENOUGH - came)
        self.answered.clear()
        return self._express.take_commit() if came else None

    def _linger(self, enough: int) -> int:
        """Until so many have come, or all that were answered, or no more for a moment: how many.
        Without sleeping: that would take longer."""
        awaited, came = len(self.answered), 0
        now = time.perf_counter()
        last, until = now + _LONGEST_LINGER_SECONDS, now + _LINGER_SECONDS
        while self.answered and came < enough and now < until:
            more = self._look()
            now = time.perf_counter()
            if more:
                came += more
                until = min(now + _LINGER_SECONDS, last)
        self._patience.note(in_vain=len(self.answered) == awaited)
        return came

    def answer_at_once(self, data: bytes) -> Response | None:
        """None: nothing was done."""
        if (
            not data.startswith(b"GET ")
            or self.deputy.is_acting
            or time.perf_counter() >= self._answers_until
        ):
            return None
        return self._answer_at_once(data)

    def watch(self, fd: int, spot: "Spot") -> None:
        """Tell the spot when there is something to read, now or later. Each time once."""
        if self._spots.get(fd) is spot:
            self._epoll.modify(fd, _EVENTS)
        else:
            self._epoll.register(fd, _EVENTS)
            self._spots[fd] = spot

    def forget(self, fd: int, spot: "Spot") -> None:
        """Before the descriptor is closed: another connection may get its number."""
        if self._spots.get(fd) is spot:
            del self._spots[fd]
            self._epoll.unregister(fd)
            self.answered.discard(spot)

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
        self._more = False
        self._gone: Callable[[], None] | None = None
        self._unsent = b""
        self._answer_held = Holding(platform.memory)
        self._ends = False
        self._stream.on_abort = self.leave

    async def park(self) -> bool:
        """Until there is something for the task to do; whether the connection goes on."""
        while True:
            self._wake = trio.Event()
            self._parked = True
            self._more = False
            self._platform.watch(self._fd, self)
            try:
                await self._wake.wait()
            finally:
                self._parked = False
            if not self._unsent:
                return not self._ends
            unsent, self._unsent = self._unsent, b""
            try:
                await self._stream.send_all(unsent)
            finally:
                self._answer_held.release()
            if self._ends or self._platform.is_stopping:
                return False
            self._wait_for_next(trio.current_time())

    def end_wait(self) -> None:
        """Its task is about to be cancelled."""
        self._parked = False

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
                    self._platform.deputy.soon(gone)
                    return
                connection.unread += data
        except BlockingIOError:
            return
        except OSError:
            self._platform.deputy.soon(gone)

    def leave(self) -> None:
        """It is no longer watched, and its task wakes."""
        self._platform.forget(self._fd, self)
        self._answer_held.release()
        self._wake.set()

    def look(self, events: int) -> None:
        """There is something to read. `events`: of epoll, which tells of each arrival once: what
        this one read leaves behind is looked for after the answer."""
        if not self._parked:
            if self._gone is not None:
                self._listen(self._gone)
            return  # its task reads
        if self._under_way:
            self._more = True
            return
        try:
            data = os.read(self._fd, _RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._more = bool(events & select.EPOLLRDHUP) or len(data) == _RECEIVE_BYTES
        response = self._platform.answer_at_once(data)
        if response is not None and self._is_held(response):
            if self._answer_or_give_up(response):
                self._look_again()
            return
        held = self._platform.begin(data, self._told) if data else None
        if held is None:
            self._leave_to_task(data)
            return
        self._held = held
        self._under_way = data
        self._stream.idle_since = self._connection.waits_until = None

    def _is_held(self, response: Response) -> bool:
        """Whether there is memory for it, until it is sent. Without, the task refuses it."""
        if len(response.body) <= UNCOUNTED_ANSWER_BYTES:  # as most are
            return True
        try:
            self._answer_held.change(*self._platform.memory.of_answer(len(response.body)))
        except Overloaded:
            return False
        return True

    def _leave_to_task(self, data: bytes) -> None:
        self._connection.unread = data
        self._wake_task()

    def _wake_task(self) -> None:
        self._parked = False
        self._platform.deputy.soon(self._wake.set)

    def _told(self, response: Response | None) -> None:
        """See `api.express.Told`."""
        data, self._under_way = self._under_way, b""
        self._platform.give_back(self._held)
        if not self._parked or self._stream.closed:
            return
        if response is None:
            self._leave_to_task(data)
        elif self._answer_or_give_up(response):
            self._platform.answered.add(self)
            self._look_again()

    def _look_again(self) -> None:
        """If there may be something to read that no arrival will tell of."""
        if self._more:
            self._more = False
            self._platform.watch(self._fd, self)

    def _answer_or_give_up(self, response: Response) -> bool:
        """Whether the connection waits for the next request."""
        try:
            return self._answer(response, self._platform.deputy.now())
        except Exception as error:  # noqa: BLE001  # the root of a request: the others are answered
            self._platform.deputy.soon(partial(self._give_up, error))
            return False

    def _give_up(self, error: Exception) -> None:
        self._platform.complaints.note("an answer could not be sent", error)
        self._stream.abort()

    def _answer(self, response: Response, now: float) -> bool:
        data, keep = self._platform.encode(response, now)
        try:
            sent = self._stream.send_at_once(data)
        except trio.BrokenResourceError:  # the client is gone
            self._platform.deputy.soon(self._stream.abort)
            return False
        if sent < len(data) or not keep:
            self._unsent = data[sent:]
            self._answer_held.change(*self._platform.memory.of_answer(len(self._unsent)))
            self._ends = not keep
            self._stream.idle_since = self._connection.waits_until = None
            self._wake_task()
            return False
        if self._answer_held.count:
            self._answer_held.release()
        self._wait_for_next(now)
        return True

    def _wait_for_next(self, now: float) -> None:
        """The connection is idle, and a while later it ends."""
        self._stream.idle_since = now
        self._connection.waits_until = now + KEEP_ALIVE_SECONDS
