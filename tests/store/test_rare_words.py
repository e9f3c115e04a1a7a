"""Words with digits that stand in a few entries of a chunk: the index names blocks in which they
may be, and what the messages say decides."""

import random
from collections.abc import Iterator

import pytest
from frozen_answers import assert_finds, assert_finds_what_is_said, assert_worth_asking
from store_world import World, entry, new_world

from logd.format.postings import RARE, CandidateBlocks, PostingsIndex
from logd.format.word_hashes import hash_word
from logd.store.chunk_index import rebuild_postings
from logd.store.limits import StoreLimits

COUNT = 3000
BLOCK = 256
LAST = COUNT - 1

NEIGHBOURS = {20: "pair zzzz9081", 21: "pair 7263zzzz"}
"""Side by side where the block keeps them: their end and beginning are a rare word, which is
neither of them."""

OFTEN = "abc123"
"""Stands within other variables more often than it is looked for one by one."""

TWINS = {"twin459": "twin3489", "twin602": "twin6037", "twin3903": "twin5289"}
"""Words that are there, and others of the same hash, that are not."""

RARE_ONES = {
    "7f3a9c41d2e8b605": [0],
    "7f3a9c41d2e8b6051": [1],  # begins with the one before
    "x7f3a9c41d2e8b605": [2],
    "90817263": [30, BLOCK - 1],  # at the edges of blocks and of the chunk
    "90817264": [BLOCK],
    "90817265": [LAST],
    "4e5d": [5, BLOCK + 5],  # too short to be looked for as it stands
    "once7twice7": [700, 700],  # twice in one message
    "fewer0": [40 * n for n in range(RARE - 1)],
    "rare0": [300 * n + 7 for n in range(RARE)],
    "listed0": [300 * n + 7 for n in range(RARE + 1)],
    "together0": [2 * BLOCK + n for n in range(RARE)],  # one block for all
    "ABCDEF0123": [900],
    "mixed123": [1200, 1201],
    "MIXED123": [1202],  # the same word, in one block
    "again55": [1300, 1301, 1301],
    "größe77": [901, 1901],
    OFTEN: [10, 2010],
    "twin459": [44],
    "twin602": [300 * n + 9 for n in range(RARE)],
    "twin3903": [300 * n + 10 for n in range(RARE + 1)],
}
SEARCHES = [
    *RARE_ONES, "abcdef0123", "AbCdEf0123", "7F3A9C41D2E8B605", "7f3a9c41d2e8b60",
    "f3a9c41d2e8b605", "once7 twice7", '"rare0 listed0"', '"listed0 rare0"', "rare0 listed0",
    "rare0 OR fewer0", "-rare0", "rare0 -listed0", '"id 7f3a9c41d2e8b605"',
    '"7f3a9c41d2e8b605 end"', '"id 90817264 end"', "90817264 OR 90817265",
    '"once7twice7 once7twice7"', "x" + OFTEN, "message:rare0", "source:rare0", "rare0 fewer0",
    '"größe77 end"', "rare00", "bc123", "together0", "Mixed123", "Twin459 OR twin3489",
    "twin602 twin6037", "twin602 -twin6037", '"twin602 end"', '"twin6037 end"', *TWINS.values(),
]  # fmt: skip


def messages() -> list[str]:
    chance = random.Random(31)
    words: list[list[str]] = [["id"] for _ in range(COUNT)]
    for word, rows in RARE_ONES.items():
        for row in rows:
            words[row].append(word)
    for row, said in enumerate(words):
        said += ["end", f"x{OFTEN}", f"n{chance.randrange(50)}"][: chance.randrange(4)]
        if row % 3 == 0:
            said.append(f"{chance.getrandbits(40):010x}")
    return [NEIGHBOURS.get(row) or " ".join(said) for row, said in enumerate(words)]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    limits = StoreLimits(min_free_disk_bytes=0, block_entries=BLOCK)
    with new_world(limits) as opened:
        opened.store_entries([entry(text, at) for at, text in enumerate(messages())])
        opened.project.freeze()
        (chunk,) = opened.project.snapshot().chunks
        assert chunk.blocks() == -(-COUNT // BLOCK)
        yield opened


@pytest.mark.parametrize("text", SEARCHES)
def test_it_finds_what_the_messages_themselves_say(world: World, text: str) -> None:
    assert_finds_what_is_said(world, text, messages())


def test_every_word_that_is_there_is_found(world: World) -> None:
    rows: dict[str, list[int]] = {}
    for row, said in enumerate(messages()):
        for word in dict.fromkeys(said.split()):
            rows.setdefault(word, []).append(row)
    for word in [word for word in rows if len(rows[word]) <= RARE][:200]:
        assert_finds(world, word, rows[word])


def absent_words(world: World) -> list[str]:
    """In no message, but of the shortened hash of a word that is in some."""
    (chunk,) = world.project.snapshot().chunks
    index = PostingsIndex(rebuild_postings(chunk))
    some = [f"gone{number}x" for number in range(1000)]
    return [word for word in some if isinstance(index.find(word.encode()), CandidateBlocks)]


def test_an_absent_word_that_shares_what_is_kept_of_a_hash_is_found_nowhere(world: World) -> None:
    absent = absent_words(world)
    assert len(absent) > 20
    for word in absent:
        assert_finds(world, word, [])
        assert_finds(world, word.upper(), [])
        assert_finds(world, f'"{word} end"', [])
        assert_finds(world, f"id {word}", [])
        assert_finds(world, f"rare0 -{word}", RARE_ONES["rare0"])
        assert_finds(world, f"{word} OR together0", RARE_ONES["together0"])


def test_an_absent_word_that_shares_a_whole_hash_is_found_nowhere(world: World) -> None:
    for there, absent in TWINS.items():
        assert hash_word(there.encode()) == hash_word(absent.encode())
        assert_finds(world, there, RARE_ONES[there])
        assert_finds(world, absent, [])
        assert_finds(world, f"{there} -{absent}", RARE_ONES[there])


def test_the_searches_are_worth_asking(world: World) -> None:
    assert_worth_asking(world, SEARCHES, COUNT)
