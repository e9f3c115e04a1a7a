"""Sizes and budgets of the store, with their reasons."""

import msgspec


class StoreLimits(msgspec.Struct, frozen=True):
    """`chunk_entries` and `chunk_bytes`: a tail of nearly so many entries, or bytes of them,
    is frozen; larger chunks make queries cheaper and freezes longer. `min_freeze_entries`: a quiet
    tail smaller than this is cheap to search as it is. `segment_bytes` and `segment_seconds`: a
    segment is the unit in which retention deletes. `tail_bytes`: budget of all tails together.
    `merge_chunks`: so many small neighbours are folded into one. `min_free_disk_bytes`: below it no
    entries are taken, so that freezing, merging and deleting still can."""

    chunk_entries: int = 65_536
    chunk_bytes: int = 16 << 20
    min_freeze_entries: int = 1024
    block_entries: int = 4096
    segment_bytes: int = 256 << 20
    segment_seconds: int = 86_400
    tail_bytes: int = 256 << 20
    cache_bytes: int = 64 << 20
    merge_chunks: int = 8
    min_free_disk_bytes: int = 64 << 20
    idempotency_seconds: int = 86_400
