"""Searches of metas in a chunk that keeps them as templates and variables."""

import random
from collections.abc import Iterator

import pytest
from frozen_answers import assert_finds, assert_worth_asking
from store_world import World, entry, new_world

from logd.query.match import matches
from logd.query.syntax import parse_search
from logd.store.limits import StoreLimits

COUNT = 3000
SHAPES = [
    '{"region":"%w-east-%d","user":"u%d","ms":%d}',
    '{"user":"%w %w","tags":["%w",%d,"x%d"],"http":{"code":%d,"cached":true}}',
    '{"a.b":"%w","a":{"b":"%w"},"k%d":"%w","size":%dE+%d}',
    '{"user":"%w","user":"u%d","big":-%d.%d,"none":null}',
    '{"region":"\\u0065%w","user":"a\\\\%w","ms":%d}',
    '{"k1":"%w","k%d":{"user":"%w%d"},"http":[{"code":"%w"}]}',
    '{"user":"Größe%w","region":"登录%d","ms":"%d %w"}',
    "{}",
]
WORDS = ["us", "eu", "US", "ann", "bob", "e", "true", "größe", "x"]
SEARCHES = [
    "meta.region:us", "meta.region:eu", "meta.region:e*", "meta.region:us-east-1",
    "meta.region:登录", "meta.user:ann", "meta.user:u7", "meta.user:u*", 'meta.user:"ann bob"',
    "meta.user:größe", "meta.user:a", "meta.ms:0", "meta.ms:1", "meta.ms:7", "meta.ms:0*",
    'meta.ms:"4 eu"', "meta.tags:us", "meta.tags:x1", "meta.tags:3", "meta.http.code:5",
    "meta.http.cached:true", "meta.http.code:us", "meta.a.b:us", "meta.k1:us", "meta.k3.user:bob*",
    "meta.size:3E+4", "meta.size:3e", "meta.big:2", 'meta.big:"1 2"', "meta.none:null",
    "meta.tags:19", "meta.tags:x*", "meta.big:0", "meta.big:1*", "meta.size:4", "meta.ms:19",
    "meta.http.code:1*", "meta.user:u1*", "meta.k1:0", "meta.region:1", "meta.user:bob7",
    "meta.http:7", "meta.x:x", "-meta.region:us", "meta.region:us meta.user:u1",
]  # fmt: skip


def metas() -> Iterator[bytes]:
    chance = random.Random(11)
    for _ in range(COUNT):
        text = chance.choice(SHAPES)
        while "%w" in text:
            text = text.replace("%w", chance.choice(WORDS), 1)
        while "%d" in text:
            text = text.replace("%d", str(chance.choice([0, 1, 2, 3, 4, 7, 19])), 1)
        yield text.encode()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with new_world(StoreLimits(min_free_disk_bytes=0)) as opened:
        new = [entry("m", at, meta=meta) for at, meta in enumerate(metas())]
        opened.store_entries(new)
        opened.project.freeze()
        (chunk,) = opened.project.snapshot().chunks
        assert chunk.metas_column() is not None
        yield opened


@pytest.mark.parametrize("text", SEARCHES)
def test_it_finds_what_the_metas_themselves_say(world: World, text: str) -> None:
    node = parse_search(text)
    assert node is not None
    expected = [n for n, meta in enumerate(metas()) if matches(node, "", "", (), meta)]
    assert_finds(world, text, expected)


def test_the_searches_are_worth_asking(world: World) -> None:
    assert_worth_asking(world, SEARCHES, COUNT)
