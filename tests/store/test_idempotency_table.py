"""The table of Idempotency-Keys is looked up and added to on the event loop."""

import hashlib
import random
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.entry import Seq
from logd.format.chunk import IdempotencyRecord, RecordColumns
from logd.format.wal import Idempotency
from logd.store.idempotency import IdempotencyTable, Part
from logd.store.record_ages import RecordAges
from logd.store.tail import TailRun

KEEP_SECONDS = 1000
KEEP_NS = KEEP_SECONDS * 10**9
MANY = 30_000
MILLION = 1_000_000
SOME = 20_000
NUMBERS = 1 << 40
"""Sequence numbers are kept modulo this."""
STRETCH = 4
STEP_NS = KEEP_NS // 40
CENTURY_NS = 3_600_000_000 * 10**9


class CountingTable(IdempotencyTable):
    looks = 0

    def sweep(self, part: Part, now_ns: int) -> None:
        self.looks += len(part)
        super().sweep(part, now_ns)


def digest_of(number: int) -> bytes:
    return hashlib.blake2b(b"%d" % number, digest_size=16).digest()


def record_of(number: int, received_ns: int) -> IdempotencyRecord:
    return IdempotencyRecord(
        Idempotency(digest_of(number), digest_of(-1)), Seq(number), 1, received_ns
    )


def columns_of(records: Sequence[IdempotencyRecord]) -> RecordColumns:
    digests = b"".join([record.idempotency.key_digest for record in records])
    return RecordColumns(
        np.frombuffer(digests, np.uint8).reshape(-1, 16),
        np.array([record.first_seq for record in records], np.int64),
        np.array([record.received_ns for record in records], np.int64),
    )


def test_adding_one_never_looks_at_all_of_them() -> None:
    table = CountingTable(KEEP_SECONDS)
    looks = []
    for number in range(MANY):
        before = table.looks
        table.add([record_of(number, number)])
        looks.append(table.looks - before)
    assert max(looks) <= MANY // 100
    assert sum(looks) <= 2 * MANY


