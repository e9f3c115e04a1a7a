"""The store against a list of entries and loops over it: whatever is done to one, both answer
alike."""

import contextlib
import shutil
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from reference import NewEntry, ReferenceLog
from reference import Position as ReferencePosition
from store_world import (
    PROJECT,
    START_NS,
    TINY,
    World,
    ask,
    idempotency_of,
    memory_directory,
    same,
)

from logd.entry import LEVELS, Seq
from logd.format.wal import Idempotency
from logd.query.ast import Filter
from logd.query.cursor import Cursor, decode, encode, filter_digest
from logd.query.syntax import parse_search
from logd.store.check import check_store, reindex_store
from logd.store.layout import DataLayout
from logd.store.project import Installation, Request
from logd.store.search import Found, Position, Snapshot, entry_at

WORDS = [
    "error", "Error", "user", "login", "failed", "x", "a_b", "café", "CAFÉ", "登录", "用户登录",
    "ß", "µs", "17", "10.0.0.1", "id7", "ID7", "7f3a", "0", "٣", "conn-reset", "k=v", "\"q\"",
    "\0", "\u2028", "(x)", "*", "😀",
]  # fmt: skip
GAPS = [" ", "  ", ", ", "", "-", "\n"]
SOURCES = ["api", "auth-service", "db 1", "Größe", "api.v2"]
TAGS = ["prod", "eu-west-1", "v2", "用户", "a b", "x"]
METAS = [
    b"{}",
    b'{"user":"Ann Lee"}',
    b'{"user": "id7", "n": 1.50}',
    b'{"http":{"status":404,"path":"/login"},"ok":true}',
    b'{"roles":["admin",7,["deep"]],"user":"caf\\u00e9"}',
    '{"user":"登录"}'.encode(),
]
SCOPES = ["", "", "", "message:", "source:", "tag:", "meta.user:", "meta.http.status:"]
SCOPES += ["meta.roles:", "meta.n:"]
SEARCH_WORDS = [word for word in WORDS if word.isalnum() or word in ("a_b", "10.0.0.1")]
SEARCH_WORDS += ["nowhere", "ann", "admin", "404", "prod", "west", "api", "auth", "größe", "1"]

messages = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), max_size=6).map(
    lambda pieces: "".join(word + gap for word, gap in pieces)
)
# Few moments, so that many entries share one; whole units and odd ones; both ends of time.
moments = st.one_of(
    st.integers(-5, 30).map(lambda s: START_NS + s * 1_000_000_000),
    st.integers(-5, 5).map(lambda ms: START_NS + ms * 1_000_000),
    st.integers(-3, 3).map(lambda ns: START_NS + ns),
    st.sampled_from([-9_214_000_000_000_000_000, 0, 9_214_000_000_000_000_000]),
)
new_entries = st.builds(
    NewEntry,
    ts_ns=moments,
    level=st.sampled_from(LEVELS),
    message=messages,
    source=st.sampled_from(SOURCES),
    tags=st.lists(st.sampled_from(TAGS), max_size=3).map(tuple),
    meta=st.sampled_from(METAS),
)
requests = st.lists(new_entries, min_size=1, max_size=7)
groups = st.lists(st.tuples(requests, st.booleans(), st.booleans()), min_size=1, max_size=4)


def _terms() -> st.SearchStrategy[str]:
    word = st.sampled_from(SEARCH_WORDS)
    phrase = st.lists(word, min_size=1, max_size=3).map(lambda words: '"' + " ".join(words) + '"')
    prefix = st.tuples(word, st.integers(1, 3)).map(lambda pair: pair[0][: pair[1]] + "*")
    return st.tuples(st.sampled_from(SCOPES), st.one_of(word, word, phrase, prefix)).map("".join)


searches = st.recursive(
    _terms(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: f"{pair[0]} {pair[1]}"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} OR {pair[1]})"),
        inner.map(lambda text: f"NOT ({text})"),
    ),
    max_leaves=4,
)
filters = st.builds(
    lambda level, start, stop, search: Filter(level, start, stop, parse_search(search)),
    level=st.none() | st.integers(0, 3),
    start=st.none() | moments,
    stop=st.none() | moments,
    search=st.just("") | searches,
)
limits = st.sampled_from([1, 2, 3, 5, 10, 1000])


