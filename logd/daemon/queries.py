"""Questions to the logs. Whatever reads entries does so in a thread, from a snapshot."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from logd.daemon.desks import Desks
from logd.daemon.query_queue import QueryQueue
from logd.daemon.threads import CancelFlag, Patience, WorkPool
from logd.entry import Entry, LevelCounts, ProjectId, Seq
from logd.errors import BadQuery, NoSuchEntry
from logd.format.logid import parse_log_id
from logd.query.ast import Filter
from logd.query.cursor import Cursor, decode, encode, filter_digest
from logd.store.chunk_scans import Scanner
from logd.store.page import Check
from logd.store.project import Project
from logd.store.search import Found, Position, entry_at, search, search_at_hand

_log = logging.getLogger("logd.logs")

_QUERY_SECONDS: Final = 60.0
_AT_HAND_SECONDS: Final = 0.001
_MOST_SKIPS: Final = 3
"""Few: what is in vain mostly ends at the first look, and what was asked in vain is asked again."""


class Page(msgspec.Struct, frozen=True):
    """Rows newest first. `opening`: within one, a sequence number always means the same entry.
    `damaged`: something could not be read and is missing."""

    opening: int
    rows: tuple[Entry, ...]
    next_cursor: str | None
    total: int
    damaged: bool


class Queries:
    def __init__(
        self, desks: Desks, threads: WorkPool, queue: QueryQueue, scanner: Scanner
    ) -> None:
        """`threads`: those that queries run in, as many as `queue` lets run at once."""
        self._desks = desks
        self._threads = threads
        self._queue = queue
        self._scanner = scanner
        self._patience = Patience(_MOST_SKIPS)

    async def list_page(
        self, project: ProjectId, filter_: Filter, limit: int, cursor: str | None
    ) -> Page:
        """Raises BadQuery for a cursor that does not fit, Overloaded, StorageFailed, Cancelled."""
        await self._desks.of(project)
        page = self.page_at_hand(project, filter_, limit, cursor)
        if page is not None:
            return page
        async with self._turn(project) as (opened, flag):
            asked = _Asked(opened, filter_, limit, cursor)
            found = await self._threads.run_cancellable(
                lambda check: asked.search(self._scanner, check), flag
            )
        return asked.page(found)

    @asynccontextmanager
    async def _turn(self, project: ProjectId) -> AsyncIterator[tuple[Project, CancelFlag]]:
        """When it is the project's. To be asked for once it is open: while it is being opened, it
        would hold the turn."""
        async with self._queue.turn(project):
            desk = await self._desks.of(project)
            with self._desks.telling(project), desk.reading(_QUERY_SECONDS) as flag:
                yield desk.project, flag

    def page_at_hand(
        self, project: ProjectId, filter_: Filter, limit: int, cursor: str | None
    ) -> Page | None:
        """What can be answered without a wait, sooner than a thread would be told. Raises
        BadQuery."""
        desk = self._desks.if_open(project)
        if desk is None or not self._patience.is_left():
            return None
        asked = _Asked(desk.project, filter_, limit, cursor)
        found = asked.search_at_hand(_AT_HAND_SECONDS)
        self._patience.note(in_vain=found is None)
        return None if found is None else asked.page(found)

    def stats_at_hand(self, project: ProjectId) -> LevelCounts | None:
        """What `stats` says, without a wait."""
        desk = self._desks.if_open(project)
        return None if desk is None else desk.project.level_counts()

    async def stats(self, project: ProjectId) -> LevelCounts:
        return (await self._desks.of(project)).project.level_counts()

    async def entry(self, project: ProjectId, log_id_: str) -> Entry:
        """Raises NoSuchEntry, Overloaded, StorageFailed, Cancelled."""
        seq = parse_log_id(project, log_id_)
        if seq is None:
            raise NoSuchEntry("no entry of that id")
        await self._desks.of(project)
        async with self._turn(project) as (opened, flag):
            snapshot = opened.snapshot()
            found = await self._threads.run_cancellable(lambda _: entry_at(snapshot, seq), flag)
        if found is None:
            raise NoSuchEntry("no entry of that id")
        return found


class _Asked:
    """A question for a page, and what is there to be asked."""

    def __init__(self, opened: Project, filter_: Filter, limit: int, cursor: str | None) -> None:
        """Raises BadQuery."""
        self._project = opened.project
        self._opening = opened.number
        self._filter = filter_
        self._limit = limit
        self._snapshot = snapshot = opened.snapshot()
        self._digest = filter_digest(filter_)
        self._resumed = None if cursor is None else decode(cursor, self._project, self._digest)
        self._after = None
        if self._resumed is not None:
            if self._resumed.pinned_seq > snapshot.visible_seq:
                raise BadQuery("cursor", "bad_cursor", "cursor: it is of a log that was longer")
            self._after = Position(
                Seq(self._resumed.pinned_seq), self._resumed.last_ts_ns, Seq(self._resumed.last_seq)
            )

    def search(self, scanner: Scanner, check: Check) -> Found:
        """In a thread."""
        return search(
            self._snapshot,
            self._filter,
            self._limit,
            self._after,
            with_total=self._after is None,
            scanner=scanner,
            check=check,
        )

    def search_at_hand(self, seconds: float) -> Found | None:
        """From memory alone; None where that takes longer, or more is needed."""
        return search_at_hand(
            self._snapshot,
            self._filter,
            self._limit,
            self._after,
            with_total=self._after is None,
            seconds=seconds,
        )

    def page(self, found: Found) -> Page:
        for damage in found.damage:
            _log.error("project %s: %s", self._project, damage)
        resumed = self._resumed
        total = (found.total if resumed is None else resumed.total) or 0
        following = None
        if found.last is not None:
            pinned = self._snapshot.visible_seq if resumed is None else Seq(resumed.pinned_seq)
            cursor = Cursor(pinned, *found.last, total)
            following = encode(cursor, self._project, self._digest)
        return Page(
            opening=self._opening,
            rows=found.entries,
            next_cursor=following,
            total=total,
            damaged=bool(found.damage),
        )