def test_letting_go_of_one_looks_at_few() -> None:
    table = CountingTable(KEEP_SECONDS)
    looks = []
    for number in range(4 * MANY):
        before = table.looks
        table.add([record_of(number, number * (KEEP_NS // MANY))])
        looks.append(table.looks - before)
    gone = 4 * MANY - len(table)
    assert gone > 2 * MANY
    assert max(looks) <= MANY // 100
    assert sum(looks) <= 8 * gone


def test_what_is_too_old_is_let_go() -> None:
    table = IdempotencyTable(KEEP_SECONDS)
    for number in range(3 * MANY):
        age, rest = divmod(number, MANY)
        table.add([record_of(number, age * KEEP_NS + rest)])
    now_ns = 2 * KEEP_NS + MANY
    assert table.candidates(digest_of(0), now_ns) == []
    assert table.candidates(digest_of(2 * MANY), now_ns) == [2 * MANY]
    assert MANY <= len(table) <= 2 * MANY + MANY // 10


# ---------------------------------------------------------------- memory


def add_a_day(table: IdempotencyTable, day: int) -> Iterator[None]:
    """A million records, in a lifetime."""
    chance = np.random.default_rng(day)
    for begin in range(day * MILLION, (day + 1) * MILLION, SOME):
        numbers = np.arange(begin, begin + SOME, dtype=np.int64)
        digests = chance.integers(0, 256, (SOME, 16), np.uint8)
        table.add_many(RecordColumns(digests, numbers, numbers * (KEEP_NS // MILLION)))
        yield


def test_a_record_of_the_last_day_takes_at_most_twelve_bytes() -> None:
    """With those that were not let go yet."""
    table = IdempotencyTable(KEEP_SECONDS)
    tracemalloc.start()
    try:
        for day in range(2):
            for _ in add_a_day(table, day):
                taken, _ = tracemalloc.get_traced_memory()
                assert taken <= 12 * MILLION
    finally:
        tracemalloc.stop()
    assert len(table) >= MILLION


@pytest.mark.parametrize("count", [1, 100, 10_000, 100_000])
def test_a_few_records_take_300_kb_more_at_most(count: int) -> None:
    records = [record_of(number, number) for number in range(count)]
    tracemalloc.start()
    try:
        table = IdempotencyTable(KEEP_SECONDS)
        for record in records:
            table.add([record])
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(table) == count
    assert taken <= 12 * count + 300_000


def test_a_record_in_the_tail_takes_at_most_300_bytes() -> None:
    tracemalloc.start()
    try:
        run = TailRun(Seq(0))
        for number in range(MANY):
            run.records.append(record_of(1_000_000 + number, 10**18 + number))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken <= 300 * MANY


# ---------------------------------------------------------------- what is found


def keyed(digest: bytes, seq: int, received_ns: int = 0) -> IdempotencyRecord:
    return IdempotencyRecord(Idempotency(digest.ljust(16), bytes(16)), Seq(seq), 1, received_ns)


def test_keys_that_share_what_is_kept_of_them_are_candidates_the_latest_first() -> None:
    table = IdempotencyTable(KEEP_SECONDS)
    table.add([keyed(b"..abc one", 3), keyed(b"..abc two", 7), keyed(b"..abd", 9)])
    table.add([keyed(b"__abc", 11)])
    assert table.candidates(b"..abc three".ljust(16), 1) == [7, 3]
    assert table.candidates(b"..abe".ljust(16), 1) == []
    assert table.candidates(b"##abc".ljust(16), 1) == []


def test_the_end_of_one_and_the_beginning_of_another_are_no_key() -> None:
    table = IdempotencyTable(KEEP_SECONDS)
    table.add([keyed(b"..abc", 1), keyed(b"..abc", 2), keyed(b"..bca", 3), keyed(b"..aab", 4)])
    assert table.candidates(b"..bca".ljust(16), 1) == [3]
    assert table.candidates(b"..cab".ljust(16), 1) == []
    assert table.candidates(b"..abc".ljust(16), 1) == [2, 1]


def test_an_empty_table_knows_no_key() -> None:
    table = IdempotencyTable(KEEP_SECONDS)
    table.add([])
    table.add_many(columns_of([]))
    assert table.candidates(bytes(16), 0) == []
    assert len(table) == 0


@pytest.mark.parametrize("begin", [0, NUMBERS - 50, NUMBERS, 5 * NUMBERS - 50, (1 << 62) - 50])
def test_sequence_numbers_may_be_of_any_size(begin: int) -> None:
    table = IdempotencyTable(KEEP_SECONDS)
    records = [keyed(b"..%03d" % n, begin + n, n * STEP_NS) for n in range(100)]
    table.add(records[:40])
    table.add_many(columns_of(records[40:]))
    now_ns = 99 * STEP_NS
    for n, record in enumerate(records):
        found = table.candidates(record.idempotency.key_digest, now_ns)
        assert found in ([], [begin + n])
        assert found or not table.is_live(record.received_ns, now_ns)


# ---------------------------------------------------------------- clocks that jump


class Arrival:
    """A request, `steps` after the one before. `odd_ns`: what the clock is off, for it alone."""

    def __init__(self, key: int, steps: int, odd_ns: int) -> None:
        self.key = key
        self.steps = steps
        self.odd_ns = odd_ns


@st.composite
def arrivals(draw: st.DrawFn) -> list[Arrival]:
    """Enough of them for parts to be swept, which lists of hypothesis' own seldom are."""
    chance = draw(st.randoms(use_true_random=True))
    odd_ns = [0] * 9 + [CENTURY_NS, -CENTURY_NS, KEEP_NS, -KEEP_NS]
    return [
        Arrival(chance.randrange(41), chance.choice([0, 1, 1, 1, 2, 5]), chance.choice(odd_ns))
        for _ in range(draw(st.sampled_from([1, 10, 50, 300])))
    ]


def digest_of_few(key: int) -> bytes:
    """All in one part; two keys each have the same fingerprint."""
    return (b"..%03d" % (key // 2)).ljust(15) + b"%d" % (key % 2)


def received(requests: Sequence[Arrival]) -> tuple[list[IdempotencyRecord], int]:
    """(their records, the time then); an odd time comes alone."""
    records, now_ns = [], 0
    for number, (before, request) in enumerate(pairwise([Arrival(0, 0, 0), *requests])):
        now_ns += request.steps * STEP_NS
        odd_ns = 0 if before.odd_ns else request.odd_ns
        digest = digest_of_few(request.key)
        records.append(
            IdempotencyRecord(Idempotency(digest, bytes(16)), Seq(10 * number), 1, now_ns + odd_ns)
        )
    return records, now_ns


def short_stretches() -> IdempotencyTable:
    return IdempotencyTable(KEEP_SECONDS, RecordAges(KEEP_NS, STRETCH))


@given(arrivals(), st.randoms(use_true_random=True))
def test_whatever_is_not_too_old_is_found_wherever_the_clock_jumps(
    requests: list[Arrival], chance: random.Random
) -> None:
    """Against all records there are."""
    table = short_stretches()
    records, now_ns = received(requests)
    begin = 0
    while begin < len(records):  # one by one, and many at once
        end = begin + chance.choice([1, 1, 2, 9])
        if end == begin + 1:
            table.add(records[begin:end])
        else:
            table.add_many(columns_of(records[begin:end]))
        begin = end
    for key in range(42):
        digest = digest_of_few(key)
        found = table.candidates(digest, now_ns)
        alike = [r for r in records if r.idempotency.key_digest[:5] == digest[:5]]
        assert found == sorted(found, reverse=True)
        assert set(found) <= {record.first_seq for record in alike}
        live = {r.first_seq for r in alike if table.is_live(r.received_ns, now_ns)}
        assert live <= set(found)


@given(arrivals(), st.randoms(use_true_random=True))
def test_many_at_once_are_the_same_as_one_by_one(
    requests: list[Arrival], chance: random.Random
) -> None:
    records, now_ns = received([Arrival(r.key, r.steps, 0) for r in requests])
    one_by_one, at_once = short_stretches(), short_stretches()
    one_by_one.add(records)
    while records:
        size = chance.choice([1, 3, 50])
        at_once.add_many(columns_of(records[:size]))
        records = records[size:]
    for key in range(42):
        digest = digest_of_few(key)
        assert one_by_one.candidates(digest, now_ns) == at_once.candidates(digest, now_ns)


@given(arrivals())
def test_no_record_is_ever_taken_for_older_than_it_is(requests: list[Arrival]) -> None:
    """Whatever time it is asked for: what was joined of the past, too."""
    ages = RecordAges(KEEP_NS, STRETCH)
    records, _ = received(requests)
    for record in records:
        ages.note(record.first_seq, record.received_ns, record.received_ns)
    last_ns = np.array([record.received_ns + KEEP_NS - 1 for record in records])
    for record, now_ns in zip(records, last_ns.tolist(), strict=True):
        assert ages.may_be_live(record.first_seq, now_ns)
        assert ages.each_may_be_live(np.array([record.first_seq]), now_ns).all()


@pytest.mark.parametrize("odd", range(1, 60))
def test_a_clock_that_is_ahead_once_drops_nothing(odd: int) -> None:
    """Wherever in a stretch, or in a part, that is."""
    table = short_stretches()
    for number in range(odd):
        table.add([keyed(b"..%03d" % number, number, number)])
    table.add([keyed(b"..odd", odd, CENTURY_NS)])
    assert len(table) == odd + 1
    assert all(table.candidates((b"..%03d" % n).ljust(16), odd) == [n] for n in range(odd))


@pytest.mark.parametrize("odd_ns", [CENTURY_NS, -CENTURY_NS])
def test_one_odd_time_neither_drops_records_nor_keeps_them_for_ever(odd_ns: int) -> None:
    table = IdempotencyTable(KEEP_SECONDS)
    step_ns = KEEP_NS // MANY
    odd = MANY // 2
    for number in range(4 * MANY):
        off_ns = odd_ns if number % MANY == odd else 0
        table.add([record_of(number, number * step_ns + off_ns)])
        if number in (MANY - 1, 2 * MANY + odd):
            live = range(max(0, number - MANY + 1), number + 1)
            now_ns = number * step_ns
            assert all(table.candidates(digest_of(n), now_ns) for n in live if n % MANY != odd)
    assert len(table) <= 2 * MANY


def test_what_is_remembered_of_the_clock_does_not_grow() -> None:
    """Even where one record of the future is the first there is."""
    ages = RecordAges(KEEP_NS, STRETCH)
    ages.note(0, CENTURY_NS, CENTURY_NS)
    for number in range(1, 40_000):
        ages.note(number, number * STEP_NS, number * STEP_NS)
        assert len(ages) <= 64
    assert ages.may_be_live(0, 40_000 * STEP_NS)
    assert not ages.may_be_live(STRETCH, 40_000 * STEP_NS)
    assert ages.may_be_live(39_999, 40_000 * STEP_NS)
