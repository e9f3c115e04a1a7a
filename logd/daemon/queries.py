"""Questions to the logs. Whatever reads entries does so in a thread, from a snapshot."""

import logging
from typing import Final

import msgspec

from logd.daemon.desks import Desks
from logd.daemon.threads import Patience, WorkPool
from logd.entry import Entry, ProjectId, Seq
from logd.errors import BadQuery, NoSuchEntry, Overloaded
from logd.format.logid import parse_log_id
from logd.query.ast import Filter
from logd.query.cursor import Cursor, decode, encode, filter_digest
from logd.store.chunk_scans import Scanner
from logd.store.search import Found, Position, Snapshot, entry_at, search, search_at_hand

_log = logging.getLogger("logd.logs")

_QUERY_SECONDS: Final = 60.0
_MAX_WAITING_QUERIES: Final = 256
_AT_HAND_SECONDS: Final = 0.001
_MOST_SKIPS: Final = 3
"""Few: what is in vain mostly ends at the first look, and what was asked in vain is asked again."""


class Page(msgspec.Struct, frozen=True):
    """Rows newest first. `damaged`: something could not be read and is missing."""

    rows: tuple[Entry, ...]
    next_cursor: str | None
    total: int
    damaged: bool


class Queries:
    def __init__(self, desks: Desks, threads: WorkPool, scanner: Scanner) -> None:
        """`threads`: those that queries run in."""
        self._desks = desks
        self._threads = threads
        self._scanner = scanner
        self._patience = Patience(_MOST_SKIPS)

    async def list_page(
        self, project: ProjectId, filter_: Filter, limit: int, cursor: str | None
    ) -> Page:
        """Raises BadQuery for a cursor that does not fit, Overloaded, StorageFailed, Cancelled."""
        digest = filter_digest(filter_)
        resumed = None if cursor is None else decode(cursor, project, digest)
        after = None
        if resumed is not None:
            after = Position(Seq(resumed.pinned_seq), resumed.last_ts_ns, Seq(resumed.last_seq))
        desk = await self._desks.of(project)
        if self._threads.waiting >= _MAX_WAITING_QUERIES:
            raise Overloaded("too many queries wait already")
        with self._desks.telling(project), desk.reading(_QUERY_SECONDS) as flag:
            snapshot = desk.project.snapshot()
            if after is not None and after.pinned_seq > snapshot.visible_seq:
                raise BadQuery("cursor", "bad_cursor", "cursor: it is of a log that was longer")
            found = self._at_hand(snapshot, filter_, limit, after)
            if found is None:
                found = await self._threads.run_cancellable(
                    lambda check: search(
                        snapshot,
                        filter_,
                        limit,
                        after,
                        with_total=after is None,
                        scanner=self._scanner,
                        check=check,
                    ),
                    flag,
                )
        _report(project, found)
        total = found.total if resumed is None else resumed.total
        pinned = snapshot.visible_seq if after is None else after.pinned_seq
        return _page(project, found, total or 0, pinned, digest)

    def _at_hand(
        self, snapshot: Snapshot, filter_: Filter, limit: int, after: Position | None
    ) -> Found | None:
        """What can be answered without a thread, sooner than one would be told."""
        if not self._patience.is_left():
            return None
        found = search_at_hand(
            snapshot, filter_, limit, after, with_total=after is None, seconds=_AT_HAND_SECONDS
        )
        self._patience.note(in_vain=found is None)
        return found

    async def stats(self, project: ProjectId) -> tuple[int, int, int, int]:
        """Entries of each level: DEBUG, INFO, WARN, ERROR."""
        return (await self._desks.of(project)).project.level_counts()

    async def entry(self, project: ProjectId, log_id_: str) -> Entry:
        """Raises NoSuchEntry."""
        seq = parse_log_id(project, log_id_)
        if seq is None:
            raise NoSuchEntry("no entry of that id")
        desk = await self._desks.of(project)
        with self._desks.telling(project), desk.reading(_QUERY_SECONDS) as flag:
            snapshot = desk.project.snapshot()
            found = await self._threads.run_cancellable(lambda _: entry_at(snapshot, seq), flag)
        if found is None:
            raise NoSuchEntry("no entry of that id")
        return found


def _report(project: ProjectId, found: Found) -> None:
    for damage in found.damage:
        _log.error("project %s: %s", project, damage)


def _page(project: ProjectId, found: Found, total: int, pinned: Seq, digest: bytes) -> Page:
    following = None
    if found.last is not None:
        ts_ns, seq = found.last
        following = encode(Cursor(pinned, ts_ns, seq, total), project, digest)
    return Page(
        rows=found.entries,
        next_cursor=following,
        total=total,
        damaged=bool(found.damage),
    )
