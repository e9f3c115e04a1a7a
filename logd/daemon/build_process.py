"""Building chunks in a process of its own.

A chunk costs more of one core than decoding and framing its entries does, and much of that is with
Python's interpreter lock held. In a thread of the daemon that is time in which nothing is
acknowledged; in another process it runs beside. The process is started by the first large job, ends
after a quiet spell, and is never needed: whatever happens to it, the chunk is built here instead.
"""

import contextlib
import fcntl
import logging
import os
import select
import subprocess
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from logd.daemon.build_worker import BuildFailed, encode_job, read_reply
from logd.daemon.child import start_child
from logd.format.chunk import BuiltChunk, IdempotencyRecord
from logd.store.freeze import build_chunks
from logd.store.limits import StoreLimits
from logd.store.tail import Piece

_log = logging.getLogger("logd.upkeep")

_WORTH_STARTING_ENTRIES: Final = 16_384
_JOB_SECONDS: Final = 120.0
_PAUSE_SECONDS: Final = 60.0
_WRITE_BUFFERS: Final = 512  # the system takes 1,024 at once
_READ_BYTES: Final = 1 << 20
_PIPE_BYTES: Final = 1 << 20


class BuildProcess:
    """A `ChunkBuilder`. One call at a time, `rest` included. `enabled`: else all is built here."""

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled
        self._worker: _Worker | None = None
        self._not_before = 0.0

    def __call__(
        self,
        pieces: Sequence[Piece],
        records: Sequence[IdempotencyRecord],
        limits: StoreLimits,
    ) -> list[BuiltChunk]:
        worker = self._worker_for(sum(piece.batch.count for piece in pieces))
        if worker is not None:
            try:
                return worker.build(pieces, records, limits)
            except (OSError, EOFError, ValueError, msgspec.MsgspecError, BuildFailed) as error:
                _log.warning("the process that builds chunks failed: %r", error)
                self._not_before = time.monotonic() + _PAUSE_SECONDS
                self.rest()
            except BaseException:  # as where memory is short: the reply must not be the next job's
                self.rest()
                raise
        return build_chunks(pieces, records, limits)

    def _worker_for(self, entries: int) -> "_Worker | None":
        """None where the job is done here."""
        if self._worker is None and (
            self._enabled
            and entries >= _WORTH_STARTING_ENTRIES
            and time.monotonic() >= self._not_before
        ):
            try:
                self._worker = _Worker()
            except OSError as error:
                _log.warning("the process that builds chunks cannot be started: %s", error)
                self._not_before = time.monotonic() + _PAUSE_SECONDS
        return self._worker

    def rest(self) -> None:
        """Ends the process; the next large job starts it again."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None


class _Worker:
    """The process. Every wait for it has a deadline."""

    def __init__(self) -> None:
        """Raises OSError where it cannot be started."""
        self._process = start_child(
            "logd.daemon.build_worker", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise OSError("no pipe to the process")
        self._jobs, self._replies = self._process.stdin.fileno(), self._process.stdout.fileno()
        for pipe in (self._jobs, self._replies):
            os.set_blocking(pipe, False)
            with contextlib.suppress(OSError):  # beyond what the system grants a user
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._deadline = 0.0

    def build(
        self,
        pieces: Sequence[Piece],
        records: Sequence[IdempotencyRecord],
        limits: StoreLimits,
    ) -> list[BuiltChunk]:
        """Raises BuildFailed, EOFError and OSError, after which nothing more may be asked."""
        self._deadline = time.monotonic() + _JOB_SECONDS
        self._write(encode_job(pieces, records, limits))
        return read_reply(self._read)

    def _write(self, blobs: Sequence[bytes]) -> None:
        waiting = [memoryview(blob) for blob in reversed(blobs) if blob]
        while waiting:
            self._wait(self._jobs, select.POLLOUT)
            written = os.writev(self._jobs, waiting[: -_WRITE_BUFFERS - 1 : -1])
            while waiting and written >= len(waiting[-1]):
                written -= len(waiting.pop())
            if written:
                waiting[-1] = waiting[-1][written:]

    def _read(self, size: int) -> bytes:
        pieces: list[bytes] = []
        while size:
            self._wait(self._replies, select.POLLIN)
            piece = os.read(self._replies, min(size, _READ_BYTES))
            if not piece:
                raise EOFError("it ended")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _wait(self, descriptor: int, event: int) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        if not poll.poll(max(0.0, self._deadline - time.monotonic()) * 1000):
            raise TimeoutError("it does not answer")

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
