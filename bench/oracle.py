"""The right answers, worked out while the corpus is written: what every peer is held against."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bench.corpus import Line
from bench.queries import PAGE, Query

Hit = tuple[int, str]
"""An entry on a page: its time in milliseconds (no two entries share one) and its message."""


@dataclass(frozen=True)
class Answer:
    """`page`: the newest entries, newest first. `total`: all entries that match."""

    total: int
    page: tuple[Hit, ...]


@dataclass
class _Question:
    query: Query
    matches: Callable[[Line], bool]
    total: int = 0
    newest: list[Hit] = field(default_factory=list)

    def see(self, lines: Sequence[Line]) -> None:
        matches = self.matches
        hits = [(line.ts_ms, line.message) for line in lines if matches(line)]
        if hits:
            self.total += len(hits)
            self.newest = sorted(self.newest + hits, reverse=True)[:PAGE]


class Oracle:
    """Judges every block of a corpus; `checkpoints` are the entry counts at which the answers so
    far are kept."""

    def __init__(self, queries: Iterable[Query], checkpoints: Iterable[int]) -> None:
        unique = {query: None for query in queries}
        self._questions = [_Question(query, predicate(query)) for query in unique]
        self._checkpoints = frozenset(checkpoints)
        self._seen = 0
        self._levels: Counter[str] = Counter()
        self._answers: dict[tuple[int, Query], Answer] = {}
        self._level_answers: dict[int, dict[str, int]] = {}

    def see(self, lines: Sequence[Line]) -> None:
        for question in self._questions:
            question.see(lines)
        self._levels.update([line.level for line in lines])
        self._seen += len(lines)
        if self._seen in self._checkpoints:
            self._level_answers[self._seen] = dict(self._levels)
            for question in self._questions:
                answer = Answer(question.total, tuple(question.newest))
                self._answers[self._seen, question.query] = answer

    def answer(self, entries: int, query: Query) -> Answer:
        """The answer over the first `entries` entries; KeyError when that is no checkpoint."""
        return self._answers[entries, query]

    def levels(self, entries: int) -> dict[str, int]:
        return self._level_answers[entries]


def predicate(query: Query) -> Callable[[Line], bool]:
    """One function for all conditions of the query."""
    parts = list(_conditions(query))
    if not parts:
        return lambda line: True
    if len(parts) == 1:
        return parts[0]
    return lambda line: all(part(line) for part in parts)


def _conditions(query: Query) -> Iterable[Callable[[Line], bool]]:
    if query.level is not None:
        level = query.level
        yield lambda line: line.level == level
    if query.user_id is not None:
        user_id = query.user_id
        yield lambda line: line.user_id == user_id
    if query.from_ms is not None and query.to_ms is not None:
        start, end = query.from_ms, query.to_ms
        yield lambda line: start <= line.ts_ms < end
    for word in query.words:
        yield _text(word, rf"(?<!\w){re.escape(word)}(?!\w)")
    if query.phrase is not None:
        words = query.phrase.split()
        yield _text(words[0], r"(?<!\w)" + r"\W+".join(map(re.escape, words)) + r"(?!\w)")
    if query.prefix is not None:
        yield _text(query.prefix, rf"(?<!\w){re.escape(query.prefix)}")
    if query.substring is not None:
        yield _text(query.substring, re.escape(query.substring))


def _text(contained: str, pattern: str) -> Callable[[Line], bool]:
    """The regular expression, tried only on messages that contain the plain text."""
    search = re.compile(pattern).search
    return lambda line: contained in line.message and search(line.message) is not None


def differences(name: str, expected: Answer, total: int, page: Sequence[Hit]) -> list[str]:
    """What is wrong with a peer's answer; empty when nothing is."""
    wrong = []
    if total != expected.total:
        wrong.append(f"{name}: total {total:,} instead of {expected.total:,}")
    if sorted(page) != sorted(expected.page):
        strays = len(set(page) ^ set(expected.page))
        wrong.append(f"{name}: the page differs in {strays} entries")
    return wrong
