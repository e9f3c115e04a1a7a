"""Who acts for the event loop, and when; and results that a thread is late with."""

import threading
import time
from collections.abc import Callable
from functools import partial
from random import Random

import outcome
import pytest
import trio
import trio.testing
from waiting import until

from logd.daemon.deputy import Deputy
from logd.daemon.threads import Patience, WorkPool
from logd.errors import Overloaded

MOMENT_SECONDS = 0.001
PATIENCE_SECONDS = 0.5  # a thread on a busy machine may wait for its turn for a part of that
LIMIT_SECONDS = 20

_Lock = threading.Lock


class SlowLock:
    """Who lets go of it does not go on at once."""

    def __init__(self) -> None:
        self._lock = _Lock()
        self.acquire = self._lock.acquire
        self.release = self._lock.release

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        time.sleep(MOMENT_SECONDS)


class Group:
    """`seconds`: what writing it takes."""

    def __init__(self, number: int, seconds: float, finished: list[int]) -> None:
        self.number = number
        self.seconds = seconds
        self.finished = finished
        self.finished_by: threading.Thread | None = None

    def write(self) -> int:
        time.sleep(self.seconds)
        return self.number

    def finish(self, result: outcome.Outcome[object]) -> None:
        assert result.unwrap() == self.number
        self.finished.append(self.number)
        self.finished_by = threading.current_thread()


class Held(Group):
    """Writing it takes until it is `let_go`."""

    def __init__(self, number: int, finished: list[int]) -> None:
        super().__init__(number, 0.0, finished)
        self.let_go = threading.Event()

    def write(self) -> int:
        assert self.let_go.wait(LIMIT_SECONDS)
        return super().write()


def nothing() -> None:
    return None


@pytest.fixture
def pool() -> WorkPool:
    return WorkPool("test", 2)


async def test_quick_groups_are_finished_one_after_the_other_in_one_thread(pool: WorkPool) -> None:
    finished: list[int] = []
    groups = [Group(number, 0.0, finished) for number in range(5)]
    rest = iter(groups[1:])
    deputy = Deputy(pool, patience_s=LIMIT_SECONDS, rounds_s=LIMIT_SECONDS)
    deputy.act(groups[0], lambda: next(rest, None))
    assert finished == list(range(5))
    assert len({group.finished_by for group in groups}) == 1
    assert groups[0].finished_by is not threading.current_thread()
    pool.close()


async def test_the_loop_goes_on_when_the_time_for_rounds_is_over(pool: WorkPool) -> None:
    finished: list[int] = []
    deputy = Deputy(pool, patience_s=LIMIT_SECONDS, rounds_s=0.0)
    deputy.act(Group(0, 0.0, finished), lambda: Group(1, 0.0, finished))
    assert finished == [0]
    pool.close()


async def test_what_only_the_loop_can_do_ends_the_rounds(pool: WorkPool) -> None:
    finished: list[int] = []
    deputy = Deputy(pool, patience_s=LIMIT_SECONDS, rounds_s=LIMIT_SECONDS)
    by: list[threading.Thread] = []

    class WithErrand(Group):
        def finish(self, result: outcome.Outcome[object]) -> None:
            super().finish(result)
            deputy.soon(lambda: by.append(threading.current_thread()))
            assert not by

    deputy.act(WithErrand(0, 0.0, finished), lambda: Group(1, 0.0, finished))
    assert finished == [0]
    assert by == [threading.current_thread()]
    deputy.soon(lambda: by.append(threading.current_thread()))
    assert len(by) == 2  # at once, where nobody acts for the loop
    pool.close()


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_slow_write_is_finished_on_the_loop_which_goes_on_meanwhile(
    pool: WorkPool, *, is_first: bool
) -> None:
    """If it was the first, the deputy is left alone for a while."""
    finished: list[int] = []
    deputy = Deputy(pool, patience_s=PATIENCE_SECONDS, rounds_s=LIMIT_SECONDS)
    slow = Held(7, finished)
    quick = [] if is_first else [Group(number, 0.0, finished) for number in range(2)]
    coming = iter([*quick, slow])
    assert deputy.is_able()
    deputy.act(next(coming), lambda: next(coming, None))
    expected = [group.number for group in quick]
    assert finished == expected
    assert deputy.is_able() is not is_first
    slow.let_go.set()
    await until(lambda: len(finished) > len(expected))
    assert finished == [*expected, 7]
    assert slow.finished_by is threading.current_thread()
    pool.close()


async def test_the_loop_goes_on_while_no_thread_is_free() -> None:
    """All may wait for disks that do not answer."""
    pool, finished, let_go = WorkPool("test", 1), list[int](), threading.Event()
    deputy = Deputy(pool, patience_s=MOMENT_SECONDS, rounds_s=LIMIT_SECONDS)

    async def occupy() -> None:
        assert await pool.run(lambda: let_go.wait(LIMIT_SECONDS))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(occupy)
        await trio.testing.wait_all_tasks_blocked()
        group = Group(3, 0.0, finished)
        deputy.act(group, nothing)
        assert (finished, let_go.is_set()) == ([], False)
        let_go.set()
        await until(lambda: finished == [3])
    assert group.finished_by is threading.current_thread()
    pool.close()


