"""Single figures read out of a peer's run, and the targets that some of them have."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.new_questions import KINDS
from bench.queries import LEVEL_COUNTS, queries
from bench.results import IngestFigures, PeerRun, QueryFigures, Results
from bench.stats import median, ratio

OURS: Final = "logd"
REFERENCE: Final = "victorialogs"
"""The peer that targets of the form "so many times as good" refer to."""

_MB = 1e6


@dataclass(frozen=True)
class Figure:
    """One number of a run. `read` gives None where the run does not have it."""

    title: str
    unit: str
    read: Callable[[PeerRun], float | None]
    higher_is_better: bool = False

    def values(self, results: Results, peer: str) -> list[float]:
        """One value a run, in order."""
        found = [self.read(run) for run in results.of(peer)]
        return [value for value in found if value is not None]


@dataclass(frozen=True)
class Target:
    """What logd must reach: `factor` times the reference where that was measured in the same
    benchmark, else a `limit` in the figure's unit. `limited_by`: what holds it back, said where it
    is missed. `in_every_run`: one run that misses it is a miss."""

    figure: Figure
    limited_by: str
    limit: float | None = None
    factor: float | None = None
    in_every_run: bool = False

    def wanted(self, results: Results) -> float | None:
        """In the figure's unit. None: it refers to a peer that was not measured."""
        theirs = self.figure.values(results, REFERENCE)
        if self.factor is not None and theirs:
            return median(theirs) * self.factor
        return self.limit

    def wording(self, results: Results) -> str:
        sign = "≥" if self.figure.higher_is_better else "≤"
        if self.factor is not None and self.figure.values(results, REFERENCE):
            return f"{sign} {self.factor:g}x"
        return f"{sign} {self.limit:g} {self.figure.unit}".rstrip()

    def score(self, results: Results) -> float | None:
        """How many times the target is met: 1 is just met, below is a miss. None: no figures, or
        a reference that did nothing."""
        ours, wanted = self.figure.values(results, OURS), self.wanted(results)
        if not ours or wanted is None:
            return None
        better = self.figure.higher_is_better
        counts = (min(ours) if better else max(ours)) if self.in_every_run else median(ours)
        if better:
            return counts / wanted if wanted else None
        return (wanted + 1e-9) / (counts + 1e-9)


def advantage(figure: Figure, results: Results, over: str) -> tuple[float, float, float] | None:
    """How many times better we are than a peer: of the medians, at worst, and at best."""
    ours, theirs = figure.values(results, OURS), figure.values(results, over)
    if not ours or not theirs or min(*ours, *theirs) <= 0:
        return None
    return ratio(ours, theirs) if figure.higher_is_better else ratio(theirs, ours)


def _load(run: PeerRun, batch: int, connections: int) -> IngestFigures | None:
    for load in run.ingest:
        if (load.batch, load.connections) == (batch, connections):
            return load
    return None


def _query(run: PeerRun, name: str) -> QueryFigures | None:
    return _named(run.queries, name)


def _named(figures: Sequence[QueryFigures], name: str) -> QueryFigures | None:
    return next((query for query in figures if query.name == name), None)


def rate(batch: int, connections: int) -> Figure:
    def read(run: PeerRun) -> float | None:
        load = _load(run, batch, connections)
        return load.entries_per_s if load else None

    return Figure(
        f"ingest, batch {batch:,}, {connections} conn.", "entries/s", read, higher_is_better=True
    )


def indexed_cpu() -> Figure:
    def read(run: PeerRun) -> float | None:
        load = _load(run, 1_000, 1)
        return load.indexed_cpu_us if load else None

    return Figure("CPU an entry, ingested and indexed", "us", read)


def page(name: str, title: str) -> Figure:
    def read(run: PeerRun) -> float | None:
        query = _query(run, name)
        return query.page_ms if query else None

    return Figure(title, "ms", read)


def both(name: str, title: str) -> Figure:
    def read(run: PeerRun) -> float | None:
        query = _query(run, name)
        return query.both_ms if query else None

    return Figure(f"{title}, with total", "ms", read)


def new(name: str, title: str) -> Figure:
    def read(run: PeerRun) -> float | None:
        query = _named(run.new_queries, name)
        return query.both_ms if query else None

    return Figure(f"{title}, with total", "ms", read)


def first(name: str, title: str) -> Figure:
    def read(run: PeerRun) -> float | None:
        query = _query(run, name)
        return query.first_ms if query else None

    return Figure(f"{title}, the first time", "ms", read)


def grown(name: str, title: str, *, is_first: bool) -> Figure:
    """When the store was largest."""

    def read(run: PeerRun) -> float | None:
        query = _named(run.scale[-1].queries, name) if run.scale else None
        if query is None:
            return None
        return query.first_ms if is_first else query.both_ms

    return Figure(f"{title}, {'the first time' if is_first else 'again'}", "ms", read)


def _disk(run: PeerRun) -> float | None:
    return run.store.disk_bytes_per_entry if run.store else None


def _idle(run: PeerRun) -> float | None:
    return run.store.idle_rss / _MB if run.store and run.store.idle_rss else None


def _filled(run: PeerRun) -> float | None:
    return run.store.filled_rss / _MB if run.store and run.store.filled_rss else None


def _lost(run: PeerRun) -> float | None:
    return float(sum(crash.lost for crash in run.crashes)) if run.crashes else None


def _ready(run: PeerRun) -> float | None:
    return run.restart.ready_s if run.restart else None


def _at_rest(run: PeerRun) -> float | None:
    return run.restart.rss / _MB if run.restart and run.restart.rss else None


