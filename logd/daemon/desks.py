"""The desks of all projects: opened when somebody comes, closed at the end or with their project.

Here is what concerns more than one of them: with durability = "interval", the syncs.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import trio

from logd.daemon.deputy import Deputy
from logd.daemon.desk import Desk
from logd.daemon.read_ahead import ReadAhead
from logd.daemon.tail_budget import TailBudget
from logd.daemon.threads import Threads
from logd.daemon.upkeep import Upkeep
from logd.entry import ProjectId
from logd.errors import (
    Cancelled,
    Corruption,
    LogdError,
    NoSuchProject,
    StorageFailed,
    UnsupportedFormat,
)
from logd.store.store import Store

_log = logging.getLogger("logd.logs")


class Desks:
    """All desks of a store, which is closed with them."""

    def __init__(
        self,
        store: Store,
        threads: Threads,
        nursery: trio.Nursery,
        deputy: Deputy,
        upkeep: Upkeep,
        ahead: ReadAhead,
        sync_interval_s: float | None,
    ) -> None:
        """`nursery`: for the writers; `sync_interval_s`: None where each commit is synced."""
        self._store = store
        self._threads = threads
        self._nursery = nursery
        self._deputy = deputy
        self._upkeep = upkeep
        self._ahead = ahead
        self._sync_interval_s = sync_interval_s
        self._budget = TailBudget(store.limits.tail_bytes)
        self._desks: dict[ProjectId, Desk] = {}
        self._opening: dict[ProjectId, trio.Event] = {}
        self._deleted: set[ProjectId] = set()
        self._dirty: dict[Desk, None] = {}  # in the order in which they came

    # ------------------------------------------------------------ opening

    def if_open(self, project: ProjectId) -> Desk | None:
        """The project's desk, if it is open already."""
        return self._desks.get(project)

    async def of(self, project: ProjectId) -> Desk:
        """The project's desk, opened if need be. Raises StorageFailed."""
        desk = self._desks.get(project)
        if desk is not None:
            return desk
        while project in self._opening:
            await self._opening[project].wait()
        if project in self._deleted:
            raise NoSuchProject("the project was deleted")
        if project not in self._desks:
            await self._open(project)
        return self._desks[project]

    async def _open(self, project: ProjectId) -> None:
        done = self._opening[project] = trio.Event()
        try:
            opened = await self._threads.open.run(lambda: self._store.project(project))
        except (OSError, UnsupportedFormat, Corruption) as error:
            _log.error("project %s cannot be opened: %s", project, error)
            raise StorageFailed("the project cannot be opened") from error
        finally:
            del self._opening[project]
            done.set()
        for damage in opened.damage:
            _log.error("project %s, set aside: %s", project, damage)
        desk = Desk(
            self._store,
            opened,
            self._threads,
            self._deputy,
            self._budget,
            self._sync_interval_s,
            self._upkeep.add,
        )
        self._desks[project] = desk
        self._nursery.start_soon(desk.run)
        self._nursery.start_soon(self._ahead.of, desk)
        if opened.waiting_freezes:
            self._upkeep.add(desk)

    # ------------------------------------------------------------ what was stored

    def note_stored(self, desk: Desk) -> None:
        """Its project has more entries."""
        if self._sync_interval_s is not None:
            self._dirty[desk] = None

    async def sync_in_intervals(self) -> None:
        """With durability = "interval"."""
        if self._sync_interval_s is None:
            return
        while True:
            await trio.sleep(self._sync_interval_s)
            await self._sync_dirty()

    async def _sync_dirty(self) -> None:
        for _ in range(len(self._dirty)):
            if not self._dirty:  # the others were closed meanwhile
                break
            desk = next(iter(self._dirty))
            del self._dirty[desk]
            await desk.sync_now()

    # ------------------------------------------------------------ closing

    async def delete_project(self, project: ProjectId) -> None:
        """Its files are gone when this returns."""
        while project in self._opening:
            await self._opening[project].wait()
        self._deleted.add(project)  # an id never comes again: who still works on it gets an error
        with trio.CancelScope(shield=True):
            await self._close_desk(project)
            await self._threads.open.run(lambda: self._store.delete(project))

    @contextmanager
    def telling(self, project: ProjectId) -> Iterator[None]:
        """What is raised within is raised as those who asked are to be told it."""
        try:
            yield
        except LogdError as error:
            told = self.as_told(project, error)
            if told is error:
                raise
            raise told from error

    def as_told(self, project: ProjectId, error: LogdError) -> LogdError:
        """Work that was stopped because its project was being deleted sees that it is gone."""
        if project in self._deleted and isinstance(error, (Cancelled, StorageFailed)):
            return NoSuchProject("the project was deleted")
        return error

    async def close(self) -> None:
        """Everything that was answered is durable; tails stay in the WAL."""
        with trio.CancelScope(shield=True):
            for desk in self._desks.values():  # or the freezer would go on with one after the other
                desk.begin_to_stop()
            for project in list(self._desks):
                await self._close_desk(project)
            await self._threads.open.run_at_the_end(self._store.close)

    async def _close_desk(self, project: ProjectId) -> None:
        desk = self._desks.get(project)
        if desk is None:
            return
        self._upkeep.remove(desk)
        await desk.stop()
        await desk.ended.wait()
        self._dirty.pop(desk, None)
        desk.give_up_tail()
        del self._desks[project]
