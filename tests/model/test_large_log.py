"""Real sizes: 200,000 realistic entries, frozen with the default limits, and all kinds of
questions."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from reference import NewEntry
from store_world import PROJECT, START_NS, World, ask, json_of, memory_directory, same
from word_oracle import WordOracle

from bench.corpus import RARE_ID, RARE_WORD, START_MS, blocks
from logd.entry import LEVELS, LevelName, Seq
from logd.format.body import decode_body
from logd.query.ast import Filter
from logd.query.syntax import parse_search
from logd.store.limits import StoreLimits
from logd.store.project import Request
from logd.store.search import Position, entry_at

COUNT = 200_000
BATCH = 1000
MINUTE = 60_000_000_000
BEGIN = START_MS * 1_000_000

SEARCHES = [
    RARE_WORD, RARE_ID, f"{RARE_WORD} OR {RARE_ID}", "prod", "nowhere", "-prod", "error env=prod",
    "error", "ERROR timeout", "connection refused", '"connection refused"', "failed password",
    '"failed password"', '"authentication failure"', "user* prod", "user_*", "10.0.0.1", '"GET /"',
    "status 200", "status=200 OR status=404", "retry* -error", "7f3a*", "1*", "00*", "error 5*",
    "(error OR failed) (user OR session)", "NOT (error OR failed OR user)", "source:kernel",
    "source:checkout*", "tag:prod", "tag:eu*", "tag:eu-west-1", "source:kernel segfault",
    "größe", "GRÖSSE", "用户", "登录", "用户登录 cafe", "café", "CAFÉ naïve", '"größe 用户登录"',
    "ï", '"late entry"', "late 17", "message:prod", "-source:kernel prod", "a", "the", "ms",
]  # fmt: skip
META_SEARCHES = [
    f"meta.region:eu {RARE_WORD}", f"meta.userId:u* {RARE_ID}", "meta.http.cached:true late",
    "meta.latencyMs:7 größe", "late -meta.region:us",
]  # fmt: skip


class _Sent(msgspec.Struct):
    timestamp: str
    level: LevelName
    message: str
    source: str
    tags: tuple[str, ...]
    meta: msgspec.Raw


def batches() -> Iterator[list[NewEntry]]:
    """In order of arrival: each ninth batch comes five batches late, and some entries are in
    other scripts, minutes late, or of the same moment as others."""
    waiting: dict[int, list[NewEntry]] = {}
    decoder = msgspec.json.Decoder(_Sent)
    for number, lines in enumerate(blocks(seed=17, entries=COUNT)):
        batch = []
        for n, line in enumerate(lines):
            sent = decoder.decode(line.json)
            message, ts_ns = sent.message, line.ts_ms * 1_000_000
            if n % 97 == 0:
                message += " Größe 用户登录 CAFÉ naïve"
            if n % 211 == 0:
                message, ts_ns = f"late entry {n % 19}: {message}", ts_ns - 7 * MINUTE
            if n % 50 < 3:
                ts_ns -= ts_ns % 1_000_000_000
            meta = bytes(sent.meta)
            batch.append(NewEntry(ts_ns, sent.level, message, sent.source, sent.tags, meta))
        if number % 9 == 0:
            waiting[number + 5] = batch
        else:
            yield batch
        if number in waiting:
            yield waiting.pop(number)
    yield from waiting.values()


class LargeLog:
    def __init__(self, directory: Path) -> None:
        self.world = World(directory / "data", StoreLimits(min_free_disk_bytes=0))
        self.entries: list[NewEntry] = []
        project = self.world.project
        for batch in batches():
            body = b"[" + b",".join([json_of(entry, PROJECT) for entry in batch]) + b"]"
            decoded = decode_body(body, PROJECT, START_NS, ndjson=False)
            self.world.commit([Request(decoded, START_NS)])
            self.entries += batch
            if project.is_tail_full:
                project.freeze()
        self.oracle = WordOracle(self.entries)


@pytest.fixture(scope="module")
def large() -> Iterator[LargeLog]:
    with memory_directory() as directory:
        log = LargeLog(directory)
        yield log
        log.world.close()


def filters() -> Iterator[Filter]:
    for text in SEARCHES + META_SEARCHES:
        yield Filter(search=parse_search(text))
    half = BEGIN + COUNT * 3_000_000 // 2
    windows = [(half, half + MINUTE), (None, half), (half, None), (half, half), (half - 1, half)]
    for start, stop in windows:
        yield Filter(None, start, stop, None)
        yield Filter(3, start, stop, parse_search("error"))
        yield Filter(None, start, stop, parse_search("user OR späte OR 登录"))
    for level in range(4):
        yield Filter(level)
        yield Filter(level, search=parse_search("failed OR 1*"))


def assert_pages_are_right(log: LargeLog, filter_: Filter, limit: int, pages: int) -> None:
    expected = log.oracle.matching(filter_)
    snapshot = log.world.project.snapshot()
    after = None
    for page in range(pages):
        found = ask(snapshot, filter_, limit, after)
        wanted = expected[page * limit : (page + 1) * limit]
        assert not found.damage
        assert found.total == len(expected), filter_
        assert [entry.seq for entry in found.entries] == wanted, filter_
        assert all(same(entry, entry.seq, log.entries[entry.seq]) for entry in found.entries)
        if found.last is None:
            assert len(expected) <= (page + 1) * limit
            return
        after = Position(snapshot.visible_seq, *found.last)


def test_a_log_of_real_size_answers_as_the_reference_does(large: LargeLog) -> None:
    assert len(large.world.project.snapshot().chunks) >= 3
    asked = list(filters())
    assert len(asked) > 60
    for filter_ in asked:
        assert_pages_are_right(large, filter_, 100, 3)


def test_a_long_listing_shows_every_entry_once(large: LargeLog) -> None:
    assert_pages_are_right(large, Filter(), 10_000, 100)


def test_entries_and_counts_of_a_log_of_real_size_are_right(large: LargeLog) -> None:
    snapshot = large.world.project.snapshot()
    for seq in random.Random(5).sample(range(COUNT), 50):
        found = entry_at(snapshot, Seq(seq))
        assert found is not None
        assert same(found, seq, large.entries[seq])
    assert entry_at(snapshot, Seq(COUNT)) is None
    levels = [entry.level for entry in large.entries]
    assert list(large.world.project.level_counts()) == [levels.count(level) for level in LEVELS]


def test_a_log_of_real_size_is_the_same_after_its_index_was_lost(large: LargeLog) -> None:
    large.world.crash()
    shutil.rmtree(large.world.layout.index)
    assert large.world.open().damage == ()
    for filter_ in list(filters())[::7]:
        assert_pages_are_right(large, filter_, 100, 2)
