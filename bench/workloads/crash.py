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


def run(setting: Setting, into: PeerRun) -> None:
    """Only for servers that the benchmark has started itself."""
    peer = setting.peer
    if not isinstance(peer, HttpPeer) or peer.is_remote:
        return
    for batch, connections in _LOADS:
        setting.say(f"SIGKILL under a load of batches of {batch:,} on {connections} connections")
        into.crashes.append(_crash(setting, peer, batch, connections))


def _crash(setting: Setting, peer: HttpPeer, batch: int, connections: int) -> CrashFigures:
    scope = setting.scope
    count = scope.entries
    if batch == 1:
        count = min(count, int(scope.crash_s * _SINGLES_PER_S) // BLOCK * BLOCK)
    data = setting.work / f"{peer.name}-crash"
    try:
        peer.start(data)
        requests = peer.prepare(Portion(setting.corpus, 0, count, batch), setting.work)
        limit_s = scope.crash_s * 2
        load = Load(LoadPlan(peer.address, requests, 0, len(requests.ends), connections, limit_s))
        load.go()
        time.sleep(scope.crash_s if batch == 1 else scope.crash_s / 2)
        peer.kill()
        acknowledged = load.result().acknowledged
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