def replay(batch: int) -> Figure:
    def read(run: PeerRun) -> float | None:
        found = [figures for figures in run.recovery if figures.batch == batch]
        return found[0].replayed_per_s if found and found[0].entries else None

    title = f"replay after SIGKILL, batch {batch:,}"
    return Figure(title, "entries/s", read, higher_is_better=True)


def _killed(run: PeerRun) -> float | None:
    return max((figures.ready_s for figures in run.recovery), default=None)


def _empty(run: PeerRun) -> float | None:
    return min((figures.empty_ready_s for figures in run.recovery), default=None)


def _beside_p99(run: PeerRun) -> float | None:
    return run.mixed.beside_p99_ms if run.mixed else None


def _growth(run: PeerRun) -> float | None:
    mixed = run.mixed
    return mixed.beside_p99_ms / mixed.alone_p99_ms if mixed and mixed.alone_p99_ms else None


LOADS: Final = tuple(
    rate(batch, connections) for batch in (1_000, 1) for connections in (1, 2, 8, 64)
)
_TITLES: Final = {
    LEVEL_COUNTS: "count by level",
    **{query.name: query.title for query in queries(1_000)},
}
QUESTIONS: Final = (
    page(LEVEL_COUNTS, "count by level"),
    *(both(query.name, query.title) for query in queries(1_000)),
)
FIRST_QUESTIONS: Final = tuple(first(name, title) for name, title in _TITLES.items())
GROWN_QUESTIONS: Final = tuple(
    grown(name, title, is_first=is_first)
    for is_first in (True, False)
    for name, title in _TITLES.items()
)
NEW_QUESTIONS: Final = tuple(new(kind.name, kind.title) for kind in KINDS)
DISK: Final = Figure("disk, data and index", "bytes/entry", _disk)
IDLE: Final = Figure("memory just started (RSS)", "MB", _idle)
FILLED: Final = Figure("memory after ingest (RSS)", "MB", _filled)
LOST: Final = Figure("acknowledged and lost by SIGKILL", "", _lost)
AT_REST: Final = Figure("memory at rest after a restart (RSS)", "MB", _at_rest)
READY: Final = Figure("clean start on a full store", "s", _ready)
EMPTY: Final = Figure("start on an empty directory", "s", _empty)
KILLED: Final = Figure("start after SIGKILL, full tail", "s", _killed)
BESIDE: Final = Figure("p99 of a write beside a heavy query", "ms", _beside_p99)
GROWTH: Final = Figure("p99 of a write beside a heavy query, of that alone", "x", _growth)
FOOTPRINT: Final = (
    indexed_cpu(),
    DISK,
    IDLE,
    AT_REST,
    FILLED,
    EMPTY,
    READY,
    KILLED,
    replay(1_000),
    replay(1),
    BESIDE,
    GROWTH,
)

_BATCHES: Final = "the build of chunks takes most of a core, the loop and the WAL thread another"
_FIRST_LOOK: Final = (
    "each row found needs its block of variables and of metas, and of each chunk the dictionaries"
)
_COLD: Final = (
    "what is decoded of a chunk for the first time takes a thousand steps of Python a row"
)
_ANSWERING: Final = "one request: HTTP, the look for the key, and the JSON of the page, in Python"

TARGETS: Final = (
    Target(rate(1_000, 1), _BATCHES, factor=1.25),
    Target(rate(1_000, 2), _BATCHES, factor=1.25),
    Target(indexed_cpu(), "templates, dictionaries, postings: see bench.steps", factor=0.75),
    Target(rate(1, 8), "Python and system calls of each request", factor=1.5),
    Target(page("newest", "newest 100"), _ANSWERING, limit=1.0),
    Target(page("newest_error", "newest 100 ERROR"), _ANSWERING, limit=1.0),
    Target(page(LEVEL_COUNTS, "count by level"), _ANSWERING, limit=0.5),
    Target(both("rare_word", "rare word"), _ANSWERING, limit=2.0),
    Target(both("rare_id", "rare hex id"), _ANSWERING, limit=2.0),
    Target(both("two_words", "two common words ANDed"), _ANSWERING, limit=2.0),
    Target(both("phrase", 'phrase "authentication failure"'), _ANSWERING, limit=3.0),
    Target(both("minute", "one minute of time"), _ANSWERING, limit=1.5),
    Target(page("absent", "word that occurs nowhere"), _ANSWERING, limit=1.0),
    Target(new("new_word", "new rare word"), _FIRST_LOOK, limit=2.0),
    Target(new("new_id", "new rare hex id"), _FIRST_LOOK, limit=5.0),
    *(
        Target(first(name, _TITLES[name]), _COLD, factor=1.0)
        for name in (
            *("newest", "newest_error", LEVEL_COUNTS, "rare_word", "rare_id", "two_words"),
            *("phrase", "minute", "absent"),
        )
    ),
    Target(DISK, "numbers and ids that are random: they are most of it", limit=26.0, factor=0.88),
    Target(FILLED, "two processes, each with numpy; one chunk while it is built", limit=200.0),
    Target(IDLE, "Python's modules", limit=60.0),
    Target(AT_REST, "Python's modules, and what is read ahead", limit=60.0),
    Target(READY, "the import of Python's modules", limit=0.5),
    Target(replay(1_000), "the log is read, written anew and synced", limit=500_000.0),
    Target(GROWTH, "two cores for the writers, the client and the question", limit=2.0),
    Target(LOST, "that is a fault, not a limit", limit=0.0, in_every_run=True),
)
