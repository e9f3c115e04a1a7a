"""Entries as JSON texts, delivered so that each is stored once or its refusal is known.

A batch goes with an idempotency key, so repeating it after a lost answer stores nothing twice. It
asks for `partial`: the daemon stores the good entries and names the bad ones. A batch refused as
a whole (too large for this daemon, or not decodable) is cut in halves until the entries at fault
are alone.
"""

import gzip
import uuid
from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec
import zstandard

from logd.client.channel import Channel
from logd.client.errors import BadAnswer, Refused
from logd.client.wire import Fault, IngestAnswer

Compression = Literal["none", "gzip", "zstd"]

GZIP_LEVEL: Final = 1
ZSTD_LEVEL: Final = 1

_BATCH_AT_FAULT: Final = frozenset({400, 413, 422})
"""Statuses that speak of the batch; the others (401, 403, 503, ...) would meet any batch."""


class Rejection(msgspec.Struct, frozen=True):
    """Entry `index` of those handed over was refused."""

    index: int
    reason: str


class IngestResult(msgspec.Struct, frozen=True):
    """`ids` in the order of the entries, None where one was refused."""

    ids: tuple[str | None, ...]
    rejected: tuple[Rejection, ...]

    @property
    def stored(self) -> int:
        return sum(entry_id is not None for entry_id in self.ids)


class Delivery:
    """The way of batches to the daemon. `new_key` makes idempotency keys."""

    def __init__(
        self,
        channel: Channel,
        compression: Compression = "none",
        new_key: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self._channel = channel
        self._compression = compression
        self._new_key = new_key

    def deliver(self, entries: Sequence[bytes]) -> IngestResult:
        """Raises ClientError where the daemon takes no batch at all: some entries may be stored."""
        if not entries:
            return IngestResult((), ())
        try:
            answer = self._posted(entries)
        except Refused as refused:
            if refused.status not in _BATCH_AT_FAULT:
                raise
            if len(entries) == 1:
                return IngestResult((None,), (Rejection(0, str(refused)),))
            middle = len(entries) // 2
            return _joined(self.deliver(entries[:middle]), self.deliver(entries[middle:]))
        if len(answer.ids) != len(entries):
            raise BadAnswer(f"{len(entries)} entries sent, {len(answer.ids)} ids received")
        return IngestResult(answer.ids, _rejections(answer))

    def _posted(self, entries: Sequence[bytes]) -> IngestAnswer:
        body = b"[" + b",".join(entries) + b"]"
        headers = {"Content-Type": "application/json", "Idempotency-Key": self._new_key()}
        if self._compression != "none":
            headers["Content-Encoding"] = self._compression
            body = _compressed(body, self._compression)
        return self._channel.post("/v1/ingest?partial=true", body, headers, IngestAnswer)


def _compressed(body: bytes, how: Literal["gzip", "zstd"]) -> bytes:
    if how == "gzip":
        return gzip.compress(body, GZIP_LEVEL, mtime=0)
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(body)


def _rejections(answer: IngestAnswer) -> tuple[Rejection, ...]:
    """One for each entry without id. The daemon explains only the first hundred."""
    faults: dict[int | None, list[Fault]] = {}
    for fault in answer.errors:
        faults.setdefault(fault.index, []).append(fault)
    return tuple(
        Rejection(index, "; ".join(map(str, faults.get(index, ()))) or "refused")
        for index, entry_id in enumerate(answer.ids)
        if entry_id is None
    )


def _joined(first: IngestResult, second: IngestResult) -> IngestResult:
    offset = len(first.ids)
    moved = (Rejection(offset + one.index, one.reason) for one in second.rejected)
    return IngestResult(first.ids + second.ids, (*first.rejected, *moved))
