"""Bodies on their way to the store: what entries they hold, and their ids."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec
import trio

from logd.daemon.threads import in_thread
from logd.entry import ProjectId, Seq
from logd.errors import Overloaded
from logd.format.body import (
    Batch,
    EntryError,
    decode_body,
    decode_fast,
    decode_good_entries,
    decode_singles,
)
from logd.format.logid import ids_json, ids_json_each, ids_json_of_kept
from logd.format.wal import Idempotency
from logd.store.project import Request

T = TypeVar("T")

# What more than this takes a few milliseconds is done in a thread.
_INLINE_DECODE_BYTES: Final = 512 << 10
_INLINE_CAREFUL_BYTES: Final = 2 << 10  # a look at `{}` takes as long as one at an entry
_INLINE_DIGEST_BYTES: Final = 512 << 10
_INLINE_IDS: Final = 8192


class Ingested(msgspec.Struct, frozen=True):
    """`ids_json`: a JSON array with an id, or null, for each entry of the request; `errors`: of a
    partial ingest, the first 100."""

    count: int
    ids_json: bytes
    errors: tuple[EntryError, ...] = ()


class Decoded(msgspec.Struct, frozen=True):
    """A decoded request. `kept`: indexes of the entries that are stored, None if all are."""

    batch: Batch | None
    count: int
    kept: tuple[int, ...] | None
    errors: tuple[EntryError, ...]

    def request(self, received_ns: int, idempotency: Idempotency | None) -> Request:
        if self.batch is None:
            raise ValueError("a request without entries is not stored")
        return Request(self.batch, received_ns, idempotency)

    async def ids(
        self, project: ProjectId, first: Seq | None, limiter: trio.CapacityLimiter
    ) -> bytes:
        """As `Ingested.ids_json`. Of many in a thread, if there is one."""

        def write() -> bytes:
            if self.kept is None:
                return ids_json(project, first or Seq(0), self.count)
            return ids_json_of_kept(project, first or Seq(0), self.kept, self.count)

        try:
            return await _inline_or_not(write, self.count <= _INLINE_IDS, limiter)
        except Overloaded:  # by now they are stored: who is told to come again stores them twice
            return write()


async def decode_whole(
    project: ProjectId, body: bytes, received_ns: int, ndjson: bool, limiter: trio.CapacityLimiter
) -> Decoded:
    """All entries or none. Raises InvalidBody, InvalidEntries, ForeignProject. A large body is
    decoded in a thread, and one that is not so large where that takes longer than usual."""
    batch = _decode_briefly(project, body, received_ns, ndjson)
    if batch is None:
        batch = await _inline_or_not(
            lambda: decode_body(body, project, received_ns, ndjson=ndjson),
            len(body) <= _INLINE_CAREFUL_BYTES,
            limiter,
        )
    return Decoded(batch, batch.count, None, ())


async def decode_partial(
    project: ProjectId, body: bytes, received_ns: int, ndjson: bool, limiter: trio.CapacityLimiter
) -> Decoded:
    """The good entries, as a rule all of them. Raises InvalidBody."""
    batch = _decode_briefly(project, body, received_ns, ndjson)
    if batch is not None:
        return Decoded(batch, batch.count, None, ())

    def decode() -> Decoded:
        batch = decode_fast(body, project, received_ns, ndjson)
        if batch is not None:
            return Decoded(batch, batch.count, None, ())
        found = decode_good_entries(body, project, received_ns, ndjson=ndjson)
        return Decoded(found.batch, found.count, found.kept, found.errors)

    return await in_thread(decode, limiter)


def _decode_briefly(
    project: ProjectId, body: bytes, received_ns: int, ndjson: bool
) -> Batch | None:
    """All entries, or None where only a longer look can tell."""
    if len(body) > _INLINE_DECODE_BYTES:
        return None
    return decode_fast(body, project, received_ns, ndjson, briefly=True)


def decode_small(
    project: ProjectId, bodies: Sequence[bytes], received_ns: int, ndjson: bool
) -> Request | None:
    """A small body, or several of one JSON entry each, as one request to the store. None where
    there is no entry, or something is not beyond doubt."""
    if len(bodies) > 1:
        batch = decode_singles(bodies, project, received_ns)
    else:
        batch = _decode_briefly(project, bodies[0], received_ns, ndjson)
    return Request(batch, received_ns) if batch is not None and batch.count else None


def ingested_each(
    project: ProjectId, request: Request, bodies: int, first: Seq
) -> Sequence[Ingested]:
    """What came of each of the bodies that `decode_small` made a request of, whose entries have the
    numbers from `first` on."""
    count = request.batch.count
    if bodies == 1:
        return [Ingested(count, ids_json(project, first, count))]
    return [Ingested(1, ids) for ids in ids_json_each(project, first, count)]


async def digests(
    key: str, body: bytes, ndjson: bool, partial: bool, limiter: trio.CapacityLimiter
) -> Idempotency:
    """Of a large body in a thread."""
    return await _inline_or_not(
        lambda: _digests(key, body, ndjson, partial), len(body) <= _INLINE_DIGEST_BYTES, limiter
    )


async def _inline_or_not(
    call: Callable[[], T], is_inline: bool, limiter: trio.CapacityLimiter
) -> T:
    """What `call()` returns or raises, called here or in a thread."""
    return call() if is_inline else await in_thread(call, limiter)


def _digests(key: str, body: bytes, ndjson: bool, partial: bool) -> Idempotency:
    request = hashlib.blake2b(body, digest_size=16, person=b"logd-request")
    request.update(bytes([ndjson, partial]))
    return Idempotency(
        hashlib.blake2b(key.encode(), digest_size=16, person=b"logd-idem-key").digest(),
        request.digest(),
    )
