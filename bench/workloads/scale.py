"""How the figures change as the store grows: the same store, restarted and asked at each
checkpoint."""

from itertools import pairwise

from bench.peers.base import Portion
from bench.procstat import disk, memory
from bench.queries import queries
from bench.results import PeerRun, ScaleFigures
from bench.workloads import asking
from bench.workloads.setting import Setting


def run(setting: Setting, into: PeerRun) -> None:
    peer = setting.peer
    with setting.started("scale"):
        for first, last in pairwise((0, *setting.scope.scale)):
            setting.say(f"growing to {last:,} entries")
            portion = Portion(setting.corpus, first, last)
            stored = setting.ingest_whole("scale", portion)
            peer.publish()
            setting.settle(setting.scope.disk_quiet_s)
            setting.restart()
            figures = asking.ask_all(setting, queries(last), last)
            rss = memory(peer.pid).rss if peer.pid is not None else None
            into.scale.append(
                ScaleFigures(
                    entries=last,
                    entries_per_s=stored.entries / stored.load.seconds,
                    queries=tuple(figures),
                    disk_bytes_per_entry=disk(peer.data).allocated / last,
                    rss=rss,
                )
            )
