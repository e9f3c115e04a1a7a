"""What all workloads of one run share."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.corpus import BLOCK, Corpus
from bench.oracle import Oracle
from bench.peers.base import Peer, PeerError, Portion, Stored
from bench.procstat import cpu_seconds, wait_until_quiet
from bench.results import IngestFigures
from bench.stats import median, percentile

Progress = Callable[[str], None]

_SINGLES_PER_S: Final = 40_000
"""Requests prepared for each second of a load of single entries: more than any peer answers."""


@dataclass(frozen=True)
class Scope:
    """How much is done. `loads`: of each kind, of which the median counts; `single_s`: time of
    each load of one-entry requests. `crash_s`: time until the server is killed. `settle_s`: longest
    wait for background work, over when there has been none for `quiet_s`, or `disk_quiet_s` before
    the size on disk is taken (a peer that does not sync may write its last data many seconds
    later)."""

    entries: int
    loads: int
    single_s: float
    crash_s: float
    settle_s: float
    quiet_s: float
    disk_quiet_s: float
    repetitions: int
    query_s: float
    connections: tuple[int, ...]
    scale: tuple[int, ...] = ()


SMOKE: Final = Scope(
    entries=20 * BLOCK,
    loads=1,
    single_s=0.7,
    crash_s=0.7,
    settle_s=4.0,
    quiet_s=0.5,
    disk_quiet_s=1.0,
    repetitions=5,
    query_s=0.5,
    connections=(1, 8),
)


def full(entries: int, scale: tuple[int, ...]) -> Scope:
    """The whole programme on `entries` entries."""
    return Scope(
        entries=entries,
        loads=5,
        single_s=2.0,
        crash_s=10.0,
        settle_s=60.0,
        quiet_s=2.0,
        disk_quiet_s=12.0,
        repetitions=21,
        query_s=4.0,
        connections=(1, 2, 8, 64),
        scale=scale,
    )


@dataclass(frozen=True)
class Setting:
    """One peer in one run: the corpus with its right answers, and a directory to work in."""

    peer: Peer
    corpus: Corpus
    oracle: Oracle
    scope: Scope
    work: Path
    say: Progress
    failed: list[str] = field(default_factory=list)
    """What went wrong at loads, where no figure tells it."""

    @contextmanager
    def started(self, name: str) -> Iterator[Path]:
        """The peer, running on a new and empty directory that is removed afterwards."""
        data = self.work / f"{self.peer.name}-{name}"
        try:
            self.peer.start(data)
            yield data
        finally:
            self.peer.stop()
            shutil.rmtree(data, ignore_errors=True)

    def ingest(self, portion: Portion) -> Stored:
        """PeerError when not one entry was taken: no figure can be made of that."""
        stored = self.peer.ingest(portion, self.work)
        if not stored.entries:
            why = "; ".join(sorted(set(stored.load.failures))) or "its time was over"
            raise PeerError(f"nothing of a load was taken: {why}")
        return stored

    def ingest_whole(self, what: str, portion: Portion) -> Stored:
        """The same of a load that is to be taken as a whole, and has no figure of its failures."""
        stored = self.ingest(portion)
        self.note_failures(what, stored)
        self.note_shortfall(what, stored, portion)
        return stored

    def note_failures(self, what: str, stored: Stored) -> None:
        failures = stored.load.failures
        if failures:
            self.failed.append(f"{what}: {len(failures):,} failed requests, first: {failures[0]}")

    def note_shortfall(self, what: str, stored: Stored, portion: Portion) -> None:
        """Of a load that was to be taken as a whole."""
        if (wanted := portion.last - portion.first) != stored.entries:
            self.failed.append(f"{what}: {stored.entries:,} of {wanted:,} entries were taken")

    def settle(self, quiet_s: float | None = None) -> bool:
        """Wait until the peer has nothing more to do in the background."""
        if self.peer.pid is None:
            return True
        quiet_s = self.scope.quiet_s if quiet_s is None else quiet_s
        return wait_until_quiet(self.peer.pid, self.peer.data, self.scope.settle_s, quiet_s)

    def restart(self) -> float | None:
        """A clean one, so that the first questions meet a process that knows nothing yet: seconds
        until it was ready. None where the peer is no process of ours."""
        if self.peer.pid is None:
            return None
        data = self.peer.data
        self.peer.stop()
        ready_s = self.peer.start(data)
        self.settle()
        return ready_s


def cpu_now(peer: Peer) -> float | None:
    return cpu_seconds(peer.pid) if peer.pid is not None else None


def single_portion(setting: Setting, connections: int) -> Portion:
    """One load of single entries."""
    scope = setting.scope
    count = min(scope.entries, singles_at_most(scope))
    return Portion(setting.corpus, 0, count, 1, connections, scope.single_s)


def singles_at_most(scope: Scope) -> int:
    """How many a load of single entries may need."""
    return int(scope.single_s * _SINGLES_PER_S) // BLOCK * BLOCK


def ingest_figures(
    stored: Stored, batch: int, connections: int, indexed_cpu_s: float | None = None
) -> IngestFigures:
    load, entries = stored.load, stored.entries

    def per_entry_us(seconds: float | None) -> float | None:
        return None if seconds is None else seconds / entries * 1e6

    return IngestFigures(
        batch=batch,
        connections=connections,
        entries=stored.entries,
        entries_per_s=stored.entries / load.seconds,
        p50_ms=median(load.latencies_s) * 1e3,
        p99_ms=percentile(load.latencies_s, 99) * 1e3,
        client_cpu_us=load.client_cpu_s / entries * 1e6,
        server_cpu_us=per_entry_us(stored.server_cpu_s),
        indexed_cpu_us=per_entry_us(indexed_cpu_s),
        failures=len(load.failures),
        failure=load.failures[0] if load.failures else "",
    )
