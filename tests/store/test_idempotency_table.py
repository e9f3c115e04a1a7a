"""The table of Idempotency-Keys is looked up and added to on the event loop."""

import hashlib

from logd.entry import Seq
from logd.format.chunk import IdempotencyRecord
from logd.format.wal import Idempotency
from logd.store.idempotency import IdempotencyTable

KEEP_SECONDS = 1000
KEEP_NS = KEEP_SECONDS * 10**9
MANY = 30_000


class CountingTable(IdempotencyTable):
    looks = 0

    def is_live(self, received_ns: int, now_ns: int) -> bool:
        self.looks += 1
        return super().is_live(received_ns, now_ns)


def digest_of(number: int) -> bytes:
    return hashlib.blake2b(b"%d" % number, digest_size=16).digest()


def record_of(number: int, received_ns: int) -> IdempotencyRecord:
    return IdempotencyRecord(
        Idempotency(digest_of(number), digest_of(-1)), Seq(number), 1, received_ns
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


def test_what_is_too_old_is_let_go() -> None:
    table = IdempotencyTable(KEEP_SECONDS)
    for number in range(3 * MANY):
        age, rest = divmod(number, MANY)
        table.add([record_of(number, age * KEEP_NS + rest)])
    now_ns = 2 * KEEP_NS + MANY
    assert table.find(digest_of(0), now_ns) is None
    assert table.find(digest_of(2 * MANY), now_ns) == record_of(2 * MANY, 2 * KEEP_NS)
    assert MANY <= len(table) <= 2 * MANY + MANY // 10
