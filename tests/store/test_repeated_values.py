"""Words and addresses that a chunk keeps in dictionaries: whatever a search asks for, what the
entries say decides."""

import random
from collections.abc import Iterator

import pytest
from frozen_answers import assert_finds, assert_finds_what_is_said, assert_worth_asking
from store_world import World, entry, new_world

from logd.format.part_table import Part
from logd.query.match import matches
from logd.query.syntax import parse_search
from logd.store.check import check_store
from logd.store.layout import DataLayout
from logd.store.limits import StoreLimits

COUNT = 3000
BLOCK = 512
ODD_BLOCK = 2
"""In it one address is none, so it keeps them all."""

SEARCHES = [
    "user00012", "user0001*", "user00012 login", '"user00012 from"', '"from 10.0.0.7"', "10.0.0.7",
    '"10.0.0.7"', '"0.0.7"', "7", "10", "255", "25*", '"10.0"', '"7 port"', '"0.7 port 22"',
    "USER00012", "user00012 -10.0.0.7", "user00012 OR user00013", "*r00012", "*0001*", "300",
    '"10.0.0.300"', "user00012x", "0012", '"user00012 from 10.0.0.7"', "port", "22", "n77",
]  # fmt: skip
META_SEARCHES = [
    "meta.user:user00012", "meta.user:user0001*", "meta.peer:10.0.0.7", 'meta.peer:"0.0.7"',
    "meta.user:USER00012", "meta.user:user00012 login", "meta.peer:7", "meta.ms:7", "meta.user:7",
]  # fmt: skip


def rows() -> Iterator[tuple[str, bytes]]:
    """(message, meta) of each entry."""
    chance = random.Random(5)
    for row in range(COUNT):
        user = f"user{int(400 * chance.random() ** 2):05d}"
        address = f"10.{row % 2}.0.{chance.randrange(256)}"
        if row == ODD_BLOCK * BLOCK + 3:
            address = "10.0.0.300"
        form = chance.randrange(3)
        message = (
            f"login {user} from {address} port 22",
            f"{address} said n{row % 100}",
            f"{user} asked {address} for {address}, 1.{row % 7}.0",
        )[form]
        yield message, f'{{"user":"{user}","peer":"{address}","ms":{row % 50}}}'.encode()


def messages() -> list[str]:
    return [message for message, _ in rows()]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    limits = StoreLimits(min_free_disk_bytes=0, block_entries=BLOCK)
    with new_world(limits) as opened:
        some = list(rows())
        for begin in range(0, COUNT, 1000):  # chunks that are merged into one
            new = [
                entry(message, begin + at, meta=meta)
                for at, (message, meta) in enumerate(some[begin : begin + 1000])
            ]
            opened.store_entries(new)
        opened.project.freeze()
        (chunk,) = opened.project.snapshot().chunks
        parts = {Part(kind) for kind, _ in chunk.head().parts}
        assert {Part.VALUES, Part.VALUE_CODES, Part.META_VALUES, Part.META_VALUE_CODES} <= parts
        yield opened


@pytest.mark.parametrize("text", SEARCHES)
def test_it_finds_what_the_messages_themselves_say(world: World, text: str) -> None:
    assert_finds_what_is_said(world, text, messages())


@pytest.mark.parametrize("text", META_SEARCHES)
def test_it_finds_what_the_metas_themselves_say(world: World, text: str) -> None:
    node = parse_search(text)
    assert node is not None
    expected = [n for n, (said, meta) in enumerate(rows()) if matches(node, said, "test", (), meta)]
    assert_finds(world, text, expected)


def test_all_entries_come_back(world: World) -> None:
    found = sorted(world.entries(), key=lambda one: one.seq)
    assert [(one.message, one.meta) for one in found] == list(rows())


def test_the_index_can_be_made_anew(world: World) -> None:
    """From the columns: it is the same to the byte."""
    world.close()
    report = check_store(world.files, DataLayout(world.root), [world.project_id])
    world.open()
    assert report.problems == ()
    assert report.chunks == 1


def test_the_searches_are_worth_asking(world: World) -> None:
    assert_worth_asking(world, [*SEARCHES, *META_SEARCHES], COUNT)
