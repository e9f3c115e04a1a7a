"""Worker threads: each kind of work has its own limiter, so that none starves another.

A sync of the WAL must never wait behind queries, or projects that are opened: acknowledgements hang
on it.
"""

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, cast

import outcome
import trio

from logd.daemon.turns import Turns
from logd.errors import Cancelled, Overloaded

T = TypeVar("T")

_WAL_THREADS: Final = 16
_OPEN_THREADS: Final = 1  # the store opens one project at a time
_FREEZE_THREADS: Final = 1
_DECODE_THREADS: Final = 2
_BUSY_SECONDS: Final = 0.01
_PATIENCE_SECONDS: Final = 0.001
_MOST_SKIPS: Final = 256


class Patience:
    """Whether to try what was in vain lately: the more often that was, the more times not."""

    def __init__(self, most_skips: int = _MOST_SKIPS) -> None:
        """`most_skips`: how many times not, at most, before it is tried again."""
        self._most_skips = most_skips
        self._skips = self._skipped = 0

    def is_left(self) -> bool:
        """To be asked each time."""
        self._skipped += 1
        return self._skipped > self._skips

    def note(self, *, in_vain: bool) -> None:
        """What came of a try."""
        self._skipped = 0
        self._skips = min(2 * self._skips + 1, self._most_skips) if in_vain else 0


class Threads:
    """The threads of a daemon. Close it at the end."""

    def __init__(self, query_threads: int) -> None:
        self.wal = WorkPool("wal", _WAL_THREADS)
        self.open = WorkPool("open", _OPEN_THREADS)
        self.freeze = WorkPool("freeze", _FREEZE_THREADS)
        self.decode = trio.CapacityLimiter(_DECODE_THREADS)
        self.query = WorkPool("query", query_threads)

    def close(self) -> None:
        self.wal.close()
        self.open.close()
        self.freeze.close()
        self.query.close()


async def in_thread(call: Callable[[], T], limiter: trio.CapacityLimiter | None = None) -> T:
    """What `call()` returns or raises, in a thread of trio's. Not cancellable. Raises Overloaded
    where none can be started, and then nothing was done."""
    try:
        result = await trio.to_thread.run_sync(outcome.capture, call, limiter=limiter)
    except RuntimeError as error:  # not of the call, whose errors are captured
        raise Overloaded("no thread can be started") from error
    return result.unwrap()


