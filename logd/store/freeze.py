"""Turning entries into chunks. Pure, and much work: another process may do it (`ChunkBuilder`)."""

from collections.abc import Sequence
from typing import Protocol

from logd.entry import Seq
from logd.format.body import Batch, concatenate_batches
from logd.format.chunk import MAX_ENTRIES, BuiltChunk, IdempotencyRecord, build_chunk
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
    built: list[BuiltChunk] = []
    most = min(limits.chunk_entries, MAX_ENTRIES)
    for piece in map(_join, stretches(pieces)):
        size = -(-piece.batch.count // -(-piece.batch.count // most))
        for start in range(0, piece.batch.count, size):
            batch = slice_batch(piece.batch, start, min(start + size, piece.batch.count))
            first_seq = Seq(piece.first_seq + start)
            mine = [r for r in records if first_seq <= r.first_seq < first_seq + batch.count]
            built.append(build_chunk(batch, first_seq, mine, limits.block_entries))
    return built


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
