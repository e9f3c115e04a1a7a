"""Whose query is next: projects take turns. One that asks much keeps only itself waiting."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from logd.entry import ProjectId
from logd.errors import Overloaded

_MOST_WAITING: Final = 256
_PATIENCE_SECONDS: Final = 60.0


class QueryQueue:
    """Of `at_once` queries that may run at a time. Those of one project wait in their order, up to
    `most_waiting` of them, none longer than `patience_s`.

    Invariant: while a query waits, `at_once` others have their turn.
    """

    def __init__(
        self,
        at_once: int,
        most_waiting: int = _MOST_WAITING,
        patience_s: float = _PATIENCE_SECONDS,
    ) -> None:
        self._free = at_once
        self._most_waiting = most_waiting
        self._patience_s = patience_s
        self._lines: dict[ProjectId, deque[trio.Event]] = {}  # that of the next project first

    @asynccontextmanager
    async def turn(self, project: ProjectId) -> AsyncIterator[None]:
        """Raises Overloaded where too many queries of the project wait, or its turn does not
        come."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(project)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, project: ProjectId) -> None:
        line = self._lines.setdefault(project, deque())
        if len(line) >= self._most_waiting:
            raise Overloaded("too many queries of this project wait already")
        called = trio.Event()
        line.append(called)
        has_turn = False
        with trio.move_on_after(self._patience_s):
            try:
                await called.wait()
            except trio.Cancelled:
                if called.is_set():  # in the moment before
                    self._pass_on()
                else:
                    self._remove(project, called)
                raise
            has_turn = True
        if not has_turn:
            raise Overloaded("too many queries wait already")

    def _remove(self, project: ProjectId, called: trio.Event) -> None:
        line = self._lines[project]
        line.remove(called)
        if not line:
            del self._lines[project]

    def _pass_on(self) -> None:
        project = next(iter(self._lines), None)
        if project is None:
            self._free += 1
            return
        line = self._lines.pop(project)
        called = line.popleft()
        if line:
            self._lines[project] = line  # behind the others
        called.set()
