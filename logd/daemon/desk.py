"""One project's owner on the event loop: group commit, rotation, and who else is at work on it.

Requests queue up; the writer takes all that wait, makes them durable with one sync in one thread
call, and back on the loop, without an await between, shows them and answers everyone.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

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


Done = Callable[[Seq | LogdError], None]
"""Told what became of a request: its first sequence number, or why it was not stored."""


class _Waiting:
    """A task that waits for its request."""

    __slots__ = ("event", "result")

    def __init__(self) -> None:
        self.event = trio.Event()
        self.result: Seq | LogdError = StorageFailed("the request was not answered")

    def __call__(self, result: Seq | LogdError) -> None:
        self.result = result
        self.event.set()


class Desk:
    """`freezable` is called when the project has something for the freezer."""

    def __init__(
        self,
        store: Store,
        project: Project,
        threads: Threads,
        sync_interval_s: float | None,
        freezable: Callable[["Desk"], None],
    ) -> None:
        self.project = project
        self.project_id: ProjectId = project.project
        self._store = store
        self._threads = threads
        self._sync_interval_s = sync_interval_s
        self._freezable = freezable
        self._queue: list[tuple[Request, Done]] = []
        self._queued_bytes = 0
        self._wake = trio.Event()
        self._changed = trio.Event()
        self._flags: set[CancelFlag] = set()
        self._stopping = False
        self._wal_in_use = trio.Lock()
        self._rotate_soon = False
        self.is_freezing = False
        self.ended = trio.Event()
        self.keys_in_flight: dict[bytes, trio.Event] = {}

    # ------------------------------------------------------------ requests

    async def submit(self, request: Request) -> Seq:
        """The first sequence number, once the request is durable and visible.

        Raises Overloaded where too much waits already, StorageFull, StorageFailed. A request
        whose caller is cancelled may have been stored.
        """
        waiting = _Waiting()
        self.submit_soon(request, waiting)
        await waiting.event.wait()
        if isinstance(waiting.result, LogdError):
            raise waiting.result
        return waiting.result

    def submit_soon(self, request: Request, done: Done) -> None:
        """As `submit`, with `done` called once, later, on the event loop. Raises, for what can be
        told at once, as `submit` does."""
        if self._stopping:
            raise StorageFailed("the project is being closed")
        if self.project.failed:  # what it holds, and so what a retry is of, is not known now
            raise StorageFailed("the project's storage failed; it is being reopened")
        if self._queue and self._queued_bytes + len(request.body) > MAX_QUEUED_BYTES:
            raise Overloaded("too many entries of this project wait to be written")
        self._queue.append((request, done))
        self._queued_bytes += len(request.body)
        self._wake.set()

    # ------------------------------------------------------------ the writer

    async def run(self) -> None:
        """The writer task; ends when the desk is stopped and the queue is empty."""
        try:
            while not (self._stopping and not self._queue):
                await self._wait_for_work()
                if self.project.failed and not self._stopping:
                    await self._reopen()
                elif self._queue:
                    with trio.CancelScope(shield=True):  # who was taken from the queue is answered
                        await self._commit_group()
                elif not self._stopping:
                    idle = self.project.run_entries >= self._idle_entries()
                    await self._rotate_if(idle or self._rotate_soon)
        finally:
            self._stopping = True
            self.ended.set()
            self._refuse_queued("the daemon is shutting down")

    def _refuse_queued(self, reason: str) -> None:
        queue, self._queue = self._queue, []
        self._queued_bytes = 0
        _answer_all(queue, StorageFailed(reason))

    def _idle_entries(self) -> int:
        return self._store.limits.min_freeze_entries

    async def _wait_for_work(self) -> None:
        """Until requests wait; or a quiet spell, in which a tail may be frozen, has passed."""
        if not self._queue and self._may_freeze:
            self._wake = trio.Event()
            if self._rotate_soon:
                return
            idle = self.project.run_entries >= self._idle_entries()
            with trio.move_on_after(IDLE_SECONDS if idle else float("inf")):
                await self._wake.wait()
        while self.project.waiting_freezes > MAX_WAITING_FREEZES and self._may_freeze:
            await self.wait_for_change()

    @property
    def _may_freeze(self) -> bool:
        return not (self._stopping or self.project.failed)

    async def _commit_group(self) -> None:
        group, self._queue = self._queue, []
        self._queued_bytes = 0
        requests = [request for request, _ in group]
        project, sync = self.project, self._sync_interval_s is None
        try:
            async with self._wal_in_use:
                seqs = await self._threads.wal.run(lambda: project.append(requests, sync=sync))
        except (StorageFull, StorageFailed) as error:
            _log.error("project %s: %s", self.project_id, error)
            _answer_all(group, error)
            return
        except Exception:  # noqa: BLE001  # the root of a group: whoever waits gets an answer, the others go on
            _log.exception("BUG: project %s cannot be written", self.project_id)
            project.failed = True
            _answer_all(group, StorageFailed("the entries could not be written"))
            return
        project.publish(requests, seqs)
        for (_, done), seq in zip(group, seqs, strict=True):
            done(seq)
        await self._rotate_if(project.is_tail_full or self._rotate_soon)

    async def _rotate_if(self, due: bool) -> None:
        if due:
            if self._sync_interval_s is not None:  # no later sync would reach the file
                await self.sync_now()
            async with self._wal_in_use:
                self.project.rotate()
            self._rotate_soon = False
            self._freezable(self)

    async def sync_now(self) -> None:
        """With durability = "interval": what was answered since the last time becomes durable."""
        project = self.project
        try:
            async with self._wal_in_use:
                await self._threads.wal.run(project.sync)
        except StorageFailed as error:
            _log.error("project %s: %s", self.project_id, error)
            self.look_again()

    def look_again(self) -> None:
        """The project may have failed while the writer waited for requests."""
        self._wake.set()

    def make_room(self) -> None:
        """Hand the growing run to the freezer although it is not full: memory is short."""
        self._rotate_soon = True
        self._wake.set()

    # ------------------------------------------------------------ failure and end

    async def _reopen(self) -> None:
        """Read the project back from the disk, until it works."""
        await self.wait_until_unused()
        while not self._stopping:
            self._refuse_queued("the project's storage failed")
            try:
                self.project = await self._threads.wal.run(
                    lambda: self._store.reopen(self.project_id)
                )
            except (OSError, LogdError) as error:
                _log.error("project %s cannot be reopened yet: %s", self.project_id, error)
                await trio.sleep(_REOPEN_SECONDS)
            else:
                _log.warning("project %s was reopened", self.project_id)
                self._freezable(self)
                return

    @property
    def is_stopping(self) -> bool:
        """The freezer must not begin with it again."""
        return self._stopping

    async def stop(self) -> None:
        """Take nothing more, end running queries, wait for the freezer; the writer ends by itself
        when the queue is empty."""
        self._stopping = True
        self._wake.set()
        self.changed()
        await self.wait_until_unused()

    async def wait_until_unused(self) -> None:
        for flag in self._flags:
            flag.is_set = True
        while self._flags or self.is_freezing:
            await self.wait_for_change()

    # ------------------------------------------------------------ who is at work

    @contextmanager
    def reading(self, deadline_s: float) -> Iterator[CancelFlag]:
        """While a query holds a snapshot."""
        flag = CancelFlag(deadline_s)
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


def _answer_all(group: list[tuple[Request, Done]], error: LogdError) -> None:
    for _, done in group:
        done(error)