class Listing:
    """A listing of which at least one page was read and more follow."""

    def __init__(self, filter_: Filter, limit: int, cursor: str, after: ReferencePosition) -> None:
        self.filter = filter_
        self.limit = limit
        self.cursor = cursor
        self.after = after


class StoreMachine(RuleBasedStateMachine):
    listings = Bundle("listings")
    snapshots = Bundle("snapshots")

    def __init__(self) -> None:
        super().__init__()
        self._resources = contextlib.ExitStack()
        self.directory = self._resources.enter_context(memory_directory())
        self.world = World(self.directory / "data")
        self.model = ReferenceLog()
        self.keys: dict[str, tuple[int, int, int]] = {}
        self.pending: Installation | None = None
        self.generation = 0

    def teardown(self) -> None:
        self.world.close()
        self._resources.close()

    # ------------------------------------------------------------ writing

    @rule(groups=groups)
    def append(self, groups: list[tuple[list[NewEntry], bool, bool]]) -> None:
        self._append(groups, publish=True)

    @rule(groups=groups)
    def append_and_crash(self, groups: list[tuple[list[NewEntry], bool, bool]]) -> None:
        self._append(groups, publish=False)
        self.crash()

    def _append(self, groups: list[tuple[list[NewEntry], bool, bool]], *, publish: bool) -> None:
        sent: list[Request] = []
        expected: list[int] = []
        for entries, ndjson, with_key in groups:
            first, *_ = self.model.append(entries)
            expected.append(first)
            key = None
            if with_key:
                key = f"key {len(self.keys)}"
                self.keys[key] = (first, len(entries), self.world.now_ns)
            sent.append(self.world.request(entries, key, ndjson=ndjson))
        seqs = self.world.project.append(sent)
        assert seqs == expected
        if publish:
            self.world.project.publish(sent, seqs)

    @rule(hours=st.sampled_from([1, 10, 23]))
    def time_passes(self, hours: int) -> None:
        self.world.now_ns += hours * 3_600_000_000_000

    # ------------------------------------------------------------ freezing and merging, in steps

    @rule()
    def rotate(self) -> None:
        self.world.project.rotate()

    @precondition(lambda self: self.pending is None)
    @rule()
    def run_a_freeze(self) -> None:
        job = self.world.project.prepare_freeze()
        if job is not None:
            self.pending = self.world.project.run_freeze(job)

    @precondition(lambda self: self.pending is None)
    @rule()
    def run_a_merge(self) -> None:
        job = self.world.project.prepare_merge()
        if job is not None:
            self.pending = self.world.project.run_merge(job)

    @precondition(lambda self: self.pending is not None)
    @rule(discarded=st.booleans())
    def install(self, discarded: bool) -> None:
        assert self.pending is not None
        self.world.project.install(self.pending)
        if discarded:
            self.world.project.discard(self.pending)
            self.pending = None
        else:
            self.crash()

    @precondition(lambda self: self.pending is None)
    @rule()
    def freeze(self) -> None:
        self.world.project.freeze()

    @precondition(lambda self: self.pending is None)
    @rule()
    def merge_all(self) -> None:
        while self.world.project.merge():
            pass

    # ------------------------------------------------------------ stopping and starting

    @rule()
    def crash(self) -> None:
        self.world.crash()
        self._open()

    @rule()
    def restart(self) -> None:
        self.world.close()
        self._open()

    @rule()
    def lose_the_index(self) -> None:
        self.world.close()
        shutil.rmtree(self.world.layout.index)
        self._open()

    @rule()
    def reindex(self) -> None:
        self.world.close()
        world = self.world
        reindex_store(world.files, DataLayout(world.root), [PROJECT], TINY, world.clock)
        self._open()

    @rule()
    def check(self) -> None:
        self.world.close()
        world = self.world
        report = check_store(world.files, DataLayout(world.root), [PROJECT])
        self._open()
        assert report.problems == ()

    def _open(self) -> None:
        self.generation += 1
        self.pending = None
        project = self.world.open()
        assert project.damage == ()

    # ------------------------------------------------------------ questions

    @rule(target=listings, filter_=filters, limit=limits)
    def first_page(self, filter_: Filter, limit: int) -> Any:
        return self._page(ask(self.world.project.snapshot(), filter_, limit), filter_, limit, None)

    @rule(target=listings, listing=consumes(listings))
    def next_page(self, listing: Listing) -> Any:
        digest = filter_digest(listing.filter)
        cursor = decode(listing.cursor, PROJECT, digest)
        after = Position(Seq(cursor.pinned_seq), cursor.last_ts_ns, cursor.last_seq)
        found = ask(self.world.project.snapshot(), listing.filter, listing.limit, after)
        assert found.total == cursor.total
        return self._page(found, listing.filter, listing.limit, listing.after)

    def _page(
        self, found: Found, filter_: Filter, limit: int, after: ReferencePosition | None
    ) -> Any:
        expected, total = self.model.list(filter_, limit, after)
        assert not found.damage
        assert [entry.seq for entry in found.entries] == [row.seq for row in expected]
        assert all(
            same(entry, row.seq, row.entry)
            for entry, row in zip(found.entries, expected, strict=True)
        )
        assert found.total == total
        if found.last is None:
            if expected:
                position = self.model.position(expected, after)
                assert self.model.list(filter_, 1, position)[0] == []
            return multiple()
        position = self.model.position(expected, after)
        assert found.last == (position.last_ts_ns, position.last_seq)
        ts_ns, seq = found.last
        cursor = Cursor(position.pinned_seq, ts_ns, seq, total)
        return Listing(filter_, limit, encode(cursor, PROJECT, filter_digest(filter_)), position)

    @rule(target=snapshots)
    def keep_a_snapshot(self) -> Any:
        every, _ = self.model.list("", 1_000_000)
        pinned = max((row.seq for row in every), default=-1) + 1
        return self.generation, self.world.project.snapshot(), pinned

    @rule(kept=snapshots, filter_=filters, limit=limits)
    def ask_an_old_snapshot(
        self, kept: tuple[int, Snapshot, int], filter_: Filter, limit: int
    ) -> None:
        generation, snapshot, pinned = kept
        if generation != self.generation:
            return
        start = ReferencePosition(pinned, 2**63, 0)
        expected, total = self.model.list(filter_, limit, start)
        found = ask(snapshot, filter_, limit)
        assert not found.damage
        assert [entry.seq for entry in found.entries] == [row.seq for row in expected]
        assert found.total == total

    @rule(seq=st.integers(0, 60))
    def get(self, seq: int) -> None:
        found = entry_at(self.world.project.snapshot(), Seq(seq))
        row = self.model.get(seq)
        if row is None:
            assert found is None
        else:
            assert found is not None
            assert same(found, seq, row.entry)

    @rule()
    def recall(self) -> None:
        for key, (first, count, received_ns) in self.keys.items():
            digest = idempotency_of(key)
            record = self.world.project.recall(digest.key_digest)
            if self.world.now_ns - received_ns >= TINY.idempotency_seconds * 1_000_000_000:
                assert record is None
            else:
                assert record is not None
                assert isinstance(record.idempotency, Idempotency)
                assert record.idempotency == digest
                assert (record.first_seq, record.count) == (first, count)

    @invariant()
    def level_counts_are_those_of_the_model(self) -> None:
        assert list(self.world.project.level_counts()) == list(self.model.stats().values())


QUICK = settings(max_examples=40, stateful_step_count=30, deadline=None)
LONG = settings(
    max_examples=3000,
    stateful_step_count=60,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
)


def test_the_store_answers_as_the_reference_does_whatever_happens_to_it() -> None:
    run_state_machine_as_test(StoreMachine, settings=QUICK)


@pytest.mark.slow
def test_the_store_answers_as_the_reference_does_in_a_long_run() -> None:
    run_state_machine_as_test(StoreMachine, settings=LONG)
