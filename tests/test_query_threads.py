"""Queries in threads: whoever gave up waits until the thread has let go."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
import trio

from logd.daemon.threads import CancelFlag, WorkPool
from logd.errors import Cancelled


@pytest.fixture
def pool() -> Iterator[WorkPool]:
    opened = WorkPool("query", 1)
    yield opened
    opened.close()


class EndlessQuery:
    """Runs until its check raises."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.ended = False

    def __call__(self, check: Callable[[], None]) -> None:
        self.begun.set()
        try:
            while True:
                check()
                time.sleep(0.001)
        finally:
            self.ended = True


async def test_a_query_gives_its_result(pool: WorkPool) -> None:
    assert await pool.run_cancellable(lambda check: 7, CancelFlag(60, pool)) == 7


async def test_a_query_gives_its_error(pool: WorkPool) -> None:
    def fail(_: Callable[[], None]) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await pool.run_cancellable(fail, CancelFlag(60, pool))


async def test_a_cancelled_query_has_ended_when_its_caller_goes_on(pool: WorkPool) -> None:
    query = EndlessQuery()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.run_cancellable, query, CancelFlag(60, pool))
            await trio.to_thread.run_sync(query.begun.wait)
            scope.cancel()
    assert scope.cancelled_caught
    assert query.ended


async def test_a_query_that_was_cancelled_before_does_not_begin(pool: WorkPool) -> None:
    query = EndlessQuery()
    with trio.CancelScope() as scope:
        scope.cancel()
        await pool.run_cancellable(query, CancelFlag(60, pool))
    assert scope.cancelled_caught
    assert not query.begun.is_set()


async def test_a_query_whose_time_is_over_is_stopped(pool: WorkPool) -> None:
    with pytest.raises(Cancelled):
        await pool.run_cancellable(EndlessQuery(), CancelFlag(0, pool))
