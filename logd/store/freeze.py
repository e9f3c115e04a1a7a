"""Turning entries into chunks. Pure, and much work: another process may do it (`ChunkBuilder`)."""

from collections.abc import Sequence
from typing import Protocol

from logd.entry import Seq
from logd.format.body import Batch, concatenate_batches
from logd.format.chunk import (
    BLOCK_BYTES,
    MAX_ENTRIES,
    BuiltChunk,
    IdempotencyRecord,
    build_chunk,
)
from logd.format.separated import edges
from logd.store.limits import StoreLimits
from logd.store.tail import Piece


class ChunkBuilder(Protocol):
    """`build_chunks`, wherever it runs."""

    def __call__(
        self,
        pieces: Sequence[Piece],
        records: Sequence[IdempotencyRecord],
        limits: StoreLimits,
    ) -> list[BuiltChunk]: ...


def build_chunks(
    pieces: Sequence[Piece], records: Sequence[IdempotencyRecord], limits: StoreLimits
) -> list[BuiltChunk]:
    """Chunks of at most `limits.chunk_entries` entries, each without a gap in its numbers; what
    does not fit into one is spread evenly."""
    return use_up(list(pieces), records, limits)


def use_up(
    pieces: list[Piece], records: Sequence[IdempotencyRecord], limits: StoreLimits
) -> list[BuiltChunk]:
    """`build_chunks`. The list is empty then, and nothing here holds on to what it held longer
    than it takes to encode it."""
    waiting = [part for group in stretches(pieces) for part in _cut_up(_join(group), limits)]
    pieces.clear()
    waiting.reverse()
    block_bytes = min(BLOCK_BYTES, limits.chunk_bytes // 4)
    built: list[BuiltChunk] = []
    while waiting:
        first_seq, next_seq = waiting[-1].first_seq, waiting[-1].next_seq
        mine = [record for record in records if first_seq <= record.first_seq < next_seq]
        # No name for the batch: only `build_chunk` has it then, and can let go of its columns.
        built.append(
            build_chunk(waiting.pop().batch, first_seq, mine, limits.block_entries, block_bytes)
        )
    return built


def _cut_up(piece: Piece, limits: StoreLimits) -> list[Piece]:
    """What a chunk each takes."""
    count = piece.batch.count
    size = -(-count // -(-count // min(limits.chunk_entries, MAX_ENTRIES)))
    return [
        Piece(
            Seq(piece.first_seq + start), slice_batch(piece.batch, start, min(start + size, count))
        )
        for start in range(0, count, size)
    ]


def stretches(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """The pieces, those without gaps between them together."""
    out: list[list[Piece]] = []
    for piece in pieces:
        if out and out[-1][-1].next_seq == piece.first_seq:
            out[-1].append(piece)
        else:
            out.append([piece])
    return out


def _join(group: Sequence[Piece]) -> Piece:
    return Piece(group[0].first_seq, concatenate_batches([piece.batch for piece in group]))


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