class Refused:
    """The system starts no thread as long as it `holds`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.holds = True
        start = threading.Thread.start

        def starting(thread: threading.Thread) -> None:
            if self.holds:
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", starting)


async def test_where_no_thread_can_be_started_the_group_is_told(
    pool: WorkPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[outcome.Outcome[object]] = []

    class Told(Group):
        def finish(self, result: outcome.Outcome[object]) -> None:
            found.append(result)

    refused = Refused(monkeypatch)
    deputy = Deputy(pool, patience_s=LIMIT_SECONDS)
    deputy.act(Told(0, 0.0, []), nothing)
    (result,) = found
    with pytest.raises(Overloaded):
        result.unwrap()
    assert not deputy.is_acting
    refused.holds = False
    finished: list[int] = []
    deputy.act(Group(1, 0.0, finished), nothing)
    assert finished == [1]
    pool.close()


async def test_a_thread_that_cannot_be_started_is_started_by_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where there is another one, that does the work."""
    pool, refused, let_go = WorkPool("test", 2), Refused(monkeypatch), threading.Event()
    with pytest.raises(Overloaded):
        await pool.run(nothing)
    refused.holds = False
    assert await pool.run(lambda: 1) == 1
    refused.holds = True
    results: list[bool] = []

    async def wait() -> None:
        results.append(await pool.run(lambda: let_go.wait(LIMIT_SECONDS)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        let_go.set()
    assert results == [True, True]
    refused.holds = False
    pool.close()


async def test_what_fails_to_be_written_is_told_to_the_group(pool: WorkPool) -> None:
    found: list[outcome.Outcome[object]] = []

    class Failing:
        def write(self) -> None:
            raise OSError("the disk")

        def finish(self, result: outcome.Outcome[object]) -> None:
            found.append(result)

    Deputy(pool, patience_s=LIMIT_SECONDS).act(Failing(), nothing)
    (result,) = found
    with pytest.raises(OSError, match="the disk"):
        result.unwrap()
    pool.close()


async def test_the_loop_raises_what_is_raised_for_it(pool: WorkPool) -> None:
    def fail() -> None:
        raise RuntimeError("looking for more")

    deputy = Deputy(pool, patience_s=LIMIT_SECONDS, rounds_s=LIMIT_SECONDS)
    with pytest.raises(RuntimeError, match="looking for more"):
        deputy.act(Group(0, 0.0, []), fail)
    finished: list[int] = []
    deputy.act(Group(1, 0.0, finished), nothing)
    assert finished == [1]
    pool.close()


@pytest.mark.parametrize("lock", [_Lock, SlowLock])
async def test_each_group_is_finished_once_and_never_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch, lock: Callable[[], object]
) -> None:
    """Whatever the moment at which the loop gives up waiting."""
    monkeypatch.setattr("logd.daemon.deputy.threading.Lock", lock)
    patience = MOMENT_SECONDS
    pool, random = WorkPool("test", 16), Random(1)
    deputy = Deputy(pool, patience_s=patience, rounds_s=4 * patience)
    finished: list[int] = []
    loop_runs = [True]
    total = 0

    class Watched(Group):
        def finish(self, result: outcome.Outcome[object]) -> None:
            is_loop = threading.current_thread() is threading.main_thread()
            assert is_loop or not loop_runs[0]
            super().finish(result)

    def another() -> Watched | None:
        nonlocal total
        assert not loop_runs[0]
        if random.random() < 0.2:
            return None
        total += 1
        return Watched(total - 1, random.random() * 2 * patience, finished)

    for _ in range(200):
        total += 1
        first = Watched(total - 1, random.random() * 2 * patience, finished)
        loop_runs[0] = False
        deputy.act(first, another)
        loop_runs[0] = True
        await trio.lowlevel.checkpoint()
    await until(lambda: len(finished) >= total)
    assert sorted(finished) == list(range(total))
    pool.close()


def test_patience_is_lost_the_more_often_it_was_in_vain_and_comes_back() -> None:
    patience = Patience()
    assert patience.is_left()
    for skips in (1, 3, 7):
        patience.note(in_vain=True)
        assert [patience.is_left() for _ in range(skips + 1)] == [False] * skips + [True]
    patience.note(in_vain=False)
    assert patience.is_left()


@pytest.mark.parametrize("lock", [_Lock, SlowLock])
async def test_results_that_are_late_come_once(
    monkeypatch: pytest.MonkeyPatch, lock: Callable[[], object]
) -> None:
    """Whatever the moment at which they come."""
    monkeypatch.setattr("logd.daemon.threads.threading.Lock", lock)
    calls, patience = 600, MOMENT_SECONDS
    pool = WorkPool("test", 1, patience_s=patience)
    late: list[int] = []
    early: list[int] = []

    def work(number: int) -> int:
        time.sleep(patience * number / calls * 3)
        return number

    for number in range(calls):
        result = pool.run_briefly(partial(work, number), late=lambda one: late.append(one.unwrap()))
        if result is not None:
            early.append(result.unwrap())
    await until(lambda: len(early) + len(late) == calls)
    pool.close()
    assert early
    assert late
    assert sorted([*early, *late]) == list(range(calls))


def test_after_many_times_in_vain_it_is_soon_tried_again_where_that_is_said() -> None:
    patience = Patience(most_skips=3)
    for _ in range(20):
        patience.note(in_vain=True)
    assert [patience.is_left() for _ in range(4)] == [False, False, False, True]
