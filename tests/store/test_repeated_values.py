"""Words and addresses that a chunk keeps in dictionaries: whatever a search asks for, what the
entries say decides."""

import contextlib
import errno
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from frozen_answers import assert_finds, assert_finds_what_is_said, assert_worth_asking
from store_world import World, entry, new_world

from logd.errors import Unreadable
from logd.format.part_table import Part
from logd.query.ast import Term
from logd.query.match import matches
from logd.query.syntax import parse_search
from logd.store.cache import PartCache
from logd.store.check import check_store
from logd.store.chunk_reader import ChunkReader
from logd.store.chunk_scans import MetaScan, scan_chunk
from logd.store.files import OsFiles
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
    "meta.by:user00012", "meta.note:user00012", "meta.note:user0001*", "meta.note:7",
    "meta.note:user00012 OR meta.by:user00013", 'meta.by:"user00012 7"', "meta.ms:user00012",
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
        by = f"user{chance.randrange(400):05d}"
        note = user if row % 31 == 0 else row % 50
        meta = f'"user":"{user}","peer":"{address}","ms":{row % 50},"by":"{by}","note":"{note}"'
        yield message, b"{%b}" % meta.encode()


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


class FileWithHoles:
    """A segment of which some stretches cannot be read."""

    def __init__(self, path: Path, holes: Sequence[range]) -> None:
        self.path = path
        self._holes = holes
        self._file = OsFiles().open(path)

    def read(self, offset: int, size: int) -> bytes:
        if any(offset < hole.stop and hole.start < offset + size for hole in self._holes):
            raise OSError(errno.EIO, "a bad sector")
        return self._file.read(offset, size)

    def descriptor(self) -> int | None:
        return None

    def close(self) -> None:
        self._file.close()


@pytest.mark.parametrize("text", ["meta.user:user00012", "meta.by:user0001*", "meta.by:user9"])
def test_a_field_whose_values_are_all_codes_needs_no_other_variables(
    world: World, text: str
) -> None:
    (chunk,) = world.project.snapshot().chunks
    (segment,) = world.layout.segments.iterdir()
    refs = [chunk.head().parts[Part.META_DATA, block] for block in range(chunk.blocks())]
    begins = [chunk.row.offset + ref.offset for ref in refs]
    ends = [begin + ref.stored_bytes for begin, ref in zip(begins, refs, strict=True)]
    file = FileWithHoles(segment, list(map(range, begins, ends)))
    lacking = ChunkReader(file, -1, chunk.row, PartCache(0))
    term = parse_search(text)
    assert isinstance(term, Term)
    number = parse_search("meta.ms:7")
    assert isinstance(number, Term)
    with contextlib.closing(file):
        found = np.flatnonzero(scan_chunk(lacking, MetaScan(term), lambda: None))
        with pytest.raises(Unreadable):
            scan_chunk(lacking, MetaScan(number), lambda: None)
    said = [n for n, (_, meta) in enumerate(rows()) if matches(term, "", "", (), meta)]
    assert found.tolist() == said
    assert bool(said) == ("user9" not in text)


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
