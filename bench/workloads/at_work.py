"""The most memory that a server takes: at loads, and at the questions that cost most."""

from typing import Final

from bench.corpus import BLOCK
from bench.peers.base import HttpPeer, Portion
from bench.procstat import forget_peak, peak
from bench.queries import Query
from bench.results import MemoryFigures, PeerRun
from bench.workloads.setting import Setting

_ENTRIES: Final = 300 * BLOCK
_BATCHES: Final = (1_000, 100)
_QUESTIONS: Final = (
    Query("prefix", "common prefix", prefix="a", page=1_000),
    Query("substring", "common substring", substring="er", page=1_000),
    Query("absent", "substring that occurs nowhere", substring="qzx", page=1_000),
)


def run(setting: Setting, into: PeerRun) -> None:
    """Only for servers that the benchmark has started itself."""
    peer = setting.peer
    if not isinstance(peer, HttpPeer) or peer.is_remote:
        return
    entries = min(_ENTRIES, setting.scope.entries)
    for batch in _BATCHES:
        setting.say(f"peak memory at {entries:,} entries in batches of {batch:,}")
        with setting.started(f"memory-{batch}") as data:
            peer.stop()
            peer.start(data)  # anew: what setting it up took is no part of its work
            into.memory.append(_load(setting, peer, entries, batch))
            if batch == _BATCHES[-1]:
                into.memory += [_ask(peer, query) for query in _QUESTIONS if peer.can(query)]


def _load(setting: Setting, peer: HttpPeer, entries: int, batch: int) -> MemoryFigures:
    """Until the server has nothing more to do with it."""
    assert peer.pid is not None
    forget_peak(peer.pid)
    portion = Portion(setting.corpus, 0, entries, batch)
    stored = setting.ingest_whole("memory", portion)
    setting.settle()
    rate = stored.entries / stored.load.seconds
    return _figures(peer, f"{entries:,} entries, batch {batch:,}", rate)


def _ask(peer: HttpPeer, query: Query) -> MemoryFigures:
    assert peer.pid is not None
    forget_peak(peer.pid)
    peer.ask(query)
    return _figures(peer, f"{query.title}, page of {query.page:,}")


def _figures(peer: HttpPeer, what: str, entries_per_s: float | None = None) -> MemoryFigures:
    assert peer.pid is not None
    ready = peer.ready_memory.rss if peer.ready_memory else 0
    return MemoryFigures(what=what, ready=ready, peak=peak(peer.pid), entries_per_s=entries_per_s)
