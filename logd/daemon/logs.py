"""What the API may do with logs: the async face of the store."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import msgspec
import trio

from logd.daemon.deputy import Commit, Deputy
from logd.daemon.desk import Desk
from logd.daemon.intake import (
    Decoded,
    IdempotencyConflict,
    Ingested,
    decode_partial,
    decode_small,
    decode_whole,
    digests,
    ingested_each,
)
from logd.daemon.scan_processes import QUIET_SECONDS, ScanProcesses
from logd.daemon.threads import Threads
from logd.daemon.upkeep import Upkeep
from logd.entry import Clock, Entry, ProjectId, Seq
from logd.errors import (
    BadQuery,
    Cancelled,
    Corruption,
    LogdError,
    NoSuchEntry,
    NoSuchProject,
    Overloaded,
    StorageFailed,
    UnsupportedFormat,
)
from logd.format.logid import log_id, log_ids, parse_log_id
from logd.format.wal import Idempotency
from logd.query.ast import Filter
from logd.query.cursor import Cursor, decode, encode, filter_digest
from logd.store.project import Request
from logd.store.search import Found, Position, entry_at, search
from logd.store.store import Store

_log = logging.getLogger("logd.logs")

_QUERY_SECONDS: Final = 60.0
_BUDGET_SECONDS: Final = 0.1
_MAX_WAITING_QUERIES: Final = 256


class Page(msgspec.Struct, frozen=True):
    """Rows newest first with their ids. `damaged`: something could not be read and is missing."""

    rows: tuple[Entry, ...]
    ids: tuple[str, ...]
    next_cursor: str | None
    total: int
    damaged: bool


class Logs:
    """Open with `open_logs`."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        threads: Threads,
        nursery: trio.Nursery,
        sync_interval_s: float | None,
        rest: Callable[[], None],
        scanner: ScanProcesses,
    ) -> None:
        self._store = store
        self._clock = clock
        self._threads = threads
        self._nursery = nursery
        self._sync_interval_s = sync_interval_s
        self._desks: dict[ProjectId, Desk] = {}
        self._opening: dict[ProjectId, trio.Event] = {}
        self._deleted: set[ProjectId] = set()
        self._dirty: set[Desk] = set()
        self._uncommitted: set[Desk] = set()
        self._budget_due = 0.0
        self._scanner = scanner
        self.deputy = Deputy(threads.wal)
        self.upkeep = Upkeep(threads, rest)

    # ------------------------------------------------------------ ingest

    async def ingest(
        self,
        project: ProjectId,
        body: bytes,
        *,
        ndjson: bool,
        partial: bool = False,
        idempotency_key: str | None = None,
    ) -> Ingested:
        """Store a request; it is durable and visible when this returns.

        Raises InvalidBody, InvalidEntries, ForeignProject, IdempotencyConflict, Overloaded,
        StorageFull, StorageFailed.
        """
        received_ns = self._clock()
        limiter = self._threads.decode
        if partial:
            decoded = await decode_partial(project, body, received_ns, ndjson, limiter)
        else:
            decoded = await decode_whole(project, body, received_ns, ndjson, limiter)
        if decoded.batch is None or not decoded.batch.count:
            return Ingested(0, decoded.ids(project, None), decoded.errors)
        desk = await self._desk(project)
        if idempotency_key is None:
            seq = await self._submit(desk, decoded.request(received_ns, None))
        else:
            idempotency = digests(idempotency_key, body, ndjson, partial)
            seq = await self._submit_once(desk, decoded, received_ns, idempotency)
        return Ingested(decoded.batch.count, decoded.ids(project, seq), decoded.errors)

    def ingest_soon(
        self,
        project: ProjectId,
        bodies: Sequence[bytes],
        ndjson: bool,
        told: Callable[[Sequence[Ingested] | LogdError], None],
    ) -> bool:
        """As `ingest`, for a small body, or for several of one JSON entry each, which become one
        request to the store. False: nothing was done, as the project is not open, a body holds no
        entry, or one of several is not beyond doubt. Raises, before anything was done, what
        `ingest` raises. `commit_soon` or `take_commit` must follow; `told`: see `desk.Told`, with
        what came of each body."""
        desk = self._desks.get(project)
        if desk is None:
            return False
        request = decode_small(project, bodies, self._clock(), ndjson)
        if request is None:
            return False

        def stored(result: Seq | LogdError) -> None:
            if isinstance(result, LogdError):
                told(self._as_told(project, result))
            else:
                self._note_stored(desk)
                told(ingested_each(project, request, len(bodies), result))

        desk.submit_soon(request, stored)
        self._uncommitted.add(desk)
        return True

    def take_commit(self) -> Commit | None:
        """What `ingest_soon` took, for the deputy, if that is of one project; several sync at the
        same time, each in its own thread. None: there is none, or it is committed soon."""
        if len(self._uncommitted) == 1:
            (desk,) = self._uncommitted
            commit = desk.take_commit()
            if commit is not None:
                self._uncommitted.clear()
                return commit
        self.commit_soon()
        return None

    def commit_soon(self) -> None:
        """What `ingest_soon` took is committed by the writers."""
        while self._uncommitted:
            self._uncommitted.pop().commit_soon()

    async def _submit(self, desk: Desk, request: Request) -> Seq:
        with self._telling(desk.project_id):
            seq = await desk.submit(request)
        self._note_stored(desk)
        return seq

    def _note_stored(self, desk: Desk) -> None:
        if self._sync_interval_s is not None:
            self._dirty.add(desk)
        self._keep_budget()

    async def _submit_once(
        self, desk: Desk, decoded: Decoded, received_ns: int, idempotency: Idempotency
    ) -> Seq:
        """The first sequence number of the request, stored now or when it first came."""
        key = idempotency.key_digest
        while (earlier := desk.keys_in_flight.get(key)) is not None:
            await earlier.wait()
        record = desk.project.recall(key)
        if record is not None:
            if record.idempotency.request_digest != idempotency.request_digest:
                raise IdempotencyConflict("this Idempotency-Key came with another request")
            return record.first_seq
        done = desk.keys_in_flight[key] = trio.Event()
        try:
            # A caller that goes away must not leave the key open to a second store.
            with trio.CancelScope(shield=True):
                seq = await self._submit(desk, decoded.request(received_ns, idempotency))
        finally:
            del desk.keys_in_flight[key]
            done.set()
        return seq

    def _keep_budget(self) -> None:
        """Where all tails together are over the budget, the largest goes to the freezer. Looked at
        ten times a second at most: it takes a look at every open project."""
        now = self.deputy.now()
        if now < self._budget_due:
            return
        self._budget_due = now + _BUDGET_SECONDS
        desks = self._desks.values()
        if sum(desk.project.tail_bytes for desk in desks) > self._store.limits.tail_bytes:
            max(desks, key=lambda desk: desk.project.tail_bytes).make_room()

    # ------------------------------------------------------------ queries

    async def list_page(
        self, project: ProjectId, filter_: Filter, limit: int, cursor: str | None
    ) -> Page:
        """Raises BadQuery for a cursor that does not fit, Overloaded, StorageFailed, Cancelled."""
        digest = filter_digest(filter_)
        resumed = None if cursor is None else decode(cursor, project, digest)
        after = None
        if resumed is not None:
            after = Position(Seq(resumed.pinned_seq), resumed.last_ts_ns, Seq(resumed.last_seq))
        desk = await self._desk(project)
        if self._threads.query.waiting >= _MAX_WAITING_QUERIES:
            raise Overloaded("too many queries wait already")
        with self._telling(project), desk.reading(_QUERY_SECONDS) as flag:
            snapshot = desk.project.snapshot()
            if after is not None and after.pinned_seq > snapshot.visible_seq:
                raise BadQuery("cursor", "bad_cursor", "cursor: it is of a log that was longer")
            found = await self._threads.query.run_cancellable(
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
        self._report(project, found)
        total = found.total if resumed is None else resumed.total
        pinned = snapshot.visible_seq if after is None else after.pinned_seq
        return _page(project, found, total or 0, pinned, digest)

    def _report(self, project: ProjectId, found: Found) -> None:
        for damage in found.damage:
            _log.error("project %s: %s", project, damage)

    async def stats(self, project: ProjectId) -> tuple[int, int, int, int]:
        """Entries of each level: DEBUG, INFO, WARN, ERROR."""
        return (await self._desk(project)).project.level_counts()

    async def entry(self, project: ProjectId, log_id_: str) -> Entry:
        """Raises NoSuchEntry."""
        seq = parse_log_id(project, log_id_)
        if seq is None:
            raise NoSuchEntry("no entry of that id")
        desk = await self._desk(project)
        with self._telling(project), desk.reading(_QUERY_SECONDS) as flag:
            snapshot = desk.project.snapshot()
            found = await self._threads.query.run_cancellable(
                lambda _: entry_at(snapshot, seq), flag
            )
        if found is None:
            raise NoSuchEntry("no entry of that id")
        return found

    def log_id(self, project: ProjectId, seq: Seq) -> str:
        return log_id(project, seq)

    # ------------------------------------------------------------ projects

    async def _desk(self, project: ProjectId) -> Desk:
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
            opened = await self._threads.wal.run(lambda: self._store.project(project))
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
            self.deputy,
            self._sync_interval_s,
            self.upkeep.add,
        )
        self._desks[project] = desk
        self._nursery.start_soon(desk.run)
        if opened.waiting_freezes:
            self.upkeep.add(desk)

    @contextmanager
    def _telling(self, project: ProjectId) -> Iterator[None]:
        """What is raised within is raised as those who asked are to be told it."""
        try:
            yield
        except LogdError as error:
            told = self._as_told(project, error)
            if told is error:
                raise
            raise told from error

    def _as_told(self, project: ProjectId, error: LogdError) -> LogdError:
        """Work that was stopped because its project was being deleted sees that it is gone."""
        if project in self._deleted and isinstance(error, (Cancelled, StorageFailed)):
            return NoSuchProject("the project was deleted")
        return error

    async def delete_project(self, project: ProjectId) -> None:
        """Its files are gone when this returns."""
        while project in self._opening:
            await self._opening[project].wait()
        self._deleted.add(project)  # an id never comes again: who still works on it gets an error
        with trio.CancelScope(shield=True):
            await self._close_desk(project)
            await self._threads.wal.run(lambda: self._store.delete(project))

    async def _close_desk(self, project: ProjectId) -> None:
        desk = self._desks.get(project)
        if desk is None:
            return
        self.upkeep.remove(desk)
        await desk.stop()
        await desk.ended.wait()
        self._dirty.discard(desk)
        del self._desks[project]

    # ------------------------------------------------------------ background

    async def sync_in_intervals(self) -> None:
        """With durability = "interval"."""
        if self._sync_interval_s is None:
            return
        while True:
            await trio.sleep(self._sync_interval_s)
            await self._sync_dirty()

    async def _sync_dirty(self) -> None:
        dirty, self._dirty = self._dirty, set()
        for desk in dirty:
            await desk.sync_now()

    async def rest_scanner(self) -> None:
        """Ends the processes that scan chunks when nobody needs them."""
        while True:
            await trio.sleep(QUIET_SECONDS)
            if self._scanner.is_quiet:
                await self._threads.freeze.run(self._scanner.rest)

    async def close(self) -> None:
        """Everything that was answered is durable; tails stay in the WAL."""
        with trio.CancelScope(shield=True):
            await self._sync_dirty()
            for project in list(self._desks):
                await self._close_desk(project)
            await self._threads.wal.run(self._store.close)


