"""A thread that acts for the event loop while that stands still.

To sync a small group takes less time than to wake a thread, and to be called back by it. So the
thread that syncs goes on by itself, answers, takes what has come meanwhile and syncs that, and the
event loop stands still until it has done a few rounds; nothing of the loop's is ever touched by two
threads at a time. If a write is not quick the loop goes on without the thread, and gets the result
later.
"""

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

import outcome
import trio

from logd.daemon.threads import Patience, WorkPool
from logd.errors import Overloaded

_PATIENCE_SECONDS: Final = 0.001
_ROUNDS_SECONDS: Final = 0.003


class Commit(Protocol):
    """A group on its way to the disk."""

    def write(self) -> object:
        """Make it durable. Touches nothing that the event loop does."""
        ...

    def finish(self, result: outcome.Outcome[object]) -> None:
        """Show it and answer, or tell what failed: as the event loop. Must not raise."""
        ...


class Deputy:
    """All methods are called by whoever acts as the event loop at the time."""

    def __init__(
        self,
        pool: WorkPool,
        patience_s: float = _PATIENCE_SECONDS,
        rounds_s: float = _ROUNDS_SECONDS,
    ) -> None:
        """`patience_s`: about how long the loop waits for a write; `rounds_s`: for all of them,
        if they are quick."""
        self._pool = pool
        self._patience_s = patience_s
        self._rounds_s = rounds_s
        self._patience = Patience()
        self._errands: list[Callable[[], None]] = []
        self._is_acting = False
        self._began_at = 0.0

    def is_able(self) -> bool:
        """Whether to let it act now. On the event loop. After a first write that was not quick it
        is not tried again for a while."""
        return self._patience.is_left()

    @property
    def is_acting(self) -> bool:
        return self._is_acting

    def now(self) -> float:
        """trio's time, to within a few milliseconds."""
        return self._began_at if self._is_acting else trio.current_time()

    def soon(self, call: Callable[[], None]) -> None:
        """What only the event loop can do: at once, or as soon as it goes on."""
        if self._is_acting:
            self._errands.append(call)
        else:
            call()

    def act(self, first: Commit, following: Callable[[], Commit | None]) -> None:
        """Write and finish this, and then what `following` gives, until there is nothing, the time
        is over, or there is something for the event loop to do. On the event loop, which stands
        still for it. Raises what `following` raises."""
        is_over_at = time.perf_counter() + self._rounds_s

        def next_one() -> Commit | None:
            if self._errands or time.perf_counter() >= is_over_at:
                return None
            return following()

        rounds = _Rounds(self._pool, first, next_one)
        self._began_at = trio.current_time()
        self._is_acting = True
        try:
            rounds.begin()
        except Overloaded as error:
            self._is_acting = False
            first.finish(outcome.Error(error))
            return
        was_quick = rounds.wait(self._patience_s)
        self._is_acting = False
        self._patience.note(in_vain=not (was_quick or rounds.finished))
        errands, self._errands = self._errands, []
        for call in errands:
            call()
        if rounds.error is not None:
            raise rounds.error


class _Rounds:
    """What a thread does in one go, and the event loop that waits for it."""

    def __init__(
        self, pool: WorkPool, first: Commit, following: Callable[[], Commit | None]
    ) -> None:
        self._pool = pool
        self._first = first
        self._following = following
        self._over = threading.Lock()
        self._over.acquire()
        self._lock = threading.Lock()
        self._writing_since: float | None = None
        self._loop_went_on = False
        self.finished = 0
        """Groups, while the event loop stood still."""
        self.error: BaseException | None = None

    def begin(self) -> None:
        """Raises Overloaded."""
        token = trio.lowlevel.current_trio_token()
        # The time until a thread takes it counts: all may wait for a disk that does not answer.
        self._writing_since = time.perf_counter()

        def late(commit: Commit, result: outcome.Outcome[object]) -> None:
            self._pool.ended()
            commit.finish(result)

        self._pool.begin(
            lambda: self._work(lambda *result: token.run_sync_soon(late, *result)),
            outcome.Outcome.unwrap,
        )

    def wait(self, seconds: float) -> bool:
        """Until all is done: True. False: a write takes longer, and is finished on the event loop,
        later; the thread touches nothing any more."""
        while not self._over.acquire(timeout=seconds):
            with self._lock:
                since = self._writing_since
                if since is not None and time.perf_counter() - since > seconds / 2:
                    self._loop_went_on = True
                    return False
        self._pool.ended()
        return True

    def _work(self, late: Callable[[Commit, outcome.Outcome[object]], None]) -> None:
        commit: Commit | None = self._first
        while commit is not None:
            with self._lock:
                self._writing_since = time.perf_counter()
            result = outcome.capture(commit.write)
            with self._lock:
                self._writing_since = None
            if self._loop_went_on:  # that happens before the end of a write, or not at all
                late(commit, result)
                return
            commit = self._next_after(commit, result)
        self._over.release()

    def _next_after(self, commit: Commit, result: outcome.Outcome[object]) -> Commit | None:
        try:
            commit.finish(result)
            self.finished += 1
            return self._following()
        except BaseException as error:  # noqa: BLE001  # the event loop raises it
            self.error = error
            return None
