"""Phrases, words and prefixes that variables decide, in a frozen chunk, against the texts."""

import itertools
import random
from collections.abc import Iterator

import pytest
from frozen_answers import assert_finds_what_is_said, assert_worth_asking
from store_world import World, entry, new_world

from logd.store.limits import StoreLimits

COUNT = 9000
"""Two blocks and a bit."""

SHAPES = [
    "status %d for %w", "%w status=%d, %d ms", "%d.%d.%d.%d - %w", "id %x%x of %w%d", "%w %w %w",
    "Größe%d %w 登录%d", "STATUS %d Für7 %X%d", "%d%w %d", "a %d b %d a %d",
]  # fmt: skip
WORDS = ["status", "Status", "us", "user", "größe", "Größe", "e", "status_", "us7"]
NUMBERS = [*[str(n) for n in range(12)], "502", "502", "502", "5021", "0", "07", "7f", "7F3a9"]
SEARCHES = [
    '"status 502"', '"status 502 for"', '"502 for status"', '"status 0"', '"status 99"',
    "10.0.0.1", "0.0", '"0 0 0 0"', '"7f 7f"', '"status 5*"', '"status f*"', '"id 7*"', '"0 us*"',
    '"größe7 us"', '"Größe 502"', '"us 登录"', '"größe 登录"', '"7 e"', '"a 502 b 502 a"',
    '"b 502 a 0"', '"5021 ms"', '"für7 7f3a9502"', "7f*", "7*", "50*", "5021", "7F3A9*", "u*",
    "us7", "502 status", '-"status 502"', '"status 502" OR "status 0"', "登录5", "größe0", "0*",
    "message:502", '"us 502 7"', "7f3a9502*", "a9*",
]  # fmt: skip


def messages() -> Iterator[str]:
    chance = random.Random(29)
    for number in range(COUNT):
        shape = chance.choice(SHAPES if number % 500 else ["one %d rare%d in %w"])
        while "%" in shape:
            at = shape.index("%")
            kind = shape[at + 1]
            word = chance.choice(WORDS) if kind == "w" else chance.choice(NUMBERS)
            shape = shape[:at] + (word.upper() if kind == "X" else word) + shape[at + 2 :]
        yield shape


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with new_world(StoreLimits(min_free_disk_bytes=0)) as opened:
        opened.store_entries([entry(text, at) for at, text in enumerate(messages())])
        opened.project.freeze()
        (chunk,) = opened.project.snapshot().chunks
        assert chunk.blocks() == 3
        yield opened


@pytest.mark.parametrize("text", [*SEARCHES, "rare7f", '"one 502"', '"rare0 in"', "rare502*"])
def test_it_finds_what_the_messages_themselves_say(world: World, text: str) -> None:
    assert_finds_what_is_said(world, text, messages())


def test_a_part_of_a_word_is_not_found_across_words() -> None:
    """Variables stand one behind the other, in the order of rows: all of a few letters."""
    texts = ["".join(some) for size in range(1, 6) for some in itertools.product("é7", repeat=size)]
    said = [text for text in texts if "7" in text]
    random.Random(5).shuffle(said)
    with new_world(StoreLimits(min_free_disk_bytes=0)) as opened:
        opened.store_entries([entry(text) for text in said])
        opened.project.freeze()
        for text in texts:
            if "é" in text:
                assert_finds_what_is_said(opened, text, said)


def test_the_searches_are_worth_asking(world: World) -> None:
    assert_worth_asking(world, SEARCHES, COUNT)
