"""The logs of all projects: the parts that share a store, made and joined, and their end."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

from logd.daemon.deputy import Deputy
from logd.daemon.desks import Desks
from logd.daemon.ingest import Ingest
from logd.daemon.queries import Queries
from logd.daemon.query_queue import QueryQueue
from logd.daemon.read_ahead import ReadAhead
from logd.daemon.scan_processes import QUIET_SECONDS, ScanProcesses
from logd.daemon.threads import Threads
from logd.daemon.upkeep import Upkeep
from logd.entry import Clock
from logd.errors import Overloaded
from logd.store.store import Store


@dataclass(frozen=True)
class Logs:
    """Open with `open_logs`. `deputy`: for what `ingest` commits."""

    desks: Desks
    ingest: Ingest
    queries: Queries
    deputy: Deputy


@asynccontextmanager
async def open_logs(
    store: Store,
    clock: Clock,
    query_threads: int,
    sync_interval_s: float | None,
    rest: Callable[[], None],
    scan_processes: int,
    cores: int,
) -> AsyncIterator[Logs]:
    """Logs on an open store, with their background tasks; the store is closed at the end. `rest()`
    ends what the store's chunk builder holds on to, until it is needed again. `scan_processes`:
    at most so many scan chunks for queries. `cores`: those that the daemon may use."""
    async with trio.open_nursery() as nursery:
        threads = Threads(query_threads)
        cache_bytes = store.limits.cache_bytes
        scanner = ScanProcesses(scan_processes, cache_bytes, threads.wal.is_busy, cores=cores)
        deputy = Deputy(threads.wal)
        upkeep = Upkeep(threads, rest)
        ahead = ReadAhead(store, threads.query)
        desks = Desks(store, threads, nursery, deputy, upkeep, ahead, sync_interval_s)
        nursery.start_soon(upkeep.run)
        nursery.start_soon(desks.sync_in_intervals)
        nursery.start_soon(_rest_scanner, scanner, threads)
        nursery.start_soon(ahead.open_few, desks.of)
        try:
            yield Logs(
                desks=desks,
                ingest=Ingest(desks, clock, threads.decode),
                queries=Queries(desks, threads.query, QueryQueue(query_threads), scanner),
                deputy=deputy,
            )
        finally:
            await ahead.stop()
            await desks.close()
            with trio.CancelScope(shield=True):
                await threads.freeze.run_at_the_end(rest)
                await threads.freeze.run_at_the_end(scanner.close)
            nursery.cancel_scope.cancel()
            threads.close()


async def _rest_scanner(scanner: ScanProcesses, threads: Threads) -> None:
    """Ends the processes that scan chunks when nobody needs them."""
    while True:
        await trio.sleep(QUIET_SECONDS)
        if scanner.is_quiet:
            with contextlib.suppress(Overloaded):  # no thread can be started: they rest later
                await threads.freeze.run(scanner.rest)
