"""Worker threads: each kind of work has its own limiter, so that none starves another.

A sync of the WAL must never wait behind queries: acknowledgements hang on it.
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar

import trio

from logd.errors import Cancelled

T = TypeVar("T")

_WAL_THREADS: Final = 32
_FREEZE_THREADS: Final = 1
_DECODE_THREADS: Final = 2


class Threads:
    """The limiters of a daemon."""

    def __init__(self, query_threads: int) -> None:
        self.wal = trio.CapacityLimiter(_WAL_THREADS)
        self.freeze = trio.CapacityLimiter(_FREEZE_THREADS)
        self.decode = trio.CapacityLimiter(_DECODE_THREADS)
        self.query = trio.CapacityLimiter(query_threads)


async def run_uninterrupted(call: Callable[[], T], limiter: trio.CapacityLimiter) -> T:
    """Run in a thread to its end, whatever happens to the caller: for work that changes state."""
    with trio.CancelScope(shield=True):
        result = await trio.to_thread.run_sync(call, limiter=limiter)
    return result  # noqa: RET504 - behind the scope, which may swallow for all mypy knows


class CancelFlag:
    """Seen by a thread between its slices."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline = time.monotonic() + deadline_s
        self.is_set = False

    def check(self) -> None:
        """Raises Cancelled once the flag is set or the time is over."""
        if self.is_set or time.monotonic() > self._deadline:
            raise Cancelled("the query was stopped")


async def run_cancellable(
    call: Callable[[Callable[[], None]], T], flag: CancelFlag, limiter: trio.CapacityLimiter
) -> T:
    """Run `call(check)` in a thread; cancelling the caller makes `check` raise, and the thread ends
    before this returns. Raises Cancelled when the flag's time is over."""
    outcome: list[T] = []
    failure: list[Exception] = []

    def work() -> None:
        try:
            outcome.append(call(flag.check))
        except Exception as error:  # noqa: BLE001 - handed to the caller, past the nursery
            failure.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_set_when_cancelled, flag)
        await trio.to_thread.run_sync(work, limiter=limiter)
        nursery.cancel_scope.cancel()
    await trio.lowlevel.checkpoint_if_cancelled()
    if failure:
        raise failure[0]
    return outcome[0]


async def _set_when_cancelled(flag: CancelFlag) -> None:
    try:
        await trio.sleep_forever()
    finally:
        flag.is_set = True
