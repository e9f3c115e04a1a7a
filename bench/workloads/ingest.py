"""Loads into an empty store: batches of 1,000 and single entries, over several connections."""

import msgspec

from bench.corpus import BLOCK
from bench.peers.base import HttpPeer, Portion
from bench.results import IngestFigures, PeerRun
from bench.workloads.setting import Setting, ingest_figures, single_portion


def run(setting: Setting, into: PeerRun) -> None:
    """Every load but the one of the filling, which has batches of 1,000 on one connection.

    Peers that are not behind HTTP have no connections; their single entries are stored in turn.
    """
    if not setting.peer.stores:
        return
    over_http = isinstance(setting.peer, HttpPeer)
    with setting.started("ingest"):
        for connections in setting.scope.connections:
            if connections > 1 and over_http:
                into.ingest.append(_batches(setting, connections))
                setting.settle()
        for connections in setting.scope.connections if over_http else (1,):
            into.ingest.append(_singles(setting, connections))
            setting.settle()


def _batches(setting: Setting, connections: int) -> IngestFigures:
    setting.say(f"batches of 1,000 on {connections} connections")
    scope = setting.scope
    count = max(BLOCK, 2 * scope.entries // scope.loads // BLOCK * BLOCK)
    portion = Portion(setting.corpus, 0, min(count, scope.entries), 1_000, connections, 120.0)
    return _median(setting, portion)


def _singles(setting: Setting, connections: int) -> IngestFigures:
    setting.say(f"single entries on {connections} connections")
    return _median(setting, single_portion(setting, connections))


def _median(setting: Setting, portion: Portion) -> IngestFigures:
    """Of some loads in a row the one in the middle: on a machine that others share, what waits for
    the disk is half as quick in one second as in another. Failures are those of all."""
    loads = []
    for _ in range(setting.scope.loads):
        stored = setting.peer.ingest(portion, setting.work)
        loads.append(ingest_figures(stored, portion.batch, portion.connections))
    by_rate = sorted(loads, key=lambda load: load.entries_per_s)
    return msgspec.structs.replace(
        by_rate[len(loads) // 2],
        failures=sum(load.failures for load in loads),
        failure=next((load.failure for load in loads if load.failures), ""),
    )
