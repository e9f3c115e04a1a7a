"""LogdHandler: Python's logging, sent to logd from a thread of its own."""

import collections
import logging
import os
import sys
import threading
from collections.abc import Sequence
from typing import Final

from logd.client.client import LogdClient
from logd.client.delivery import Compression
from logd.client.errors import ClientError
from logd.client.record import entry_of

MAX_BATCH_ENTRIES: Final = 1000
MAX_BATCH_BYTES: Final = 4 * 1024 * 1024
MAX_QUEUE_BYTES: Final = 64 * 1024 * 1024
"""Whatever the number of records: they may be 70 KB each."""

_LAST_SECONDS: Final = 0.5
"""For the thread to say what is lost, where the daemon had its time already."""


class LogdHandler(logging.Handler):
    """Never blocks the program that logs, and never raises in it.

    Records wait in a queue of at most `capacity`; a thread sends them in batches, at the latest
    `flush_seconds` after the first came, and repeats for `retry_seconds` while the daemon cannot
    be reached. What finds the queue full, or is given up, is counted in `dropped`.
    `logging.shutdown`, at the program's end, waits `exit_seconds` for the queue to empty.
    """

    _changed: threading.Condition

    def __init__(
        self,
        url: str,
        key: str,
        project_id: str,
        *,
        level: int = logging.NOTSET,
        tags: Sequence[str] = (),
        capacity: int = 10_000,
        flush_seconds: float = 1.0,
        retry_seconds: float = 60.0,
        exit_seconds: float = 5.0,
        compression: Compression = "none",
    ) -> None:
        """Raises ClientError where `url` or `key` cannot be used."""
        super().__init__(level)
        self._url, self._key, self._project_id = url, key, project_id
        self._tags = tuple(tags)
        self._capacity = capacity
        self._flush_seconds = flush_seconds
        self._retry_seconds = retry_seconds
        self._exit_seconds = exit_seconds
        self._compression = compression
        self._begin()

    @property
    def dropped(self) -> int:
        """Records of this process that were not stored, and never will be."""
        return self._dropped

    def handle(self, record: logging.LogRecord) -> bool:
        """Not for what the HTTP library says about our own requests: that would never come to an
        end, and would wait here for the lock that `logging.shutdown` holds while it flushes."""
        if threading.get_ident() == self._thread.ident:
            return False
        return bool(super().handle(record))

    def emit(self, record: logging.LogRecord) -> None:
        if self._pid != os.getpid():
            self._begin()
        try:
            self._enqueue(entry_of(record, self.format(record), self._tags, self._project_id))
        except Exception:  # noqa: BLE001 - logging's contract: a bad log call stops no program
            self.handleError(record)

    def flush(self) -> None:
        """Waits until all that was logged is stored or given up, `exit_seconds` at most."""
        if self._pid != os.getpid():
            self._begin()
        with self._changed:
            self._hurried = True
            self._changed.notify_all()
            emptied = self._changed.wait_for(
                lambda: not (self._queue or self._sending), self._exit_seconds
            )
            self._waited_in_vain = not emptied
            self._hurried = False

    def close(self) -> None:
        if not self._waited_in_vain:  # by `logging.shutdown`, a moment ago
            self.flush()
        with self._changed:
            self._stopping.set()
            self._drop(len(self._queue), "the program ended before they could be sent")
            self._queue.clear()
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(_LAST_SECONDS if self._waited_in_vain else self._exit_seconds)
        else:
            self._client.close()
        super().close()

    def _begin(self) -> None:
        """An empty queue, and a thread that starts with the first record. Also in the child of a
        fork, which has the parent's queue but no thread."""
        self._pid = os.getpid()
        self._queue: collections.deque[bytes] = collections.deque()
        self._queue_bytes = 0
        self._sending = 0
        self._dropped = 0
        self._said = ""
        self._hurried = False
        self._waited_in_vain = False
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send_all, name="logd-handler", daemon=True)
        self._client = LogdClient(
            self._url,
            self._key,
            self._project_id,
            compression=self._compression,
            retry_seconds=self._retry_seconds,
            sleep=self._stopping.wait,
        )

    def _enqueue(self, entry: bytes) -> None:
        with self._changed:
            full = len(self._queue) >= self._capacity or self._queue_bytes >= MAX_QUEUE_BYTES
            if full or self._stopping.is_set():
                self._drop(1, "the queue is full" if full else "the handler is closed")
                return
            self._waited_in_vain = False
            self._queue.append(entry)
            self._queue_bytes += len(entry)
            if self._thread.ident is None:
                self._thread.start()
            self._changed.notify_all()

    def _send_all(self) -> None:
        with self._client:
            while batch := self._next_batch():
                lost, reason = self._sent(batch)
                with self._changed:
                    self._drop(lost, reason)
                    self._sending = 0
                    self._changed.notify_all()

    def _next_batch(self) -> list[bytes]:
        """What is queued, as far as it fits into one request; none once the handler is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._stopping.is_set())
            self._changed.wait_for(self._is_due, self._flush_seconds)
            batch: list[bytes] = []
            room = MAX_BATCH_BYTES
            while self._queue and len(batch) < MAX_BATCH_ENTRIES and room > 0:
                batch.append(self._queue.popleft())
                room -= len(batch[-1])
            self._queue_bytes -= MAX_BATCH_BYTES - room
            self._sending = len(batch)
            return batch

    def _is_due(self) -> bool:
        full = len(self._queue) >= MAX_BATCH_ENTRIES or self._queue_bytes >= MAX_BATCH_BYTES
        return full or self._hurried or self._stopping.is_set()

    def _sent(self, batch: list[bytes]) -> tuple[int, str]:
        """How many of them were not stored, and why."""
        try:
            result = self._client.ingest_encoded(batch)
        except ClientError as error:
            return len(batch), str(error)
        reason = result.rejected[0].reason if result.rejected else ""
        return len(result.rejected), reason

    def _drop(self, count: int, reason: str) -> None:
        """Counts them, and says a new reason on stderr where logging reports its own errors."""
        self._dropped += count
        if count and reason != self._said and logging.raiseExceptions and sys.stderr:
            self._said = reason
            sys.stderr.write(f"logd: log records are lost: {reason}\n")
