"""SIGKILL in the middle of a load: what had been acknowledged and is gone?"""

import shutil
import time

from bench.corpus import BLOCK, START_MS, STEP_MS
from bench.load import Load, LoadPlan
from bench.peers.base import HttpPeer, Peer, Portion
from bench.queries import Query
from bench.results import CrashFigures, PeerRun
from bench.workloads.setting import Setting

_LOADS = ((1, 8), (1_000, 1))
"""Batch size and connections of each crash."""

_SINGLES_PER_S = 40_000
_KILL_AT = 0.6
"""Part of the load after which the server is killed."""

_LEAST_S = 0.5
"""... but not before something was acknowledged; a small load is then over."""


def run(setting: Setting, into: PeerRun) -> None:
    """Only for servers that the benchmark has started itself."""
    peer = setting.peer
    if not isinstance(peer, HttpPeer) or peer.is_remote:
        return
    for batch, connections in _LOADS:
        setting.say(f"SIGKILL under a load of batches of {batch:,} on {connections} connections")
        count = _count(setting, batch)
        after_s = _kill_after_s(setting, into, batch, connections, count)
        into.crashes.append(_crash(setting, peer, batch, connections, count, after_s))


def _count(setting: Setting, batch: int) -> int:
    """Entries prepared: more than are sent before the kill."""
    if batch > 1:
        return setting.scope.entries
    wanted = int(setting.scope.crash_s * _SINGLES_PER_S) // BLOCK * BLOCK
    return min(setting.scope.entries, wanted)


def _kill_after_s(
    setting: Setting, into: PeerRun, batch: int, connections: int, count: int
) -> float:
    """Before the load can be over, by what the same load took earlier in this run."""
    rates = [
        load.entries_per_s
        for load in into.ingest
        if (load.batch, load.connections) == (batch, connections)
    ]
    expected_s = count / max(rates) if rates else setting.scope.crash_s
    return min(setting.scope.crash_s, max(_LEAST_S, _KILL_AT * expected_s))


def _crash(
    setting: Setting, peer: HttpPeer, batch: int, connections: int, count: int, after_s: float
) -> CrashFigures:
    data = setting.work / f"{peer.name}-crash"
    try:
        peer.start(data)
        requests = peer.prepare(Portion(setting.corpus, 0, count, batch), setting.work)
        limit_s = setting.scope.crash_s * 2
        load = Load(LoadPlan(peer.address, requests, 0, len(requests.ends), connections, limit_s))
        load.go()
        time.sleep(after_s)
        peer.kill()
        result = load.result()
        acknowledged = result.acknowledged
        requests.path.unlink()
        ready_s = peer.start(data)
        lost = _lost(peer, acknowledged, batch)
    finally:
        peer.stop()
        shutil.rmtree(data, ignore_errors=True)
    total = len(acknowledged) * batch
    return CrashFigures(
        batch=batch,
        connections=connections,
        acknowledged=total,
        lost=lost,
        ready_s=ready_s,
        recovered_per_s=(total - lost) / ready_s,
        refused=sum(failure.startswith("status") for failure in result.failures),
    )


def _lost(peer: Peer, acknowledged: list[int], batch: int) -> int:
    """Counted block by block of the corpus, by the time range that only its entries have."""
    expected: dict[int, int] = {}
    for number in acknowledged:
        block = number * batch // BLOCK
        expected[block] = expected.get(block, 0) + batch
    return sum(max(0, count - _stored(peer, block)) for block, count in expected.items())


def _stored(peer: Peer, block: int) -> int:
    start = START_MS + block * BLOCK * STEP_MS
    question = Query("block", "one block", from_ms=start, to_ms=start + BLOCK * STEP_MS)
    return peer.ask(question).total
