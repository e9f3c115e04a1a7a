"""The searchable tail: entries that are durable in the WAL and not yet in a chunk.

A *run* is what one WAL file holds. The newest run grows, in *blocks*; older ones wait to be
frozen. Blocks are immutable: a snapshot is a tuple of them.
"""

from bisect import bisect_left
from operator import attrgetter
from typing import Final

import msgspec

from logd.entry import Seq
from logd.format.body import Batch, concatenate_batches
from logd.format.chunk import IdempotencyRecord

_GATHER_BATCHES: Final = 256
_BLOCK_ENTRIES: Final = 8192
_BLOCK_BYTES: Final = 2 << 20
"""To join more would hold up the event loop: it takes a millisecond each MiB."""


class TailBlock:
    """Consecutive entries from `first_seq` on, in that order. What searches derive from them is
    kept on the block, see `tail_search.py`."""

    __slots__ = ("batch", "first_seq", "max_ts_ns", "min_ts_ns", "search_cache")

    def __init__(self, first_seq: Seq, batch: Batch) -> None:
        self.first_seq = first_seq
        self.batch = batch
        self.min_ts_ns = int(batch.ts.min())
        self.max_ts_ns = int(batch.ts.max())
        self.search_cache: object | None = None

    @property
    def next_seq(self) -> Seq:
        return Seq(self.first_seq + self.batch.count)


class Piece(msgspec.Struct, frozen=True, gc=False):
    """A batch at its place in the log."""

    first_seq: Seq
    batch: Batch

    @property
    def next_seq(self) -> Seq:
        return Seq(self.first_seq + self.batch.count)


class TailRun:
    """The entries of one WAL file, in order of sequence."""

    def __init__(self, first_seq: Seq) -> None:
        self.first_seq = first_seq
        self.next_seq = first_seq
        self.count = 0
        self.size_bytes = 0
        self.level_counts = [0, 0, 0, 0]
        self.records: list[IdempotencyRecord] = []  # by `first_seq`
        self._blocks: list[TailBlock] = []
        self._recent: list[Piece] = []
        self._recent_entries = 0
        self._recent_bytes = 0

    def extend(self, first_seq: Seq, batch: Batch) -> None:
        """Add a batch behind the last one; a gap is where damage took entries."""
        size_bytes = batch.size_bytes
        if first_seq != self.next_seq or self._recent_bytes + size_bytes > _BLOCK_BYTES:
            self._gather()
        self._recent.append(Piece(first_seq, batch))
        self._recent_entries += batch.count
        self._recent_bytes += size_bytes
        self.next_seq = Seq(first_seq + batch.count)
        self.count += batch.count
        self.size_bytes += size_bytes
        for code in range(4):
            self.level_counts[code] += batch.levels.count(code)
        if self._recent_entries >= _BLOCK_ENTRIES or len(self._recent) >= _GATHER_BATCHES:
            self._gather()

    def blocks(self) -> tuple[TailBlock, ...]:
        self._gather()
        return tuple(self._blocks)

    def record_of(self, first_seq: Seq) -> IdempotencyRecord | None:
        """Of the request whose first entry has this number, if it has one."""
        at = bisect_left(self.records, first_seq, key=attrgetter("first_seq"))
        if at < len(self.records) and self.records[at].first_seq == first_seq:
            return self.records[at]
        return None

    def seal(self) -> None:
        """Nothing is added any more: from now on other threads may read the run."""
        self._gather()

    def _gather(self) -> None:
        """Turn the recent batches into a block, and blocks of like size into larger ones."""
        if not self._recent:
            return
        batch = concatenate_batches([piece.batch for piece in self._recent])
        block = TailBlock(self._recent[0].first_seq, batch)
        self._recent, self._recent_entries, self._recent_bytes = [], 0, 0
        while self._blocks and _may_join(self._blocks[-1], block):
            last = self._blocks.pop()
            block = TailBlock(last.first_seq, concatenate_batches([last.batch, block.batch]))
        self._blocks.append(block)

    def pieces(self) -> list[Piece]:
        """The run, of at least one entry a piece."""
        return [Piece(block.first_seq, block.batch) for block in self.blocks()]


def _may_join(last: TailBlock, block: TailBlock) -> bool:
    return (
        last.next_seq == block.first_seq
        and last.batch.count <= 2 * block.batch.count
        and last.batch.count + block.batch.count <= _BLOCK_ENTRIES
        and last.batch.size_bytes + block.batch.size_bytes <= _BLOCK_BYTES
    )
