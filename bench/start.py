"""How a daemon starts on a store of many days: `python -m bench.start --entries 100000000`.

A corpus of a million entries is sent as often as it takes, through the ordinary way in, each time
with the date of the following day. Then the daemon is stopped and started: what a start takes, the
memory that it leaves, and what the first questions cost, each asked for the first time and again.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from bench.corpus import RARE_ID, RARE_WORD, START_MS, Line, write_corpus
from bench.ending import ended_orderly, show
from bench.load import LoadPlan, run_load
from bench.peers.base import Portion
from bench.peers.logd import Logd
from bench.procstat import disk, memory, wait_until_quiet
from bench.queries import Query
from bench.tables import grid, number
from bench.wire import RequestFile

DAY_ENTRIES: Final = 1_000_000
_LOAD_LIMIT_S: Final = 600.0
_QUIET_S: Final = 3.0
_STARTS: Final = 3


class _Nobody:
    """Judges no entry: only numbers of entries are compared."""

    def see(self, lines: Sequence[Line]) -> None:
        """Nothing is noted."""


def measure(days: int, work: Path, day_entries: int = DAY_ENTRIES) -> list[tuple[str, str]]:
    """(what, figure), of a store of so many days."""
    peer = Logd()
    data = work / "data"
    try:
        peer.start(data)
        corpus = write_corpus(work / "corpus.ndjson", 1, day_entries, _Nobody())
        requests = peer.prepare(Portion(corpus, 0, day_entries), work)
        began = time.monotonic()
        for day in range(days):
            _send(peer, requests, day)
            print(f"day {day + 1} of {days}", file=sys.stderr, flush=True)
        seconds = time.monotonic() - began
        _settle(peer)
        size = disk(data).allocated
        starts = []
        for _ in range(_STARTS):
            peer.stop()
            starts.append(peer.start(data))
        at_start = peer.ready_memory
        entries = sum(peer.levels().counts.values())
        if entries != days * day_entries:
            raise SystemExit(f"{entries:,} of {days * day_entries:,} entries are there")
        rows = [
            ("entries", f"{entries:,}"),
            ("sent, dates rewritten between, entries/s", f"{entries / seconds:,.0f}"),
            ("disk, bytes an entry", number(size / entries)),
            ("start, s: the first, the quickest of three", f"{starts[0]:.2f}, {min(starts):.2f}"),
        ]
        if at_start is not None:
            rows.append(("memory when ready, MB", number(at_start.rss / 1e6)))
        rows += _ask(peer, entries)
        if peer.pid is not None:
            found = memory(peer.pid)
            text = f"{number(found.rss / 1e6)}, {number(found.anonymous / 1e6)}"
            rows.append(("memory after the questions, MB: all, without mapped files", text))
        return rows
    finally:
        peer.stop()


def _send(peer: Logd, requests: RequestFile, day: int) -> None:
    """The corpus once more, of another day: dates have one length, so no request moves."""
    first = datetime.fromtimestamp(START_MS / 1000, UTC)
    date, another = (f"{d:%Y-%m-%d}T".encode() for d in (first, first + timedelta(days=day)))
    path = requests.path.with_suffix(".day")
    path.write_bytes(requests.path.read_bytes().replace(date, another))
    of_day = RequestFile(path, requests.ends, requests.batch, requests.first_entry)
    load = run_load(LoadPlan(peer.address, of_day, 0, len(of_day.ends), 2, _LOAD_LIMIT_S))
    if load.failures or len(load.acknowledged) != len(of_day.ends):
        raise SystemExit(f"not all was taken: {load.failures[:1]}")


def _settle(peer: Logd) -> None:
    if peer.pid is not None:
        wait_until_quiet(peer.pid, peer.data, _LOAD_LIMIT_S, _QUIET_S)


def _ask(peer: Logd, entries: int) -> list[tuple[str, str]]:
    rows = []
    for title, query, expected in (
        ("newest 100", Query("newest", ""), entries),
        ("rare word", Query("rare_word", "", words=(RARE_WORD,)), None),
        ("rare hex id", Query("rare_id", "", words=(RARE_ID,)), None),
        ("word that occurs nowhere", Query("absent", "", words=("zyzzyva",)), 0),
    ):
        replies = [peer.ask(query) for _ in range(_STARTS)]
        if expected is not None and replies[0].total != expected:
            raise SystemExit(f"{title}: {replies[0].total:,} entries")
        first, again = replies[0].page_s, min(reply.page_s for reply in replies[1:])
        text = f"{number(first * 1e3)}, {number(again * 1e3)}"
        rows.append((f"{title} ({replies[0].total:,}), ms: first, again", text))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.start", description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000_000, help="in whole millions")
    parser.add_argument("--dir", type=Path, help="where the temporary directory is made")
    options = parser.parse_args(arguments)
    if options.entries < DAY_ENTRIES or options.entries % DAY_ENTRIES:
        parser.error(f"argument --entries: not in whole millions: {options.entries}")
    return ended_orderly(lambda: _show(options.entries // DAY_ENTRIES, options.dir))


def _show(days: int, directory: Path | None) -> int:
    with tempfile.TemporaryDirectory(prefix="bench-start-", dir=directory) as work:
        rows = measure(days, Path(work))
    show(grid(["", "figure"], [list(row) for row in rows]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
