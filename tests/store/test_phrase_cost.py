"""What long phrases and long texts cost: work that grows with their size, and no faster.

No test measures time. Their sizes are such that work which grows faster would not end.
"""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

import pytest
from store_world import ask, entry, new_world

from logd.query.ast import Term, Word
from logd.query.syntax import parse_search
from logd.store.limits import StoreLimits
from logd.store.phrases import find_phrase

GUARD_SECONDS = 60
LIMITS = StoreLimits(min_free_disk_bytes=0)


@contextlib.contextmanager
def an_end() -> Iterator[None]:
    """Fails what would go on for ever, within `re` as well."""

    def fail(_number: int, _frame: FrameType | None) -> NoReturn:
        raise AssertionError("it does not end")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(GUARD_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def phrase(text: str) -> tuple[Word, ...]:
    term = parse_search(f'"{text}"')
    assert isinstance(term, Term)
    return term.words


@pytest.mark.parametrize(
    ("asked", "template", "count"),
    [
        ("═ " * 61, "══ " * 60 + "end", 0),
        ("═ " * 60, "══ " * 60 + "end", 1),
        ("a " + "é " * 60, "a " + "éééé " * 59 + "end", 0),
        ("é é é é", f"{'é' * 100_000} " * 3 + "end", 0),
        ("é é", "é" * 500_000, 0),
        ("é end", "é" * 500_000 + " end", 1),
    ],
    ids=["too few", "enough", "behind an exact word", "long words", "one word", "its last word"],
)
def test_a_part_is_looked_for_once_in_a_word(asked: str, template: str, count: int) -> None:
    with an_end():
        found = find_phrase(phrase(asked), template.encode())
    assert (len(found.whole), len(found.gaps)) == (count, 0)


def test_rows_of_signs_are_searched_for_rows_of_signs() -> None:
    with new_world(LIMITS) as world, an_end():
        world.store_entries([entry("══ " * 60 + "end"), entry("other")])
        world.project.freeze()
        snapshot = world.project.snapshot()
        assert ask(snapshot, f'"{"═ " * 61}"').total == 0
        assert ask(snapshot, f'"{"═ " * 60}"').total == 1
