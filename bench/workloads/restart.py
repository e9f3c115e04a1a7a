"""Starts: on nothing, and after a SIGKILL that left all there is in the write-ahead log."""

import shutil
from pathlib import Path
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

_STARTS: Final = 5


def run(setting: Setting, into: PeerRun) -> None:
    """Only for servers that the benchmark has started itself."""
    peer = setting.peer
    if not isinstance(peer, HttpPeer) or peer.is_remote:
        return
    entries = min(_ENTRIES, setting.scope.entries)
    for batch, connections in _LOADS:
        setting.say(f"SIGKILL and start with {entries:,} entries in batches of {batch:,}")
        into.recovery.append(_recovery(setting, peer, entries, batch, connections))


def _recovery(
    setting: Setting, peer: HttpPeer, entries: int, batch: int, connections: int
) -> RecoveryFigures:
    data = setting.work / f"{peer.name}-restart"
    try:
        empty_s = [_start_on_nothing(peer, data) for _ in range(_STARTS)]
        portion = Portion(setting.corpus, 0, entries, batch, connections)
        stored = setting.ingest_whole("restart", portion)
        starts = [_start_after_a_kill(peer, data) for _ in range(_STARTS)]
    finally:
        peer.stop()
        shutil.rmtree(data, ignore_errors=True)
    left = min(found for _, found in starts)
    if peer.durable and left < stored.entries:
        raise PeerError(f"{left:,} of {stored.entries:,} entries are left after the SIGKILL")
    return RecoveryFigures(
        entries=left,
        batch=batch,
        empty_ready_s=min(empty_s),
        ready_s=min(ready_s for ready_s, _ in starts),
    )


def _start_on_nothing(peer: HttpPeer, data: Path) -> float:
    """Seconds. It goes on running."""
    peer.stop()
    shutil.rmtree(data, ignore_errors=True)
    return peer.start(data)


def _start_after_a_kill(peer: HttpPeer, data: Path) -> tuple[float, int]:
    """Seconds, and what is left. What this start has read is in the log anew, for the next one."""
    peer.kill()
    ready_s = peer.start(data)
    peer.publish()
    return ready_s, peer.ask(Query("all", "all that there is")).total
