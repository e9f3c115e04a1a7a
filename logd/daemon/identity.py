"""The control data for the event loop: reads at once, writes in a worker thread.

Writes have their own few threads, so that neither queries nor password hashes can keep them
waiting. A write that has begun is finished even if its caller goes away.
"""

import contextlib
import functools
import logging
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

import trio

from logd.control.store import Control
from logd.daemon.desks import Desks
from logd.daemon.threads import in_thread
from logd.entry import ProjectId
from logd.errors import NoSuchProject, Overloaded, StorageFailed, StorageFull

log = logging.getLogger("logd.daemon")

P = ParamSpec("P")
T = TypeVar("T")

_WRITER_THREADS: Final = 2
_READER_THREADS: Final = 2


class Identity:
    """`control`: the methods that answer from memory, for the loop. Those that change something go
    by `change`, those that list by `read`."""

    def __init__(self, control: Control, desks: Desks) -> None:
        self.control = control
        self._desks = desks
        self._writers = trio.CapacityLimiter(_WRITER_THREADS)
        self._readers = trio.CapacityLimiter(_READER_THREADS)
        self._purging = trio.Lock()

    async def change(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`method(*args, **kwargs)` in a worker thread; a method of `control`. Raises Overloaded
        where no thread can be started."""
        call = functools.partial(method, *args, **kwargs)
        return await in_thread(call, self._writers)

    async def read(self, call: Callable[[], T]) -> T:
        """What `call()` returns, in a worker thread: nobody bounds how many keys a project has, or
        projects an organisation. Raises what it raises, and Overloaded."""
        return await in_thread(call, self._readers)

    async def delete_project(self, caller: str, project_id: ProjectId, org_id: str) -> None:
        """The project, then its logs: their files are gone when this returns, or, where the disk
        fails, as soon as it lets them go."""
        await self.change(self.control.delete_project, caller, project_id, org_id=org_id)
        await self._purge(project_id)

    async def delete_org(self, caller: str, org_id: str) -> None:
        """The organisation with its projects, then their logs."""
        for project_id in await self.change(self.control.delete_org, caller, org_id):
            await self._purge(project_id)

    async def purge_doomed(self) -> None:
        """Remove the logs of deleted projects that a crash, a fault of the storage or a caller
        who went away has left behind."""
        for project_id in self.control.doomed_projects():
            await self._purge(project_id)

    async def _purge(self, project_id: ProjectId) -> None:
        async with self._purging:
            if project_id in self.control.doomed_projects():  # not by another call meanwhile
                await self._remove_logs(project_id)

    async def _remove_logs(self, project_id: ProjectId) -> None:
        try:
            with contextlib.suppress(NoSuchProject):  # it never had logs, or another was faster
                await self._desks.delete_project(project_id)
            await self.change(self.control.project_purged, project_id)
        except (StorageFailed, StorageFull, Overloaded, OSError) as error:
            log.warning("the logs of a deleted project stay for another try: %s", error)
