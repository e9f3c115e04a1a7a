"""Which small chunks to fold into one, and what the one holds.

Budgets and quiet projects freeze small chunks, each into a segment file of its own. Neighbours of
like size are merged, `merge_chunks` at a time, so that an entry is rewritten a logarithmic number
of times; where sizes alternate so much that this finds nothing, a long row of them is merged whole.
"""

from collections.abc import Callable, Container, Sequence

import numpy as np

from logd.entry import LEVEL_CODE, Seq
from logd.format.body import Batch
from logd.format.directory import ChunkRow
from logd.format.separated import SEPARATOR, join_texts
from logd.store.chunk_reader import ChunkReader
from logd.store.limits import StoreLimits
from logd.store.tail import Piece

_LONG_ROW = 8  # times `merge_chunks`


def is_small(count: int, source_bytes: int, limits: StoreLimits) -> bool:
    """Two small chunks always fit into one."""
    return count <= limits.chunk_entries // 2 and source_bytes <= limits.chunk_bytes // 2


def plan_merge(
    rows: Sequence[ChunkRow], limits: StoreLimits, unmergeable: Container[Seq] = ()
) -> list[ChunkRow] | None:
    """Neighbours to merge now, of `rows` by first sequence number, or None. `unmergeable`: the
    first sequence numbers of chunks that cannot be read."""
    readable = [row for row in rows if row.first_seq not in unmergeable]
    for stretch in _stretches(readable, lambda a, b: True, limits):
        for alike in _stretches(stretch, lambda a, b: _tier(a, limits) == _tier(b, limits), limits):
            group = _fitting(alike, limits)
            if len(group) >= limits.merge_chunks or _is_full(group, limits):
                return group
        if len(stretch) >= _LONG_ROW * limits.merge_chunks:
            return _fitting(stretch, limits)
    return None


def _stretches(
    rows: Sequence[ChunkRow], alike: Callable[[ChunkRow, ChunkRow], bool], limits: StoreLimits
) -> list[list[ChunkRow]]:
    """Maximal runs of small chunks without gaps between them, each like the one before it."""
    out: list[list[ChunkRow]] = [[]]
    for row in rows:
        if not is_small(row.count, row.source_bytes, limits):
            out.append([])
            continue
        last = out[-1][-1] if out[-1] else None
        if last is not None and (last.next_seq != row.first_seq or not alike(last, row)):
            out.append([])
        out[-1].append(row)
    return [stretch for stretch in out if len(stretch) > 1]


def _tier(row: ChunkRow, limits: StoreLimits) -> int:
    tier, size = 0, 1
    while size * limits.merge_chunks <= row.count:
        size *= limits.merge_chunks
        tier += 1
    return tier


def _fitting(stretch: Sequence[ChunkRow], limits: StoreLimits) -> list[ChunkRow]:
    """As many of the first as one chunk may hold."""
    group: list[ChunkRow] = []
    for row in stretch:
        group.append(row)
        if _over(group, limits):
            return group[:-1]
    return group


def _over(group: Sequence[ChunkRow], limits: StoreLimits) -> bool:
    entries = sum(row.count for row in group)
    return entries > limits.chunk_entries or sum(r.source_bytes for r in group) > limits.chunk_bytes


def _is_full(group: Sequence[ChunkRow], limits: StoreLimits) -> bool:
    return len(group) > 1 and 2 * sum(row.count for row in group) > limits.chunk_entries


def entries_of(reader: ChunkReader) -> Piece:
    """A chunk's entries in the order of their sequence numbers. Raises Corruption."""
    entries = reader.entries(np.arange(reader.count))
    batch = Batch(
        count=len(entries),
        ts=np.array([entry.ts_ns for entry in entries], np.int64),
        levels=bytes([LEVEL_CODE[entry.level] for entry in entries]),
        messages=join_texts([entry.message for entry in entries]),
        sources=join_texts([entry.source for entry in entries]),
        tags=SEPARATOR.join([entry.tags for entry in entries]),
        metas=SEPARATOR.join([entry.meta for entry in entries]),
    )
    return Piece(reader.first_seq, batch)
