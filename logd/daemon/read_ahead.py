"""Reading ahead: of a project that was just opened, what every question asks of its newest chunks.

The first questions after a start then cost little more than those that follow. It is done in small
steps, each in a thread and with a rest behind it, and within a budget of memory.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio

from logd.daemon.desk import Desk
from logd.daemon.threads import WorkPool
from logd.entry import ProjectId
from logd.errors import Cancelled, Corruption, LogdError, Overloaded, StorageFailed
from logd.store.page import Check
from logd.store.read_ahead import read_ahead
from logd.store.search import Snapshot
from logd.store.store import Store

_log = logging.getLogger("logd.logs")

_CACHE_SHARE: Final = 0.1
_LEAST_BYTES: Final = 1 << 20
_REST_SECONDS: Final = 0.01
_STEP_SECONDS: Final = 10.0
_FEW_PROJECTS: Final = 4
_CHUNKS_WITH_ENTRIES: Final = 2


class ReadAhead:
    """`threads`: those that queries run in. A store with a small cache has no use for it."""

    def __init__(self, store: Store, threads: WorkPool) -> None:
        budget = int(_CACHE_SHARE * store.limits.cache_bytes)
        self._store = store
        self._threads = threads
        self._most_bytes = budget if budget >= _LEAST_BYTES else 0
        self._opening = trio.CancelScope()
        self._opened = trio.Event()

    async def open_few(self, open_project: Callable[[ProjectId], Awaitable[object]]) -> None:
        """Open the projects of a store that has only a few, so that nobody waits for it. Ends with
        `stop`."""
        try:
            with self._opening:
                for project in self._few_projects():
                    await self._open(project, open_project)
        finally:
            self._opened.set()

    def _few_projects(self) -> list[ProjectId]:
        """Of a store that has more, or a small cache, none."""
        if not self._most_bytes:
            return []
        try:
            projects = self._store.stored()
        except OSError as error:  # whoever asks for one of them is told
            _log.warning("no project was opened ahead: %s", error)
            return []
        return projects if len(projects) <= _FEW_PROJECTS else []

    async def _open(
        self, project: ProjectId, open_project: Callable[[ProjectId], Awaitable[object]]
    ) -> None:
        await trio.sleep(_REST_SECONDS)
        try:
            await open_project(project)
        except LogdError as error:  # whoever asks for it is told
            _log.warning("project %s was not opened ahead: %s", project, error)
        except Exception:  # noqa: BLE001  # nobody waits: it must not end the daemon
            _log.exception("project %s was not opened ahead", project)

    async def stop(self) -> None:
        """No project is being opened when this returns."""
        with trio.CancelScope(shield=True):
            self._opening.cancel()
            await self._opened.wait()

    async def of(self, desk: Desk) -> None:
        """The newest chunks first, until the cache has its share. Of what is wrong whoever asks is
        told; nobody waits for this."""
        try:
            project = desk.project
            if await self._read_ahead(desk, project.snapshot()):
                await self._take(lambda _check: project.let_go_of_index(), desk)
        except (Cancelled, Overloaded):  # no thread, or no project any more
            return
        except StorageFailed as error:
            if desk.project.failed:
                _log.error("project %s: %s", desk.project_id, error)
                desk.look_again()
        except Exception:  # noqa: BLE001  # it must not end the daemon
            _log.exception("project %s: not read ahead", desk.project_id)

    async def _read_ahead(self, desk: Desk, snapshot: Snapshot) -> int:
        """How many chunks there was room for."""
        for number, chunk in enumerate(snapshot.latest_first):
            await trio.sleep(_REST_SECONDS)
            if snapshot.index is None or self._store.cache_bytes >= self._most_bytes:
                return number
            with_entries = number < _CHUNKS_WITH_ENTRIES
            step = partial(read_ahead, chunk, snapshot.index, with_entries=with_entries)
            await self._take(step, desk)
        return len(snapshot.latest_first)

    async def _take(self, step: Callable[[Check], None], desk: Desk) -> None:
        try:
            with desk.reading(_STEP_SECONDS) as flag:
                await self._threads.run_cancellable(step, flag)
        except Corruption as error:  # the other chunks are there
            _log.warning("project %s: not read ahead: %s", desk.project_id, error)
