"""Loads: batches of 1,000 and single entries, over several connections. Those of one kind go into
one store, which is new, and store one stretch of the corpus after the other."""

from dataclasses import replace

import msgspec

from bench.corpus import BLOCK
from bench.peers.base import HttpPeer, Portion
from bench.results import IngestFigures, PeerRun
from bench.workloads.setting import Setting, ingest_figures, singles_at_most

_BATCHES_LIMIT_S = 120.0


def run(setting: Setting, into: PeerRun) -> None:
    """Every load but the one of the filling, which has batches of 1,000 on one connection.

    Peers that are not behind HTTP have no connections.
    """
    scope = setting.scope
    if not setting.peer.stores:
        return
    several = scope.connections if isinstance(setting.peer, HttpPeer) else (1,)
    stretch = max(BLOCK, scope.entries // scope.loads // BLOCK * BLOCK)
    for connections in several:
        if connections > 1:
            setting.say(f"batches of 1,000 on {connections} connections")
            load = Portion(setting.corpus, 0, stretch, 1_000, connections, _BATCHES_LIMIT_S)
            into.ingest.append(_loads(setting, load))
    stretch = min(stretch, singles_at_most(scope))
    for connections in several:
        setting.say(f"single entries on {connections} connections")
        load = Portion(setting.corpus, 0, stretch, 1, connections, scope.single_s)
        into.ingest.append(_loads(setting, load))


def _loads(setting: Setting, first: Portion) -> IngestFigures:
    """Of some loads in a row the one in the middle: on a machine that others share, what waits for
    the disk is half as quick in one second as in another. Failures are those of all."""
    loads = []
    with setting.started("ingest"):
        for number in range(setting.scope.loads):
            shift = number * (first.last - first.first)
            portion = replace(first, first=first.first + shift, last=first.last + shift)
            loads.append(ingest_figures(setting.ingest(portion), first.batch, first.connections))
    by_rate = sorted(loads, key=lambda figures: figures.entries_per_s)
    return msgspec.structs.replace(
        by_rate[len(loads) // 2],
        failures=sum(figures.failures for figures in loads),
        failure=next((figures.failure for figures in loads if figures.failures), ""),
    )
