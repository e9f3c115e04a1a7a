"""What long phrases and long texts cost: work that grows with their size, and no faster.

No test measures time. Their sizes are such that work which grows faster would not end.
"""

import contextlib
import gc
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

import msgspec
import pytest
from store_world import World, ask, ask_memory, entry, new_world

from logd.format.postings import Postings
from logd.query.ast import Filter, Term, Word
from logd.query.syntax import MAX_WORDS, parse_search
from logd.store.chunk_index import ChunkIndex
from logd.store.chunk_scans import ScanHere
from logd.store.limits import StoreLimits
from logd.store.phrases import find_phrase
from logd.store.search import search

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


# ---------------------------------------------------------------- how often a search may be stopped


class Checks:
    """Counts how often a search asks whether it should go on."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def checks_of(world: World, text: str, total: int) -> int:
    """How often this search asks, which finds so many."""
    checks = Checks()
    filter_, scanner = Filter(search=parse_search(text)), ScanHere()
    snapshot = world.project.snapshot()
    found = search(snapshot, filter_, 10, None, with_total=True, scanner=scanner, check=checks)
    assert found.total == total
    return checks.count


def letters(number: int) -> str:
    """A word without a digit, another for each number."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def test_each_word_of_a_long_phrase_is_a_step() -> None:
    with new_world(LIMITS) as world:
        world.store_entries([entry("0 " * 300 + f"x{number}") for number in range(50)])
        world.project.freeze()
        assert checks_of(world, f'"{"0 " * MAX_WORDS}"', 50) > MAX_WORDS


@pytest.mark.parametrize(("words", "bytes_a_step"), [(2, 64 << 10), (MAX_WORDS, 8 << 10)])
def test_long_templates_are_gone_through_a_few_at_a_time(words: int, bytes_a_step: int) -> None:
    with new_world(LIMITS) as world:
        texts = ["a " * 4080 + letters(number) for number in range(200)]
        world.store_entries([entry(text) for text in texts])
        world.project.freeze()
        total = sum(map(len, texts))
        assert checks_of(world, f'message:"{"a " * words}"', 200) > total // bytes_a_step


def test_in_the_tail_each_row_is_a_step_of_a_long_phrase() -> None:
    with new_world(LIMITS) as world:
        world.store_entries([entry("é " * 300 + letters(number)) for number in range(200)])
        assert checks_of(world, f'message:"{"é " * 200}"', 200) > 200


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("field", ["source", "tag", "meta.k"])
def test_so_is_each_text_of_other_fields(field: str, is_frozen: bool) -> None:
    with new_world(LIMITS) as world:
        texts = ["é " * 60 + letters(number) for number in range(200)]
        metas = [msgspec.json.encode({"k": text}) for text in texts]
        world.store_entries(
            [
                entry("x", source=text, tags=[text], meta=meta)
                for text, meta in zip(texts, metas, strict=True)
            ]
        )
        if is_frozen:
            world.project.freeze()
        assert checks_of(world, f'{field}:"{"é " * 60}"', 200) > 200


@pytest.mark.parametrize(
    ("words", "of_words", "least", "most"),
    [
        (lambda n: [f"é{n}é{k}" for k in range(5)], "é", 100, 300),
        (lambda n: [f"{n}" + "é" * 400], "é", 0, 100),
        (lambda n: [f"{n % 3000}é"], "é", 30, 60),
    ],
    ids=["many words", "many times in a word", "words that come again"],
)
def test_each_of_many_words_with_a_part_is_a_step(
    words: Callable[[int], list[str]], of_words: str, least: int, most: int
) -> None:
    with new_world(LIMITS) as world:
        world.store_entries([entry(" ".join(words(n))) for n in range(4000)])
        world.project.freeze()
        assert least < checks_of(world, f"message:{of_words}", 4000) < most


# ---------------------------------------------------------------- what is remembered


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("scope", ["", "meta.k:"])
def test_what_is_remembered_of_a_search_does_not_hold_on_to_its_words(
    scope: str, is_frozen: bool
) -> None:
    """They count in no budget. The same search is answered from memory nevertheless."""
    words = " ".join(map(letters, range(1000, 1000 + MAX_WORDS)))
    filter_ = Filter(search=parse_search(f'{scope}"{words}"'))
    with new_world(LIMITS) as world:
        meta = msgspec.json.encode({"k": words})
        world.store_entries([entry(f"{words} end", n, meta=meta) for n in range(50)])
        if is_frozen:
            world.project.freeze()
        before = sys.getrefcount(filter_.search)
        found = ask(world.project.snapshot(), filter_, 10)
        assert found.total == 50
        gc.collect()
        after = sys.getrefcount(filter_.search)  # within an assertion pytest has one, too
        assert after == before
        assert ask_memory(world.project.snapshot(), filter_, 10) == found


# ---------------------------------------------------------------- look-ups


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The words with digits that a chunk's index was asked for."""
    asked: list[bytes] = []
    find = ChunkIndex.find_variable

    def noting(index: ChunkIndex, word: bytes) -> Postings | None:
        asked.append(word)
        return find(index, word)

    monkeypatch.setattr(ChunkIndex, "find_variable", noting)
    return asked


def test_a_repeated_word_is_looked_up_once(looked_up: list[bytes]) -> None:
    with new_world(LIMITS) as world:
        world.store_entries([entry("0 1 " * 300)])
        world.project.freeze()
        assert ask(world.project.snapshot(), f'"{"0 1 " * 100}"').total == 1
        assert looked_up == [b"0", b"1"]


def test_words_that_no_row_holds_together_need_no_third(looked_up: list[bytes]) -> None:
    with new_world(LIMITS) as world:
        world.store_entries([entry(f"item {number}") for number in range(100)])
        world.project.freeze()
        asked = " ".join(map(str, range(100)))
        assert ask(world.project.snapshot(), f'"{asked}"').total == 0
        assert looked_up == [b"0", b"1"]
