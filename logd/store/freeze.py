"""Turning entries into chunks: the tail's when it is full, small chunks' when they are merged."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from logd.entry import LEVEL_CODE, Seq
from logd.format.body import Batch, concatenate_batches
from logd.format.chunk import MAX_ENTRIES, BuiltChunk, IdempotencyRecord, build_chunk
from logd.format.separated import SEPARATOR, edges, join_texts
from logd.store.chunk_reader import ChunkReader
from logd.store.limits import StoreLimits
from logd.store.tail import Piece


def build_chunks(
    pieces: Sequence[Piece], records: Sequence[IdempotencyRecord], limits: StoreLimits
) -> Iterator[BuiltChunk]:
    """Chunks of at most `limits.chunk_entries` entries, each without a gap in its numbers."""
    for piece in pieces:
        size = min(limits.chunk_entries, MAX_ENTRIES)
        for start in range(0, piece.batch.count, size):
            batch = slice_batch(piece.batch, start, min(start + size, piece.batch.count))
            first_seq = Seq(piece.first_seq + start)
            mine = [r for r in records if first_seq <= r.first_seq < first_seq + batch.count]
            yield build_chunk(batch, first_seq, mine, limits.block_entries)


def slice_batch(batch: Batch, start: int, stop: int) -> Batch:
    """Entries start to stop of a batch; at least one."""
    if start == 0 and stop == batch.count:
        return batch
    return Batch(
        count=stop - start,
        ts=batch.ts[start:stop],
        levels=batch.levels[start:stop],
        messages=_cut(batch.messages, batch.count, start, stop),
        sources=_cut(batch.sources, batch.count, start, stop),
        tags=_cut(batch.tags, batch.count, start, stop),
        metas=_cut(batch.metas, batch.count, start, stop),
    )


def _cut(blob: bytes, count: int, start: int, stop: int) -> bytes:
    at = edges(blob, count)
    return blob[int(at[start]) : int(at[stop]) - 1]


def merge_chunks(
    readers: Sequence[ChunkReader],
    expired: Callable[[IdempotencyRecord], bool],
    limits: StoreLimits,
) -> BuiltChunk:
    """One chunk of neighbours without gaps between them. Raises Corruption."""
    batch = concatenate_batches([_to_batch(reader) for reader in readers])
    records = [r for reader in readers for r in reader.idempotency_records() if not expired(r)]
    return build_chunk(batch, readers[0].first_seq, records, limits.block_entries)


def _to_batch(reader: ChunkReader) -> Batch:
    """A chunk's entries in the order of their sequence numbers."""
    rows = np.arange(reader.count)
    entries = reader.entries(rows)
    return Batch(
        count=len(entries),
        ts=np.array([entry.ts_ns for entry in entries], np.int64),
        levels=bytes([LEVEL_CODE[entry.level] for entry in entries]),
        messages=join_texts([entry.message for entry in entries]),
        sources=join_texts([entry.source for entry in entries]),
        tags=SEPARATOR.join([entry.tags for entry in entries]),
        metas=SEPARATOR.join([entry.meta for entry in entries]),
    )
