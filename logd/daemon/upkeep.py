"""The freezer: turns full tails into chunks and folds small chunks, one at a time."""

import functools
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from logd.daemon.desk import Desk
from logd.daemon.threads import Threads
from logd.errors import Corruption, LogdError
from logd.store.project import Installation

_log = logging.getLogger("logd.upkeep")

_RETRY_SECONDS: Final = 2.0
_QUIET_SECONDS: Final = 10.0


class Upkeep:
    """`rest()` is called, where freezes run, when there was nothing to do for a while."""

    def __init__(self, threads: Threads, rest: Callable[[], None]) -> None:
        self._threads = threads
        self._rest = rest
        self._due: deque[Desk] = deque()
        self._wake = trio.Event()
        self.freezes = 0
        self.merges = 0
        self.failures = 0

    def add(self, desk: Desk) -> None:
        """The desk's project has runs that wait to be frozen."""
        if desk not in self._due and not desk.is_stopping:
            self._due.append(desk)
            self._wake.set()

    def remove(self, desk: Desk) -> None:
        """The desk is being stopped."""
        if desk in self._due:
            self._due.remove(desk)

    async def run(self) -> None:
        while True:
            while self._due:
                await self._serve(self._due.popleft())
            self._wake = trio.Event()
            with trio.move_on_after(_QUIET_SECONDS):
                await self._wake.wait()
                continue
            await self._threads.freeze.run(self._rest)
            await self._wake.wait()

    async def _serve(self, desk: Desk) -> None:
        """One freeze of the project, and the merges that it makes worth while."""
        if desk.is_stopping:
            return
        desk.is_freezing = True
        failed = False
        try:
            await self._freeze(desk)
            await self._merge(desk)
        except Corruption as error:
            self.failures += 1
            _log.error("project %s: chunks cannot be merged: %s", desk.project_id, error)
        except (LogdError, OSError) as error:
            failed = True
            self.failures += 1
            _log.error("project %s cannot be frozen yet: %s", desk.project_id, error)
        except Exception:  # noqa: BLE001  # the root of the work on one project: the others go on
            failed = True
            self.failures += 1
            _log.exception("BUG: project %s cannot be frozen", desk.project_id)
        finally:
            desk.is_freezing = False
            desk.changed()
            if desk.project.failed:
                desk.look_again()
        if failed:
            await trio.sleep(_RETRY_SECONDS)
        if desk.project.waiting_freezes and not desk.is_stopping:
            self.add(desk)

    async def _freeze(self, desk: Desk) -> None:
        project = desk.project
        job = project.prepare_freeze()
        if job is None:
            return
        installation = await self._threads.freeze.run(lambda: project.run_freeze(job))
        await self._install(desk, installation)
        self.freezes += 1

    async def _merge(self, desk: Desk) -> None:
        project = desk.project
        while not project.waiting_freezes and (job := project.prepare_merge()) is not None:
            merge = functools.partial(project.run_merge, job)
            await self._install(desk, await self._threads.freeze.run(merge))
            self.merges += 1

    async def _install(self, desk: Desk, installation: Installation) -> None:
        desk.project.install(installation)
        desk.changed()
        await self._threads.freeze.run(lambda: desk.project.discard(installation))
