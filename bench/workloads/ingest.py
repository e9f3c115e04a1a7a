"""Loads into an empty store: batches of 1,000 and single entries, over several connections."""

from collections.abc import Callable

import msgspec

from bench.corpus import BLOCK
from bench.peers.base import HttpPeer, Portion, Stored
from bench.results import IngestFigures, PeerRun
from bench.workloads.setting import Setting, ingest_figures, single_portion

_LoadIt = Callable[[Setting, Portion], Stored]


def run(setting: Setting, into: PeerRun) -> None:
    """Every load but the one of the filling, which has batches of 1,000 on one connection.

    Peers that are not behind HTTP have no connections; their single entries are stored in turn.
    """
    if not setting.peer.stores:
        return
    if not isinstance(setting.peer, HttpPeer):
        into.ingest.append(_singles(setting, 1, _load_on_a_new_store))
        return
    with setting.started("ingest"):
        for connections in setting.scope.connections:
            if connections > 1:
                into.ingest.append(_batches(setting, connections))
                setting.settle()
        for connections in setting.scope.connections:
            into.ingest.append(_singles(setting, connections, _load))
            setting.settle()


def _load(setting: Setting, portion: Portion) -> Stored:
    return setting.ingest(portion)


def _load_on_a_new_store(setting: Setting, portion: Portion) -> Stored:
    """For a peer that takes each entry only once."""
    with setting.started("ingest"):
        return _load(setting, portion)


def _batches(setting: Setting, connections: int) -> IngestFigures:
    setting.say(f"batches of 1,000 on {connections} connections")
    scope = setting.scope
    count = max(BLOCK, 2 * scope.entries // scope.loads // BLOCK * BLOCK)
    portion = Portion(setting.corpus, 0, min(count, scope.entries), 1_000, connections, 120.0)
    return _median(setting, portion, _load)


def _singles(setting: Setting, connections: int, load: _LoadIt) -> IngestFigures:
    setting.say(f"single entries on {connections} connections")
    return _median(setting, single_portion(setting, connections), load)


def _median(setting: Setting, portion: Portion, load: _LoadIt) -> IngestFigures:
    """Of some loads in a row the one in the middle: on a machine that others share, what waits for
    the disk is half as quick in one second as in another. Failures are those of all."""
    loads = []
    for _ in range(setting.scope.loads):
        stored = load(setting, portion)
        loads.append(ingest_figures(stored, portion.batch, portion.connections))
    by_rate = sorted(loads, key=lambda figures: figures.entries_per_s)
    return msgspec.structs.replace(
        by_rate[len(loads) // 2],
        failures=sum(figures.failures for figures in loads),
        failure=next((figures.failure for figures in loads if figures.failures), ""),
    )
