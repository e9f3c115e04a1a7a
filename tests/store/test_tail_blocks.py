"""The blocks of a tail are joined on the event loop."""

import msgspec
import pytest
from store_world import PROJECT, START_NS, body_of, entries

from logd.entry import Seq
from logd.format.body import Batch, decode_body
from logd.store.tail import TailRun

BLOCK_BYTES = 2 << 20


def batch_of(count: int, meta_bytes: int) -> Batch:
    meta = b'{"text":"%s"}' % (b"y" * meta_bytes)
    new = [msgspec.structs.replace(one, meta=meta) for one in entries("x", count)]
    return decode_body(body_of(new, PROJECT), PROJECT, START_NS, ndjson=False)


@pytest.mark.parametrize(("count", "meta_bytes"), [(1, 65_000), (30, 1000), (100, 10_000)])
def test_no_more_than_two_mebibytes_are_joined(count: int, meta_bytes: int) -> None:
    run, batch = TailRun(Seq(0)), batch_of(count, meta_bytes)
    while run.size_bytes < 4 * BLOCK_BYTES:
        run.extend(run.next_seq, batch)
    blocks = run.blocks()
    assert max(block.batch.size_bytes for block in blocks) <= BLOCK_BYTES
    assert len(blocks) <= 12
    assert [b.next_seq for b in blocks] == [*[b.first_seq for b in blocks[1:]], run.next_seq]
    assert sum(block.batch.count for block in blocks) == run.count


def test_a_large_batch_is_not_copied() -> None:
    run, small, large = TailRun(Seq(0)), batch_of(1, 10), batch_of(50, 60_000)
    for batch in (small, large, small):
        run.extend(run.next_seq, batch)
    assert [block.batch.count for block in run.blocks()] == [1, 50, 1]
    assert run.blocks()[1].batch is large
