"""Questions put to a filled store: the first time, warm, and on a warm store questions that were
never asked before. Each answer is held against the oracle."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from bench.new_questions import ASKED, Kind
from bench.oracle import Answer, differences
from bench.peers.base import Peer, Reply
from bench.queries import LEVEL_COUNTS, Query
from bench.results import QueryFigures
from bench.stats import median
from bench.workloads.setting import Setting

_LEAST_REPETITIONS = 3


def ask_all(setting: Setting, queries: Sequence[Query], entries: int) -> list[QueryFigures]:
    """Every question once, in order; then every question again until its time is over."""
    peer, oracle = setting.peer, setting.oracle
    asked = [
        _Asked(peer, query, oracle.answer(entries, query)) for query in queries if peer.can(query)
    ]
    questions: list[_Asked | _AskedLevels] = [*asked, _AskedLevels(peer, oracle.levels(entries))]
    first = [question.ask() for question in questions]
    return [
        _repeated(setting, question, sum(times))
        for question, times in zip(questions, first, strict=True)
    ]


def ask_new(setting: Setting, kinds: Sequence[Kind], entries: int) -> list[QueryFigures]:
    """Questions of each kind, each asked once; the kinds in turns, so that they meet the same
    conditions. The answers are looked at when all have been asked, see `_Asked`."""
    peer = setting.peer
    possible = [kind for kind in kinds if peer.can(kind.make(0))]
    replies: dict[str, list[tuple[Query, Reply]]] = {kind.name: [] for kind in possible}
    deadline = time.monotonic() + len(possible) * setting.scope.query_s
    for turn in range(min(ASKED, setting.scope.repetitions)):
        if time.monotonic() > deadline and turn >= _LEAST_REPETITIONS:
            break
        for kind in possible:
            query = kind.make(turn)
            replies[kind.name].append((query, peer.ask(query)))
    return [_of_new(setting, name, found, entries) for name, found in replies.items()]


def _of_new(
    setting: Setting, name: str, replies: Sequence[tuple[Query, Reply]], entries: int
) -> QueryFigures:
    times = [(reply.page_s, reply.total_s) for _, reply in replies]
    wrong = [
        wrong
        for query, reply in replies
        for wrong in differences(
            query.name, setting.oracle.answer(entries, query), reply.total, reply.page
        )
    ]
    return _figures(name, sum(reply.total for _, reply in replies), sum(times[0]), times, wrong)


class _Asked:
    """A question whose every answer is held against the right one: when it has been asked for the
    last time, as a client that computes between two questions leaves the processor's caches, and
    often the processor, to others."""

    def __init__(self, peer: Peer, query: Query, expected: Answer) -> None:
        self.name = query.name
        self._peer = peer
        self._query = query
        self._expected = expected
        self._replies: list[Reply] = []

    def ask(self) -> tuple[float, float]:
        """The times of page and total."""
        reply = self._peer.ask(self._query)
        self._replies.append(reply)
        return reply.page_s, reply.total_s

    def total(self) -> int:
        """As last told."""
        return self._replies[-1].total

    def wrong(self) -> list[str]:
        return [
            wrong
            for reply in self._replies
            for wrong in differences(self.name, self._expected, reply.total, reply.page)
        ]


class _AskedLevels:
    """The same of the number of entries of each level."""

    name: Final = LEVEL_COUNTS

    def __init__(self, peer: Peer, expected: dict[str, int]) -> None:
        self._peer = peer
        self._expected = expected
        self._found: list[dict[str, int]] = []

    def ask(self) -> tuple[float, float]:
        reply = self._peer.levels()
        self._found.append({level: count for level, count in reply.counts.items() if count})
        return reply.seconds, 0.0

    def total(self) -> int:
        return sum(self._found[-1].values())

    def wrong(self) -> list[str]:
        return [
            f"levels: {found} instead of {self._expected}"
            for found in self._found
            if found != self._expected
        ]


def _repeated(setting: Setting, question: _Asked | _AskedLevels, first_s: float) -> QueryFigures:
    times = _repeat(setting, question.ask)
    return _figures(question.name, question.total(), first_s, times, question.wrong())


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
        wrong=tuple(dict.fromkeys(wrong)),  # each way to be wrong once
    )