class WorkPool:
    """Threads that run calls to their end, whatever happens to the caller: for work that changes
    state. A call costs a third of what trio's general way costs, and single entries are
    acknowledged through here."""

    def __init__(self, name: str, threads: int, patience_s: float = _PATIENCE_SECONDS) -> None:
        """`patience_s`: how long the event loop stands still for a call that is probably quick:
        less than it takes to let go of the loop and to be called back."""
        self._name = name
        self._patience_s = patience_s
        self._patience = Patience()
        self._max_threads = threads
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._busy = 0
        self._used_at = 0.0

    async def run(self, call: Callable[[], T]) -> T:
        """What `call()` returns or raises. Not cancellable."""
        return await self._run(call, _not_abortable)

    async def run_at_the_end(self, call: Callable[[], T]) -> T:
        """As `run`, for what the end of the daemon needs: here where no thread can be started."""
        try:
            return await self.run(call)
        except Overloaded:
            return call()

    async def _run(self, call: Callable[[], T], abort: Callable[[Any], trio.lowlevel.Abort]) -> T:
        task, token = trio.lowlevel.current_task(), trio.lowlevel.current_trio_token()

        def deliver(result: outcome.Outcome[Any]) -> None:
            token.run_sync_soon(trio.lowlevel.reschedule, task, result)

        self.begin(call, deliver)
        try:
            return cast(T, await trio.lowlevel.wait_task_rescheduled(abort))
        finally:
            self.ended()

    def run_briefly(
        self, call: Callable[[], T], late: Callable[[outcome.Outcome[T]], None]
    ) -> outcome.Outcome[T] | None:
        """What came of `call()`, if it is quick; the event loop stands still for it. Otherwise
        None, and `late` is called on the loop, later."""
        token = trio.lowlevel.current_trio_token()

        def arrive_late(result: outcome.Outcome[T]) -> None:
            self.ended()
            late(result)

        handover = _Handover(lambda result: token.run_sync_soon(arrive_late, result))
        self.begin(call, handover.deliver)
        result = handover.wait(self._patience_s)
        self._patience.note(in_vain=result is None)
        if result is not None:
            self.ended()
        return result

    def begin(self, call: Callable[[], object], deliver: Callable[[Any], None]) -> None:
        """Call `deliver(what came of call())` in a thread, when one is free. To be followed by
        `ended`, on the event loop. Raises Overloaded, and then nothing was begun."""
        if len(self._threads) < min(self._busy + 1, self._max_threads):
            self._start_thread()
        self._busy += 1
        self._used_at = time.monotonic()
        self._jobs.put(_Job(call, deliver))

    def ended(self) -> None:
        """A call that was begun is over."""
        self._busy -= 1

    def is_busy(self) -> bool:
        """Whether it was given a call lately."""
        return time.monotonic() - self._used_at < _BUSY_SECONDS

    async def run_cancellable(
        self, call: Callable[[Callable[[], None]], T], flag: "CancelFlag"
    ) -> T:
        """What `call(check)` returns or raises; cancelling the caller makes `check` raise, and the
        call has ended before this returns. Raises Cancelled when the flag's time is over. The event
        loop stands still for a quick call: this is not always a checkpoint."""

        def stop(_raise_cancel: object) -> trio.lowlevel.Abort:
            flag.is_set = True
            return trio.lowlevel.Abort.FAILED

        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            if self._busy or not self._patience.is_left():
                return await self._run(lambda: call(flag.check), stop)
            task = trio.lowlevel.current_task()
            result = self.run_briefly(
                lambda: call(flag.check),
                late=lambda result: trio.lowlevel.reschedule(task, result),
            )
            if result is not None:
                return result.unwrap()
            return cast(T, await trio.lowlevel.wait_task_rescheduled(stop))
        finally:
            if flag.is_set:
                await trio.lowlevel.checkpoint_if_cancelled()

    def _start_thread(self) -> None:
        name = f"{self._name}-{len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system allows no more
            if not self._threads:
                raise Overloaded("no thread can be started") from error
        else:
            self._threads.append(thread)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.deliver(outcome.capture(job.call))
            del job  # an idle thread holds on to no snapshot

    def close(self) -> None:
        """Ends the threads; no call may be running."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()


class _Job(NamedTuple):
    """`deliver`: called with what came of it, in the thread."""

    call: Callable[[], object]
    deliver: Callable[[outcome.Outcome[Any]], None]


class _Handover:
    """A result on its way from a thread to one that waits, for a while."""

    __slots__ = ("_arrived", "_given_up", "_late", "_lock", "_result")

    def __init__(self, late: Callable[[outcome.Outcome[Any]], None]) -> None:
        self._late = late
        self._lock = threading.Lock()
        self._arrived = threading.Lock()
        self._arrived.acquire()
        self._result: outcome.Outcome[Any] | None = None
        self._given_up = False

    def deliver(self, result: outcome.Outcome[Any]) -> None:
        with self._lock:
            self._result = result
            given_up = self._given_up
        if given_up:
            self._late(result)
        else:
            self._arrived.release()

    def wait(self, seconds: float) -> outcome.Outcome[Any] | None:
        """None: it will be `late`."""
        self._arrived.acquire(timeout=seconds)
        with self._lock:
            self._given_up = self._result is None
            return self._result


def _not_abortable(_raise_cancel: object) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.FAILED


class CancelFlag:
    """Seen by a thread between its slices of work on a query."""

    def __init__(self, deadline_s: float, writers: WorkPool) -> None:
        self._deadline = time.monotonic() + deadline_s
        self._writers = writers
        self._turns = Turns()
        self.is_set = False

    def check(self) -> None:
        """Raises Cancelled once the flag is set or the time is over. Lets those who write run."""
        if self.is_set or time.monotonic() > self._deadline:
            raise Cancelled("the query was stopped")
        if self._writers.is_busy():
            self._turns.take_rest()
        else:
            self._turns.begin()
