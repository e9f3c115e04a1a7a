"""Requests that carried an Idempotency-Key, by the digest of the key, for as long as a retry may
come. Derived: WAL frames and chunks hold the records."""

from collections.abc import Iterable
from typing import Final

from logd.format.chunk import IdempotencyRecord

_FEW: Final = 16


class IdempotencyTable:
    """In parts, by the first byte of the digest. In a busy project there are a million records, and
    to look through all of them, or to move them to a larger table, would hold up the event loop."""

    def __init__(self, keep_seconds: int) -> None:
        self._keep_ns = keep_seconds * 1_000_000_000
        self._parts: dict[int, dict[bytes, IdempotencyRecord]] = {}
        self._room: dict[int, int] = {}

    def __len__(self) -> int:
        """Records, some of them too old."""
        return sum(map(len, self._parts.values()))

    def is_live(self, received_ns: int, now_ns: int) -> bool:
        return now_ns - received_ns < self._keep_ns

    def add(self, records: Iterable[IdempotencyRecord]) -> None:
        for record in records:
            key = record.idempotency.key_digest
            part = self._parts.setdefault(key[0], {})
            part[key] = record
            if len(part) > self._room.get(key[0], _FEW):
                self._sweep(key[0], record.received_ns)

    def _sweep(self, number: int, now_ns: int) -> None:
        """When a part has twice as many as the last time: few looks for each that is added."""
        part = self._parts[number]
        live = {k: r for k, r in part.items() if self.is_live(r.received_ns, now_ns)}
        self._parts[number] = live
        self._room[number] = max(2 * len(live), _FEW)

    def find(self, key_digest: bytes, now_ns: int) -> IdempotencyRecord | None:
        record = self._parts.get(key_digest[0], {}).get(key_digest)
        if record is None or not self.is_live(record.received_ns, now_ns):
            return None
        return record
