"""Requests that carried an Idempotency-Key, by the digest of the key, for as long as a retry may
come. Derived: WAL frames and chunks hold the records."""

from collections.abc import Iterable

from logd.format.chunk import IdempotencyRecord

_SWEEP_EVERY = 4096


class IdempotencyTable:
    def __init__(self, keep_seconds: int) -> None:
        self._keep_ns = keep_seconds * 1_000_000_000
        self._records: dict[bytes, IdempotencyRecord] = {}
        self._added = 0

    def is_live(self, received_ns: int, now_ns: int) -> bool:
        return now_ns - received_ns < self._keep_ns

    def add(self, records: Iterable[IdempotencyRecord]) -> None:
        for record in records:
            self._records[record.idempotency.key_digest] = record
            self._added += 1
            if self._added % _SWEEP_EVERY == 0:
                self._sweep(record.received_ns)

    def _sweep(self, now_ns: int) -> None:
        live = {k: r for k, r in self._records.items() if self.is_live(r.received_ns, now_ns)}
        self._records = live

    def find(self, key_digest: bytes, now_ns: int) -> IdempotencyRecord | None:
        record = self._records.get(key_digest)
        if record is None or not self.is_live(record.received_ns, now_ns):
            return None
        return record
