"""Starts: on nothing, and after a SIGKILL that left all there is in the write-ahead log."""

import shutil
from typing import Final

from bench.corpus import BLOCK
from bench.peers.base import HttpPeer, PeerError, Portion
from bench.queries import Query
from bench.results import PeerRun, RecoveryFigures
from bench.workloads.setting import Setting

_ENTRIES: Final = 60 * BLOCK
"""Less than makes logd write a chunk, with the budgets of its default profile: what is measured
is the replay of a full tail."""

_LOADS: Final = ((1_000, 1), (1, 64))
"""Batch size and connections."""

_STARTS: Final = 3


def run(setting: Setting, into: PeerRun) -> None:
    """Only for servers that the benchmark has started itself."""
    peer = setting.peer
    if not isinstance(peer, HttpPeer) or peer.is_remote:
        return
    entries = min(_ENTRIES, setting.scope.entries)
    for batch, connections in _LOADS:
        setting.say(f"SIGKILL and start with {entries:,} entries in batches of {batch:,}")
        starts = [_killed(setting, peer, entries, batch, connections) for _ in range(_STARTS)]
        into.recovery.append(
            RecoveryFigures(
                entries=min(found for _, _, found in starts),
                batch=batch,
                empty_ready_s=min(empty_s for empty_s, _, _ in starts),
                ready_s=min(ready_s for _, ready_s, _ in starts),
            )
        )


def _killed(
    setting: Setting, peer: HttpPeer, entries: int, batch: int, connections: int
) -> tuple[float, float, int]:
    """Seconds of a start on an empty directory, and of the one after the kill; what is left."""
    data = setting.work / f"{peer.name}-restart"
    try:
        empty_s = peer.start(data)
        stored = peer.ingest(Portion(setting.corpus, 0, entries, batch, connections), setting.work)
        peer.kill()
        ready_s = peer.start(data)
        peer.publish()
        found = peer.ask(Query("all", "all that there is")).total
    finally:
        peer.stop()
        shutil.rmtree(data, ignore_errors=True)
    if peer.durable and found < stored.entries:
        raise PeerError(f"{found:,} of {stored.entries:,} entries are left after the SIGKILL")
    return empty_s, ready_s, found
