"""One project's owner on the event loop: group commit, rotation, and who else is at work on it.

Requests queue up; the writer takes all that wait, makes them durable with one sync in one thread
call, and back on the loop, without an await between, shows them and answers everyone. Where the
disk is quick, `daemon/deputy.py` does that for small ones. Where all tails together are over their
budget (`daemon/tail_budget.py`), requests wait in the queue.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

import outcome
import trio

from logd.daemon.deputy import Commit, Deputy
from logd.daemon.tail_budget import Failure, TailBudget
from logd.daemon.threads import CancelFlag, Threads
from logd.entry import ProjectId, Seq
from logd.errors import LogdError, Overloaded, StorageFailed, StorageFull
from logd.store.project import Project, Request
from logd.store.store import Store

_log = logging.getLogger("logd.ingest")

MAX_QUEUED_BYTES: Final = 64 << 20
MAX_WAITING_FREEZES: Final = 2
IDLE_SECONDS: Final = 2.0
_REOPEN_SECONDS: Final = 1.0


Told = Callable[[Seq | LogdError], None]
"""Called once, on the event loop or by its deputy: with the first sequence number of a request that
is durable and visible, or why it was not stored. Must not raise."""

_Group = list[tuple[Request, Told]]


class _Commit(NamedTuple):
    """A group that was taken from the queue. See `deputy.Commit`."""

    write: Callable[[], object]
    finish: Callable[[outcome.Outcome[Any]], None]


class Desk:
    """`freezable` is called when the project has something for the freezer."""

    def __init__(
        self,
        store: Store,
        project: Project,
        threads: Threads,
        deputy: Deputy,
        budget: TailBudget,
        sync_interval_s: float | None,
        freezable: Callable[["Desk"], None],
    ) -> None:
        self.project = project
        self.project_id: ProjectId = project.project
        self._store = store
        self._threads = threads
        self._deputy = deputy
        self._budget = budget
        self._share = budget.share(self.make_room, self.commit_soon)
        self._sync_interval_s = sync_interval_s
        self._freezable = freezable
        self._queue: _Group = []
        self._queued_bytes = 0
        self._under_way_bytes = 0
        self._wake = trio.Event()
        self._changed = trio.Event()
        self._flags: set[CancelFlag] = set()
        self._stopping = False
        self._wal_in_use = trio.Semaphore(1, max_value=1)
        self._committed_at = trio.current_time()
        self._rotate_soon = False
        self._is_reopening = False
        self._last_refusal = ""
        self.is_freezing = False
        self._freezing_failed: Failure | None = None
        self.ended = trio.Event()
        self.keys_in_flight: dict[bytes, trio.Event] = {}
        self._note_tail()

    # ------------------------------------------------------------ requests

    async def submit(self, request: Request) -> Seq:
        """The first sequence number, once the request is durable and visible.

        Raises Overloaded where too much waits already, StorageFull, StorageFailed. A request
        whose caller is cancelled may have been stored.
        """
        answered = trio.Event()
        answer: list[Seq | LogdError] = []

        def told(result: Seq | LogdError) -> None:
            answer.append(result)
            self._deputy.soon(answered.set)

        self.submit_soon(request, told)
        self.commit_soon()
        try:
            await answered.wait()
        except trio.Cancelled:
            self._withdraw(told)
            raise
        (result,) = answer
        if isinstance(result, LogdError):
            raise result
        return result

    def submit_soon(self, request: Request, told: Told) -> None:
        """As `submit`, for one who is told later. Raises, for what can be told at once, as `submit`
        does. Nothing happens before `commit_soon` or `take_commit`."""
        if self._stopping:
            raise StorageFailed("the project is being closed")
        if self.project.failed:  # what it holds, and so what a retry is of, is not known now
            raise StorageFailed("the project's storage failed; it is being reopened")
        refusal = self._refusal()
        if refusal is not None:
            raise refusal
        size_bytes = request.batch.size_bytes
        if self._queue and self._queued_bytes + size_bytes > MAX_QUEUED_BYTES:
            raise Overloaded("too many entries of this project wait to be written")
        self._queue.append((request, told))
        self._queued_bytes += size_bytes

    def _withdraw(self, told: Told) -> None:
        """The caller is gone. Where there is no room for its request that goes too: nobody counts
        its memory any more, and those of all who give up and come again would pile up."""
        if not self._may_begin_group:
            self._set_queue([one for one in self._queue if one[1] is not told])
            self.look_again()

    def commit_soon(self) -> None:
        """The writer takes what waits, or looks what else there is to do."""
        self._deputy.soon(self._wake.set)

    def take_commit(self) -> Commit | None:
        """What waits, to be committed at once; None where it has to be left to the writer."""
        if not (self._queue and self._is_ready()):
            return None
        self._wal_in_use.acquire_nowait()
        group = self._take_group()
        return _Commit(partial(self._append, group), partial(self._committed, group))

    def _is_ready(self) -> bool:
        """Nothing has to be done before the next group."""
        return not (
            self._stopping
            or self.project.failed
            or self._wal_in_use.value == 0
            or self._is_rotation_due()
            or not self._may_begin_group
        )

    def _refusal(self) -> LogdError | None:
        """Why nothing can be taken now: too much waits to be frozen, of this project or of all, and
        that fails. A new one each time, as one that was raised holds on to the frames that it went
        through."""
        failed = self._freezing_failed
        if failed is not None and self._is_behind:
            return type(failed)(*failed.args)
        return self._budget.refusal

    @property
    def _may_begin_group(self) -> bool:
        """Nothing that is to be frozen is in the way. Who stops has no place in a line."""
        if self._stopping:
            return self._budget.room_bytes > 0
        return not self._is_behind and self._budget.is_turn_of(self._share)

    @property
    def _is_behind(self) -> bool:
        """Too much of it waits to be frozen."""
        return self.project.waiting_freezes > MAX_WAITING_FREEZES

    # ------------------------------------------------------------ the writer

    async def run(self) -> None:
        """The writer task; ends when the desk is stopped, and the queue empty or no room for it."""
        try:
            while not self._stopping or (self._queue and self._may_begin_group):
                await self._wait_for_work()
                if self.project.failed and not self._stopping:
                    await self._reopen()
                elif self._queue and self._may_begin_group:
                    with trio.CancelScope(shield=True):  # who was taken from the queue is answered
                        await self._commit_group()
                if not (self._stopping or self.project.failed):
                    await self._rotate_if_due()
        finally:
            self.begin_to_stop()
            with trio.CancelScope(shield=True):
                async with self._wal_in_use:  # a group may be under way
                    self._refuse_queued(StorageFailed("the daemon is shutting down"))
                    if self._sync_interval_s is not None:
                        await self._sync()
            self.ended.set()

    def _refuse_queued(self, error: LogdError) -> None:
        group = self._queue
        self._set_queue([])
        _answer_all(group, error)

    def _set_queue(self, queue: _Group) -> None:
        self._queue = queue
        self._queued_bytes = _bytes_of(queue)

    def _take_group(self) -> _Group:
        """What waits, as far as there is room; for a place in the line."""
        room_bytes = self._budget.room_bytes
        group, rest = self._queue, _Group()
        if self._queued_bytes > room_bytes:
            count = _count_to_reach(room_bytes, group)
            group, rest = group[:count], group[count:]
        all_bytes = self._queued_bytes
        self._set_queue(rest)
        self._under_way_bytes = all_bytes - self._queued_bytes
        self._note_tail()
        self._budget.leave_line(self._share)
        return group

    async def _wait_for_work(self) -> None:
        """Until a group can be begun, or a rotation is due, or nothing is frozen any more. Those
        who wait are refused where that is in vain."""
        while self._may_freeze and not self._is_rotation_due():
            refusal = self._refusal()
            if refusal is not None:
                self._refuse_queued(refusal)
            if self._queue and self._may_begin_group:
                return
            if self._queue and not self._is_behind:
                self._budget.line_up(self._share)
            else:
                self._budget.leave_line(self._share)
            self._wake = trio.Event()
            with trio.move_on_at(self._quiet_at):
                await self._wake.wait()

    @property
    def _quiet_at(self) -> float:
        """When a rotation is due, if nothing comes."""
        if self._queue or not self._is_worth_freezing:
            return float("inf")
        return self._committed_at + IDLE_SECONDS

    @property
    def _may_freeze(self) -> bool:
        return not (self._stopping or self.project.failed)

    @property
    def _is_worth_freezing(self) -> bool:
        return self.project.run_entries >= self._store.limits.min_freeze_entries

    def _is_rotation_due(self) -> bool:
        """The run that grows is full, or memory is short, or nothing came for a while."""
        if self.project.is_tail_full or self._rotate_soon:
            return True
        quiet = self._deputy.now() >= self._committed_at + IDLE_SECONDS
        return quiet and self._is_worth_freezing and not self._queue

    def _append(self, group: _Group) -> list[Seq]:
        """In a thread."""
        requests = [request for request, _ in group]
        return self.project.append(requests, sync=self._sync_interval_s is None)

    async def _commit_group(self) -> None:
        await self._wal_in_use.acquire()
        if not self._may_begin_group:  # others took what room there was
            self._wal_in_use.release()
            return
        group = self._take_group()
        try:
            result: outcome.Outcome[list[Seq]] = outcome.Value(
                await self._threads.wal.run(lambda: self._append(group))
            )
        except Exception as error:  # noqa: BLE001  # told to those who wait
            result = outcome.Error(error)
        self._committed(group, result)

    def _committed(self, group: _Group, result: outcome.Outcome[list[Seq]]) -> None:
        """Show a group that is durable, and answer everyone; or tell everyone what failed."""
        was_worth_freezing = self._is_worth_freezing
        self._wal_in_use.release()
        self._under_way_bytes = 0
        try:
            seqs = result.unwrap()
            self.project.publish([request for request, _ in group], seqs)
        except (StorageFull, StorageFailed, Overloaded) as error:
            if str(error) != self._last_refusal:  # said once, however many come
                _log.error("project %s: %s", self.project_id, error)
            self._last_refusal = str(error)
            _answer_all(group, error)
        except Exception:  # noqa: BLE001  # the root of a group: whoever waits gets an answer, the others go on
            _log.exception("BUG: project %s cannot be written", self.project_id)
            self.project.failed = True
            _answer_all(group, StorageFailed("the entries could not be written"))
        else:
            self._committed_at = self._deputy.now()
            self._last_refusal = ""
            for (_, told), seq in zip(group, seqs, strict=True):
                told(seq)
        self._note_tail()
        if (  # there is something to do for the writer
            self._queue
            or self.project.failed
            or self.project.is_tail_full
            or self._is_worth_freezing != was_worth_freezing
        ):
            self._deputy.soon(self._wake.set)

    async def _rotate_if_due(self) -> None:
        if self._is_rotation_due():
            if self._sync_interval_s is not None:  # no later sync would reach the file
                await self.sync_now()
                if self.project.failed:
                    return
            async with self._wal_in_use:
                try:
                    await self._threads.wal.run(self.project.end_wal)
                except StorageFailed as error:
                    _log.error("project %s: %s", self.project_id, error)
                    return
                self.project.rotate()
            self._rotate_soon = False
            self._budget.rotated(self._share)
            self._note_tail()
            self._freezable(self)

    async def sync_now(self) -> None:
        """With durability = "interval": what was answered since the last time becomes durable."""
        if self.project.failed:  # its reopening may take long
            return
        async with self._wal_in_use:
            if not self.ended.is_set():  # it is synced by then, and closed
                await self._sync()

    async def _sync(self) -> None:
        """While nobody else uses the WAL."""
        project = self.project
        if project.failed:
            return
        try:
            await self._threads.wal.run(project.sync)
        except (StorageFailed, Overloaded) as error:
            _log.error("project %s: %s", self.project_id, error)
            self.look_again()

    def look_again(self) -> None:
        """The project may have failed while the writer waited for requests."""
        self._wake.set()

    def make_room(self) -> None:
        """Hand the growing run to the freezer although it is not full: memory is short."""
        self._rotate_soon = True
        self.commit_soon()

    def froze(self, failure: Failure | None) -> None:
        """What came of a freeze."""
        self._freezing_failed = failure
        self.tail_changed()

    def tail_changed(self) -> None:
        """It may have become smaller."""
        self._note_tail()
        self.changed()
        self.look_again()

    def _note_tail(self) -> None:
        failure = self._freezing_failed
        if self._is_reopening:
            failure = StorageFailed("the storage of a project failed; it is being reopened")
        self._budget.note(
            self._share,
            growing_bytes=self.project.run_bytes,
            waiting_bytes=self.project.waiting_bytes,
            under_way_bytes=self._under_way_bytes,
            failure=failure,
        )

    def give_up_tail(self) -> None:
        """The project is closed: its tail takes no memory."""
        self._budget.remove(self._share)

    # ------------------------------------------------------------ failure and end

    async def _reopen(self) -> None:
        """Read the project back from the disk, until it works. Until then nobody reads it, writes
        it or freezes it: what it has open is closed."""
        self._is_reopening = True
        self._budget.leave_line(self._share)
        self._note_tail()
        try:
            self._refuse_queued(StorageFailed("the project's storage failed"))
            async with self._wal_in_use:  # a group under way may yet be acknowledged
                await self.wait_until_unused()
                while not (self._stopping or await self._is_reopened()):
                    with trio.move_on_after(_REOPEN_SECONDS):
                        await self.wait_for_change()
        finally:
            self._is_reopening = False
            self._note_tail()

    async def _is_reopened(self) -> bool:
        """Tries once."""
        try:
            project = await self._threads.open.run(lambda: self._store.reopen(self.project_id))
        except (OSError, LogdError) as error:
            _log.error("project %s cannot be reopened yet: %s", self.project_id, error)
            return False
        except Exception:  # noqa: BLE001  # the root of the work on one project: the others go on
            _log.exception("BUG: project %s cannot be reopened", self.project_id)
            return False
        for damage in project.damage:
            _log.error("project %s, set aside: %s", self.project_id, damage)
        self.project = project
        self._freezing_failed = None
        _log.warning("project %s was reopened", self.project_id)
        self._freezable(self)
        return True

    @property
    def is_stopping(self) -> bool:
        """The freezer must not begin with it again."""
        return self._stopping

    def begin_to_stop(self) -> None:
        """Take nothing more, neither entries nor freezes; the writer ends by itself when the queue
        is empty."""
        self._stopping = True
        self._budget.close(self._share)
        self._wake.set()
        self.changed()

    async def stop(self) -> None:
        """End running queries, wait for the freezer."""
        self.begin_to_stop()
        await self.wait_until_unused()

    async def wait_until_unused(self) -> None:
        for flag in self._flags:
            flag.is_set = True
        while self._flags or self.is_freezing:
            await self.wait_for_change()

    # ------------------------------------------------------------ who is at work

    @contextmanager
    def reading(self, deadline_s: float) -> Iterator[CancelFlag]:
        """While a query holds a snapshot. Raises StorageFailed where there is nothing to read."""
        if self._stopping or self._is_reopening:
            raise StorageFailed("the project is being closed, or its storage reopened")
        flag = CancelFlag(deadline_s, self._threads.wal)
        self._flags.add(flag)
        try:
            yield flag
        finally:
            self._flags.discard(flag)
            self.changed()

    def changed(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def wait_for_change(self) -> None:
        await self._changed.wait()


def _bytes_of(group: _Group) -> int:
    return sum(request.batch.size_bytes for request, _ in group)


def _count_to_reach(size_bytes: int, group: _Group) -> int:
    """How many of its requests are so many bytes, or just more."""
    count = taken = 0
    while taken < size_bytes:
        taken += group[count][0].batch.size_bytes
        count += 1
    return count


def _answer_all(group: _Group, error: LogdError) -> None:
    for _, told in group:
        told(error)
