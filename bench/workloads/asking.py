"""Questions put to a filled store: the first time and warm, each answer held against the oracle."""

import time
from collections.abc import Callable, Sequence

from bench.oracle import Answer, differences
from bench.peers.base import Peer
from bench.queries import LEVEL_COUNTS, Query
from bench.results import QueryFigures
from bench.stats import median
from bench.workloads.setting import Setting

_LEAST_REPETITIONS = 3


def ask_all(setting: Setting, queries: Sequence[Query], entries: int) -> list[QueryFigures]:
    """Every question once, in order; then every question again until its time is over."""
    peer = setting.peer
    possible = [query for query in queries if peer.can(query)]
    first = {query.name: _seconds(peer, query) for query in possible}
    first_levels = peer.levels().seconds
    figures = [
        _ask(setting, query, sum(first[query.name]), setting.oracle.answer(entries, query))
        for query in possible
    ]
    figures.append(_ask_levels(setting, first_levels, setting.oracle.levels(entries)))
    return figures


def _seconds(peer: Peer, query: Query) -> tuple[float, float]:
    reply = peer.ask(query)
    return reply.page_s, reply.total_s


def _ask(setting: Setting, query: Query, first_s: float, expected: Answer) -> QueryFigures:
    reply = setting.peer.ask(query)
    wrong = differences(query.name, expected, reply.total, reply.page)
    times = _repeat(setting, lambda: _seconds(setting.peer, query))
    return _figures(query.name, reply.total, first_s, times, wrong)


def _ask_levels(setting: Setting, first_s: float, expected: dict[str, int]) -> QueryFigures:
    counts = setting.peer.levels().counts
    found = {level: count for level, count in counts.items() if count}
    wrong = [] if found == expected else [f"levels: {found} instead of {expected}"]
    times = _repeat(setting, lambda: (setting.peer.levels().seconds, 0.0))
    return _figures(LEVEL_COUNTS, sum(found.values()), first_s, times, wrong)


def _repeat(setting: Setting, ask: Callable[[], tuple[float, float]]) -> list[tuple[float, float]]:
    """Warm repetitions: as many as the scope wants, fewer when they take too long."""
    scope, times = setting.scope, [ask()]
    deadline = time.monotonic() + scope.query_s
    while len(times) < scope.repetitions:
        if time.monotonic() > deadline and len(times) >= _LEAST_REPETITIONS:
            break
        times.append(ask())
    return times


def _figures(
    name: str, total: int, first_s: float, times: list[tuple[float, float]], wrong: list[str]
) -> QueryFigures:
    both = [page + total_s for page, total_s in times]
    return QueryFigures(
        name=name,
        total=total,
        first_ms=first_s * 1e3,
        page_ms=median([page for page, _ in times]) * 1e3,
        total_ms=median([total_s for _, total_s in times]) * 1e3,
        low_ms=min(both) * 1e3,
        high_ms=max(both) * 1e3,
        repetitions=len(times),
        wrong=tuple(wrong),
    )