@asynccontextmanager
async def open_logs(
    store: Store,
    clock: Clock,
    query_threads: int,
    sync_interval_s: float | None,
    rest: Callable[[], None],
    scan_processes: int,
) -> AsyncIterator[Logs]:
    """Logs on an open store, with their background tasks; the store is closed at the end. `rest()`
    ends what the store's chunk builder holds on to, until it is needed again. `scan_processes`:
    at most so many scan chunks for queries."""
    async with trio.open_nursery() as nursery:
        threads = Threads(query_threads)
        cache_bytes = store.limits.cache_bytes
        scanner = ScanProcesses(scan_processes, cache_bytes, threads.wal.is_busy)
        logs = Logs(store, clock, threads, nursery, sync_interval_s, rest, scanner)
        nursery.start_soon(logs.upkeep.run)
        nursery.start_soon(logs.sync_in_intervals)
        nursery.start_soon(logs.rest_scanner)
        try:
            yield logs
        finally:
            await logs.close()
            with trio.CancelScope(shield=True):
                await threads.freeze.run(rest)
                await threads.freeze.run(scanner.close)
            nursery.cancel_scope.cancel()
            threads.close()


def _page(project: ProjectId, found: Found, total: int, pinned: Seq, digest: bytes) -> Page:
    following = None
    if found.last is not None:
        ts_ns, seq = found.last
        following = encode(Cursor(pinned, ts_ns, seq, total), project, digest)
    return Page(
        rows=found.entries,
        ids=log_ids(project, [entry.seq for entry in found.entries]),
        next_cursor=following,
        total=total,
        damaged=bool(found.damage),
    )
