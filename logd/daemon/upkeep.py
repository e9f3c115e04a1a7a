"""The freezer: turns full tails into chunks and folds small chunks, one at a time."""

import contextlib
import functools
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from logd.daemon.desk import Desk
from logd.daemon.threads import Threads
from logd.errors import Corruption, LogdError, Overloaded, StorageFailed, StorageFull
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
        self._later: dict[Desk, float] = {}  # trio's time at which to try again
        self._wake = trio.Event()
        self.freezes = 0
        self.merges = 0
        self.failures = 0

    def add(self, desk: Desk) -> None:
        """The desk's project has runs that wait to be frozen."""
        if desk not in self._due and desk not in self._later and not desk.is_stopping:
            self._due.append(desk)
            self._wake.set()

    def remove(self, desk: Desk) -> None:
        """The desk is being stopped."""
        self._later.pop(desk, None)
        if desk in self._due:
            self._due.remove(desk)

    async def run(self) -> None:
        while True:
            self._take_up_again()
            if self._due:
                await self._serve(self._due.popleft())
                continue
            self._wake = trio.Event()
            quiet_at = trio.current_time() + _QUIET_SECONDS
            with trio.move_on_at(min(self._later.values(), default=quiet_at)):
                await self._wake.wait()
                continue
            if self._later:
                continue
            with contextlib.suppress(Overloaded):  # no thread can be started: nothing rests
                await self._threads.freeze.run(self._rest)
            await self._wake.wait()

    def _take_up_again(self) -> None:
        """What did not succeed a while ago."""
        now = trio.current_time()
        for desk in [desk for desk, due in self._later.items() if due <= now]:
            del self._later[desk]
            self._due.append(desk)

    async def _serve(self, desk: Desk) -> None:
        """One freeze of the project, and the merges that it makes worth while."""
        if desk.is_stopping or desk.project.failed:  # reopened, it comes again
            return
        desk.is_freezing = True
        try:
            failure = await self._attempt(self._freeze, desk)
            desk.froze(None if failure is None else _as_told(failure))
            if failure is None:  # chunks that are not merged are in nobody's way
                await self._attempt(self._merge, desk)
        finally:
            desk.is_freezing = False
            desk.changed()
            if desk.project.failed:
                desk.look_again()
        if not desk.project.waiting_freezes or desk.is_stopping:
            return
        if failure is None:
            self.add(desk)
        else:
            self._later[desk] = trio.current_time() + _RETRY_SECONDS

    async def _attempt(
        self, work: Callable[[Desk], Awaitable[None]], desk: Desk
    ) -> Exception | None:
        """Why it did not succeed, if it did not."""
        try:
            await work(desk)
        except (LogdError, OSError) as error:
            _log.error("project %s cannot be frozen or merged yet: %s", desk.project_id, error)
            failure: Exception = error
        except Exception as error:  # noqa: BLE001  # the root of the work on one project: the others go on
            _log.exception("BUG: project %s cannot be frozen or merged", desk.project_id)
            failure = error
        else:
            return None
        self.failures += 1
        return failure

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
        while not (project.waiting_freezes or project.failed or desk.is_stopping):
            job = project.prepare_merge()
            if job is None:
                return
            merge = functools.partial(project.run_merge, job)
            try:
                installation = await self._threads.freeze.run(merge)
            except Corruption as error:  # the others are merged without that chunk
                self.failures += 1
                _log.error("project %s: a chunk cannot be merged: %s", desk.project_id, error)
            else:
                await self._install(desk, installation)
                self.merges += 1

    async def _install(self, desk: Desk, installation: Installation) -> None:
        desk.project.install(installation)
        desk.tail_changed()
        await self._threads.freeze.run(lambda: desk.project.discard(installation))


def _as_told(failure: Exception) -> StorageFull | StorageFailed:
    """To those whose entries cannot be taken, as too many wait to be frozen."""
    if isinstance(failure, StorageFull):
        return StorageFull(f"entries wait to be frozen: {failure}")
    return StorageFailed(f"entries wait to be frozen, which fails: {failure}")
