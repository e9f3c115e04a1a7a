"""Loads into an empty store: batches of 1,000 and single entries, over several connections."""

from bench.peers.base import HttpPeer, Portion
from bench.results import IngestFigures, PeerRun
from bench.workloads.setting import Setting, ingest_figures

_SINGLES_PER_S = 40_000
"""Requests prepared for each second of a load of single entries: more than any peer answers."""


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
    return _load(setting, setting.scope.entries, 1_000, connections, 120.0)


def _singles(setting: Setting, connections: int) -> IngestFigures:
    setting.say(f"single entries on {connections} connections")
    wanted = int(setting.scope.single_s * _SINGLES_PER_S) // 1_000 * 1_000
    count = min(setting.scope.entries, wanted)
    return _load(setting, count, 1, connections, setting.scope.single_s)


def _load(
    setting: Setting, entries: int, batch: int, connections: int, limit_s: float
) -> IngestFigures:
    portion = Portion(setting.corpus, 0, entries, batch, connections, limit_s)
    stored = setting.peer.ingest(portion, setting.work)
    return ingest_figures(stored, batch, connections)
