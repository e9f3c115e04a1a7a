"""The whole benchmark: every run of every peer, in changing order, and what came of it."""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from subprocess import SubprocessError
from typing import Final

from msgspec import MsgspecError

from bench.corpus import Corpus, write_corpus
from bench.http import ConnectionLost
from bench.machine import describe, sync_ms
from bench.new_questions import new_questions
from bench.oracle import Oracle
from bench.peers.base import Peer, PeerError
from bench.procstat import cpu_seconds, machine_busy_seconds
from bench.queries import queries
from bench.results import CorpusInfo, PeerInfo, PeerRun, Results
from bench.server import ServerFailed
from bench.workloads import at_work, crash, filled, ingest, restart, scale
from bench.workloads.setting import Progress, Scope, Setting

PARTS: Final = ("fill", "queries", "mixed", "ingest", "restart", "memory", "crash", "scale")
"""What can be selected. `queries` and `mixed` need the filled store, so they imply `fill`."""

_BYTES_PER_ENTRY: Final = 1_200
"""Disk for the corpus, for its requests and for the store that is filled, with a margin."""

_PEER_FAILURES: Final = (
    PeerError,
    ServerFailed,
    ConnectionLost,
    OSError,
    SubprocessError,
    MsgspecError,  # an answer that is not what was asked for
)


@dataclass(frozen=True)
class Order:
    """What to run. `work`: a directory whose contents are ours. `keep` gets the results so far
    after every run of a peer, lest an interruption cost them."""

    peers: Sequence[Callable[[], Peer]]
    parts: frozenset[str]
    scope: Scope
    runs: int
    seed: int
    work: Path
    say: Progress
    keep: Callable[[Results], None]


class NoRoom(Exception):
    """The disk cannot hold the benchmark."""


def run(order: Order) -> Results:
    """Peer failures are recorded in the results; everything else is raised."""
    entries = max((order.scope.entries, *order.scope.scale))
    _check_room(order.work, entries)
    peers = [make() for make in order.peers]
    order.say(f"writing a corpus of {entries:,} entries")
    corpus, oracle = _corpus(order, entries)
    results = Results(
        taken=datetime.now(UTC).date().isoformat(),
        machine=describe(order.work),
        corpus=CorpusInfo(
            seed=order.seed,
            entries=entries,
            bytes_per_entry=corpus.size_bytes / entries,
            sha256=corpus.sha256,
        ),
        peers=[
            PeerInfo(name=p.name, version=p.version, durable=p.durable, caveats=p.caveats)
            for p in peers
        ],
    )
    for number in range(order.runs):
        for peer in _rotated(peers, number):
            results.runs.append(_run(order, peer, corpus, oracle, number + 1))
            order.keep(results)
    return results


def _corpus(order: Order, entries: int) -> tuple[Corpus, Oracle]:
    checkpoints = {order.scope.entries, *order.scope.scale}
    questions = [query for count in sorted(checkpoints) for query in queries(count)]
    questions += new_questions()
    oracle = Oracle(questions, checkpoints)
    return write_corpus(order.work / "corpus.ndjson", order.seed, entries, oracle), oracle


def _run(order: Order, peer: Peer, corpus: Corpus, oracle: Oracle, number: int) -> PeerRun:
    into = PeerRun(peer=peer.name, run=number, sync_ms=sync_ms(order.work))
    started = time.monotonic()

    def say(text: str) -> None:
        order.say(f"{peer.name}, run {number}: {text}")

    setting = Setting(peer, corpus, oracle, order.scope, order.work, say, into.failed)
    busy, ours = machine_busy_seconds(), cpu_seconds(os.getpid())
    try:
        once = frozenset({"scale"}) if into.run > 1 else frozenset[str]()  # it takes long
        _parts(setting, into, order.parts - once)
    except _PEER_FAILURES as error:
        into.error = f"{type(error).__name__}: {error}"
        say(into.error)
    elapsed = time.monotonic() - started
    foreign = (machine_busy_seconds() - busy) - (cpu_seconds(os.getpid()) - ours)
    into.foreign_cores = max(0.0, foreign / elapsed)
    say(f"done in {elapsed:.0f} s; other processes kept {into.foreign_cores:.2f} cores busy")
    return into


def _parts(setting: Setting, into: PeerRun, parts: frozenset[str]) -> None:
    if parts & {"fill", "queries", "mixed"}:
        filled.run(setting, into, "queries" in parts, "mixed" in parts)
    if "ingest" in parts:
        ingest.run(setting, into)
    if "restart" in parts:
        restart.run(setting, into)
    if "memory" in parts:
        at_work.run(setting, into)
    if "crash" in parts:
        crash.run(setting, into)
    if "scale" in parts and setting.scope.scale:
        scale.run(setting, into)


def _rotated(peers: Sequence[Peer], by: int) -> list[Peer]:
    """Another peer goes first in each run, so that no peer always meets the same conditions."""
    at = by % len(peers)
    return [*peers[at:], *peers[:at]]


def _check_room(work: Path, entries: int) -> None:
    free = shutil.disk_usage(work).free
    if free < entries * _BYTES_PER_ENTRY:
        raise NoRoom(f"{entries:,} entries need {entries * _BYTES_PER_ENTRY / 1e9:.1f} GB of disk")
