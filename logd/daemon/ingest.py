"""Entries on their way into the log: whole requests, and what comes at the same time at once."""

import logging
from collections.abc import Callable, Sequence

import trio

from logd.daemon.bodies import (
    Decoded,
    Ingested,
    decode_partial,
    decode_small,
    decode_whole,
    digests,
    ingested_each,
)
from logd.daemon.deputy import Commit
from logd.daemon.desk import Desk
from logd.daemon.desks import Desks
from logd.daemon.threads import in_thread
from logd.entry import Clock, ProjectId, Seq
from logd.errors import LogdError
from logd.format.chunk import IdempotencyRecord
from logd.format.wal import Idempotency
from logd.store.project import Request
from logd.store.recall import Unread

_log = logging.getLogger("logd.ingest")


class IdempotencyConflict(LogdError):
    """The Idempotency-Key was used with another request in the last 24 hours."""


class Ingest:
    def __init__(self, desks: Desks, clock: Clock, decoding: trio.CapacityLimiter) -> None:
        """`decoding`: of the threads that decode large bodies, and records of earlier ones."""
        self._desks = desks
        self._clock = clock
        self._decoding = decoding
        self._uncommitted: set[Desk] = set()

    async def store(
        self,
        project: ProjectId,
        body: bytes,
        *,
        ndjson: bool,
        partial: bool = False,
        idempotency_key: str | None = None,
    ) -> Ingested:
        """Store a request; it is durable and visible when this returns.

        Raises InvalidBody, InvalidEntries, ForeignProject, IdempotencyConflict, Overloaded,
        StorageFull, StorageFailed.
        """
        received_ns = self._clock()
        if partial:
            decoded = await decode_partial(project, body, received_ns, ndjson, self._decoding)
        else:
            decoded = await decode_whole(project, body, received_ns, ndjson, self._decoding)
        if decoded.batch is None or not decoded.batch.count:
            ids = await decoded.ids(project, None, self._decoding)
            return Ingested(0, ids, decoded.errors)
        if idempotency_key is None:
            desk = await self._desks.of(project)
            seq = await self._submit(desk, decoded.request(received_ns, None))
        else:
            idempotency = await digests(idempotency_key, body, ndjson, partial, self._decoding)
            desk = await self._desks.of(project)
            seq = await self._submit_once(desk, decoded, received_ns, idempotency)
        ids = await decoded.ids(project, seq, self._decoding)
        return Ingested(decoded.batch.count, ids, decoded.errors)

    def store_soon(
        self,
        project: ProjectId,
        bodies: Sequence[bytes],
        ndjson: bool,
        told: Callable[[Sequence[Ingested] | LogdError], None],
    ) -> bool:
        """As `store`, for a small body, or for several of one JSON entry each, which become one
        request to the store. False: nothing was done, as the project is not open, a body holds no
        entry, or something is not beyond doubt. Raises, before anything was done, what
        `Desk.submit_soon` raises. `commit_soon` or `take_commit` must follow; `told`: see
        `desk.Told`, with what came of each body."""
        desk = self._desks.if_open(project)
        if desk is None:
            return False
        request = decode_small(project, bodies, self._clock(), ndjson)
        if request is None:
            return False

        def stored(result: Seq | LogdError) -> None:
            if isinstance(result, LogdError):
                told(self._desks.as_told(project, result))
            else:
                self._desks.note_stored(desk)
                told(ingested_each(project, request, len(bodies), result))

        desk.submit_soon(request, stored)
        self._uncommitted.add(desk)
        return True

    def take_commit(self) -> Commit | None:
        """What `store_soon` took, for the deputy, if that is of one project; several sync at the
        same time, each in its own thread. None: there is none, or it is committed soon."""
        if len(self._uncommitted) == 1:
            (desk,) = self._uncommitted
            commit = desk.take_commit()
            if commit is not None:
                self._uncommitted.clear()
                return commit
        self.commit_soon()
        return None

    def commit_soon(self) -> None:
        """What `store_soon` took is committed by the writers."""
        while self._uncommitted:
            self._uncommitted.pop().commit_soon()

    async def _submit(self, desk: Desk, request: Request) -> Seq:
        with self._desks.telling(desk.project_id):
            seq = await desk.submit(request)
        self._desks.note_stored(desk)
        return seq

    async def _submit_once(
        self, desk: Desk, decoded: Decoded, received_ns: int, idempotency: Idempotency
    ) -> Seq:
        """The first sequence number of the request, stored now or when it first came."""
        key = idempotency.key_digest
        while (earlier := desk.keys_in_flight.get(key)) is not None:
            await earlier.wait()
        # Before anything is waited for: two that come at once must not both find the key unknown.
        done = desk.keys_in_flight[key] = trio.Event()
        try:
            record = await self._recall(desk, key)
            if record is not None:
                if record.idempotency.request_digest != idempotency.request_digest:
                    raise IdempotencyConflict("this Idempotency-Key came with another request")
                return record.first_seq
            # A caller that goes away must not leave the key open to a second store.
            with trio.CancelScope(shield=True):
                seq = await self._submit(desk, decoded.request(received_ns, idempotency))
        finally:
            del desk.keys_in_flight[key]
            done.set()
        return seq

    async def _recall(self, desk: Desk, key_digest: bytes) -> IdempotencyRecord | None:
        """What a request with this key stored lately. A new key is known to be new, and a record in
        the tail is found, at once: then this is no checkpoint. What cannot be read is taken for
        unknown: so entries may come twice, but none is lost."""
        found = desk.project.recall_at_hand(key_digest)
        if not isinstance(found, Unread):
            return found
        with self._desks.telling(desk.project_id), desk.reading(float("inf")):  # soon over
            recalled = await in_thread(found.read, self._decoding)
        for damage in recalled.damage:
            _log.error("project %s, records of Idempotency-Keys: %s", desk.project_id, damage)
        return recalled.record
