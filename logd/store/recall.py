"""What a request with an Idempotency-Key stored, found again.

The table (`idempotency.py`) names sequence numbers that the key may have. As a rule there are none,
and the key is new; a retry mostly comes so soon that its record is in the tail. Only otherwise
chunks have to be read, which is for a thread: see `Unread`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

import msgspec
import numpy as np

from logd.entry import Seq
from logd.errors import Corruption
from logd.format.chunk import IdempotencyRecord, RecordColumns
from logd.store.chunk_reader import ChunkReader
from logd.store.idempotency import IdempotencyTable
from logd.store.tail import TailRun

_AT_ONCE: Final = 16_384
"""Records, 80 bytes each: enough for each part of the table to get several."""

_first_seq = attrgetter("first_seq")


class Sought(msgspec.Struct, frozen=True):
    """A key, and how old its record may be: what was received at `too_old_ns` or before is
    forgotten."""

    key_digest: bytes
    too_old_ns: int

    def is_of(self, record: IdempotencyRecord) -> bool:
        is_same = record.idempotency.key_digest == self.key_digest
        return is_same and record.received_ns > self.too_old_ns


class Recalled(msgspec.Struct, frozen=True):
    """`record`: None where the key is unknown. `damage`: what could not be read, and may have held
    it."""

    record: IdempotencyRecord | None
    damage: tuple[Corruption, ...] = ()


class Unread(msgspec.Struct, frozen=True):
    """Chunks that may hold the record, each with the number of its first entry; the latest first.
    Immutable."""

    sought: Sought
    places: tuple[tuple[ChunkReader, Seq], ...]

    def read(self) -> Recalled:
        """From any thread, while the project stays open."""
        damage: list[Corruption] = []
        for chunk, first_seq in self.places:
            try:
                record = chunk.idempotency_record(first_seq)
            except Corruption as error:
                damage.append(error)
                continue
            if record is not None and self.sought.is_of(record):
                return Recalled(record, tuple(damage))
        return Recalled(None, tuple(damage))


def recall(
    sought: Sought,
    candidates: Sequence[Seq],
    runs: Sequence[TailRun],
    chunks: Sequence[ChunkReader],
) -> IdempotencyRecord | Unread | None:
    """`candidates`: the latest first. `chunks`: in order of sequence."""
    places: list[tuple[ChunkReader, Seq]] = []
    for first_seq in candidates:
        record = _in_runs(runs, first_seq)
        if record is not None and sought.is_of(record):
            return record
        chunk = _chunk_of(chunks, first_seq) if record is None else None
        if chunk is not None and chunk.row.last_record_ns > sought.too_old_ns:
            places.append((chunk, first_seq))
    return Unread(sought, tuple(places)) if places else None


def _in_runs(runs: Sequence[TailRun], first_seq: Seq) -> IdempotencyRecord | None:
    for run in runs:
        record = run.record_of(first_seq)
        if record is not None:
            return record
    return None


def _chunk_of(chunks: Sequence[ChunkReader], seq: Seq) -> ChunkReader | None:
    """The chunk that holds this entry, if it holds records."""
    at = bisect_right(chunks, seq, key=_first_seq) - 1
    if at < 0:
        return None
    row = chunks[at].row
    return chunks[at] if row.records and seq < row.next_seq else None


def add_chunks(
    table: IdempotencyTable, chunks: Iterable[ChunkReader], now_ns: int
) -> tuple[Corruption, ...]:
    """Add the records of chunks, given in order of sequence, that hold some which are not too old;
    what could not be read."""
    damage: list[Corruption] = []
    waiting: list[RecordColumns] = []
    records = 0
    for chunk in chunks:
        if not chunk.row.records or not table.is_live(chunk.row.last_record_ns, now_ns):
            continue
        try:
            waiting.append(chunk.idempotency_columns())
        except Corruption as error:
            damage.append(error)
            continue
        records += chunk.row.records
        if records >= _AT_ONCE:
            _add_all(table, waiting)
            records = 0
    _add_all(table, waiting)
    return tuple(damage)


def _add_all(table: IdempotencyTable, waiting: list[RecordColumns]) -> None:
    """The list is empty then."""
    if waiting:
        table.add_many(RecordColumns(*map(np.concatenate, zip(*waiting, strict=True))))
        waiting.clear()
