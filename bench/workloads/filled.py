"""The life of a store: idle, filled, at rest, restarted, asked, asked while it is written to."""

from bench.new_questions import KINDS
from bench.peers.base import HttpPeer, Portion
from bench.procstat import disk, memory
from bench.queries import queries
from bench.results import PeerRun, RestartFigures, StoreFigures
from bench.workloads import asking, mixed
from bench.workloads.setting import Setting, cpu_now, ingest_figures


def run(setting: Setting, into: PeerRun, with_queries: bool, with_mixed: bool) -> None:
    with setting.started("filled"):
        _fill(setting, into)
        if with_queries:
            _restart(setting, into)
            setting.say("queries")
            entries = setting.scope.entries
            into.queries = asking.ask_all(setting, queries(entries), entries)
            setting.say("new questions")
            into.new_queries = asking.ask_new(setting, KINDS, entries)
        if with_mixed and isinstance(setting.peer, HttpPeer):
            setting.say("single entries beside a worst-case query")
            into.mixed = mixed.run(setting, setting.peer)


def _fill(setting: Setting, into: PeerRun) -> None:
    """The main load; then rest; then the footprint."""
    peer, entries = setting.peer, setting.scope.entries
    setting.say(f"filling with {entries:,} entries")
    idle = peer.ready_memory if isinstance(peer, HttpPeer) else None
    before = cpu_now(peer)
    portion = Portion(setting.corpus, 0, entries)
    stored = setting.ingest(portion)
    setting.note_shortfall("filling", stored, portion)
    filled = memory(peer.pid) if peer.pid is not None else None
    peer.publish()
    settled = setting.settle(setting.scope.disk_quiet_s)
    after = cpu_now(peer)
    indexed = after - before if after is not None and before is not None else None
    if peer.stores:
        into.ingest.append(ingest_figures(stored, 1_000, 1, indexed))
    size = disk(peer.data)
    if not size.apparent:
        return  # a server that runs elsewhere
    into.store = StoreFigures(
        idle_rss=idle.rss if idle else None,
        idle_pss=idle.pss if idle else None,
        filled_rss=filled.rss if filled else None,
        filled_pss=filled.pss if filled else None,
        filled_anonymous=filled.anonymous if filled else None,
        disk_bytes_per_entry=size.allocated / stored.entries,
        apparent_bytes_per_entry=size.apparent / stored.entries,
        settled=settled,
    )


def _restart(setting: Setting, into: PeerRun) -> None:
    setting.say("clean restart")
    ready_s = setting.restart()
    if ready_s is not None and setting.peer.pid is not None:
        into.restart = RestartFigures(
            entries=setting.scope.entries, ready_s=ready_s, rss=memory(setting.peer.pid).rss
        )
