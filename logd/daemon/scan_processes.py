"""Scanning chunks in processes of their own.

A scan is much work and holds the interpreter lock for a good part of it: time in which a daemon
acknowledges nothing. In other processes, of lower priority, it runs beside, on as many cores as
there are. They are started when scans come one after the other, or when one query has very many,
take part as soon as they are ready, end after a quiet spell, and are never needed: whatever happens
to them, the chunk is scanned in the thread that asks.
"""

import concurrent.futures
import contextlib
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec

from logd.daemon.child import start_child
from logd.daemon.scan_worker import MAX_BYTES, ScanFailed, decode_reply, encode_job
from logd.errors import Cancelled
from logd.store.chunk_reader import ChunkReader
from logd.store.chunk_scans import Scan, scan_chunk
from logd.store.page import Check
from logd.store.selection import Bools

_log = logging.getLogger("logd.logs")

QUIET_SECONDS: Final = 10.0
_WORTH_STARTING_SCANS: Final = 8  # while entries come in
_WORTH_STARTING_SCANS_ALONE: Final = 32  # a start takes as long as a few dozen scans, and a core
_WORTH_STARTING_ALL: Final = 96  # chunks of one query: it is not over when they are ready
_BURST_SECONDS: Final = 1.0
_START_SECONDS: Final = 30.0
_SCAN_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 60.0
_CHECK_SECONDS: Final = 0.02
_NICENESS: Final = 10
_CACHE_SHARE: Final = 4


class ScanProcesses:
    """A `Scanner`. `most`: processes, of which there is one a core at most; with 0 all is scanned
    here. `cache_bytes`: what the daemon itself may keep of chunks; each process keeps a fourth of
    that. `is_writing()`: entries come in, and go first. `cores`: those that may be used."""

    def __init__(
        self,
        most: int,
        cache_bytes: int,
        is_writing: Callable[[], bool],
        *,
        cores: int,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self._is_writing = is_writing
        self._quiet_seconds = quiet_seconds
        self._most = min(most, cores)
        self._most_beside_writers = min(self._most, max(1, cores - 1))
        self._cache_bytes = cache_bytes // _CACHE_SHARE
        self._changed = threading.Condition()
        self._idle: list[_Worker] = []
        self._starting: list[_Worker] = []
        self._busy = 0
        self._scans = 0
        self._used_at = 0.0
        self._not_before = 0.0
        self._threads: concurrent.futures.ThreadPoolExecutor | None = None
        self._sharing: list[_Shared] = []

    # ------------------------------------------------------------ scanning

    def scan(self, reader: ChunkReader, scan: Scan, check: Check) -> Bools:
        worker = self._take(check) if self._most else None
        if worker is None:
            return scan_chunk(reader, scan, check)
        try:
            found = worker.scan(reader, scan, check, gently=self._is_writing())
        except Cancelled:
            self._give_back(worker)
            raise
        except (OSError, EOFError, ValueError, msgspec.MsgspecError) as error:
            self._lose(worker, error)
            return scan_chunk(reader, scan, check)
        except BaseException:
            self._lose(worker, None)
            raise
        self._give_back(worker)
        return scan_chunk(reader, scan, check) if found is None else found

    def share(self, work: Callable[[], None], items: int) -> None:
        shared = _Shared(work)
        with self._changed:
            if items >= _WORTH_STARTING_ALL and not self._is_writing():
                self._start_missing(self._most)
            self._welcome()
            if min(self.ready + len(self._starting), self._at_once) < 2:
                return
            self._sharing.append(shared)
            self._invite()
        try:
            work()
        finally:
            with self._changed:
                self._sharing.remove(shared)
            shared.end()
        if shared.error is not None:
            raise shared.error

    def _invite(self) -> None:
        """A thread for each process that is ready, to what is shared: also for those that have
        become ready since it began."""
        helpers = min(self.ready, self._at_once) - 1
        with contextlib.suppress(RuntimeError):  # no thread can be started: fewer help
            for shared in self._sharing:
                while shared.invited < helpers:
                    if self._threads is None:
                        self._threads = concurrent.futures.ThreadPoolExecutor(
                            self._most - 1, "scan"
                        )
                    shared.invited += 1
                    self._threads.submit(shared.help)

    # ------------------------------------------------------------ processes

    def _take(self, check: Check) -> "_Worker | None":
        """One that is ready; where all are at work, the next. None where there is none."""
        with self._changed:
            self._note_scan()
            self._welcome()
            if self._scans >= self._worth_starting and not self._starting:
                self._start_missing(1)  # the query that is under way needs the cores too
            while self._busy and (not self._idle or self._busy >= self._at_once):
                self._changed.wait(_CHECK_SECONDS)
                check()
            if self._idle:
                self._busy += 1
                return self._idle.pop()
            return None

    def _note_scan(self) -> None:
        now = time.monotonic()
        if now - self._used_at > _BURST_SECONDS:
            self._scans = 0
        self._scans += 1
        self._used_at = now

    @property
    def _worth_starting(self) -> int:
        return _WORTH_STARTING_SCANS if self._is_writing() else _WORTH_STARTING_SCANS_ALONE

    def _start_missing(self, most: int) -> None:
        """So many at most."""
        missing = self._most - self.ready - len(self._starting)
        if time.monotonic() < self._not_before:
            return
        try:
            for _ in range(min(missing, most)):
                self._starting.append(_Worker(self._cache_bytes))
        except OSError as error:
            _log.warning("a process that scans chunks cannot be started: %s", error)
            self._not_before = time.monotonic() + _PAUSE_SECONDS

    def _welcome(self) -> None:
        """Those that have become ready meanwhile."""
        for worker in self._starting[:]:
            try:
                ready = worker.is_ready()
            except (OSError, EOFError) as error:
                self._starting.remove(worker)
                self._end(worker, error)
                continue
            if ready:
                self._starting.remove(worker)
                self._idle.append(worker)
                self._invite()

    def _give_back(self, worker: "_Worker") -> None:
        with self._changed:
            self._busy -= 1
            self._idle.append(worker)
            self._used_at = time.monotonic()
            self._changed.notify()

    def _lose(self, worker: "_Worker", error: Exception | None) -> None:
        with self._changed:
            self._busy -= 1
            self._end(worker, error)
            self._changed.notify()

    def _end(self, worker: "_Worker", error: Exception | None) -> None:
        if error is not None:
            _log.warning("a process that scans chunks failed: %r", error)
            self._not_before = time.monotonic() + _PAUSE_SECONDS
        worker.end()

    @property
    def _at_once(self) -> int:
        """How many may be at work. One core is left to those who write: where all are taken they
        wait for a tick of the system's clock, now and then, at every step."""
        return self._most_beside_writers if self._is_writing() else self._most

    @property
    def ready(self) -> int:
        """How many processes there are to scan."""
        return len(self._idle) + self._busy

    @property
    def is_quiet(self) -> bool:
        """There are processes, and nobody has needed them for a while."""
        waiting = bool(self._idle or self._starting) and not self._busy
        return waiting and time.monotonic() - self._used_at >= self._quiet_seconds

    def rest(self) -> None:
        """Ends the processes that are not at work; scans start them again."""
        with self._changed:
            for worker in self._idle + self._starting:
                worker.end()
            self._idle.clear()
            self._starting.clear()

    def close(self) -> None:
        """No scan may be under way."""
        self.rest()
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None


class _Shared:
    """Work that other threads take part in until it ends. One may come late, or never: where a
    thread cannot be started its call is left for the others."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.invited = 0
        self._work = work
        self._changed = threading.Condition()
        self._helping = 0
        self._is_over = False
        self.error: BaseException | None = None

    def help(self) -> None:
        with self._changed:
            if self._is_over:
                return
            self._helping += 1
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  # raised by who shared the work
            self.error = error
        finally:
            with self._changed:
                self._helping -= 1
                self._changed.notify()

    def end(self) -> None:
        """When this returns nobody is at work."""
        with self._changed:
            self._is_over = True
            while self._helping:
                self._changed.wait()


class _Worker:
    """A process. Every wait for it has a deadline. One call at a time."""

    def __init__(self, cache_bytes: int) -> None:
        """Raises OSError where it cannot be started."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._process = start_child(
                    "logd.daemon.scan_worker", str(cache_bytes), stdin=theirs.fileno()
                )
            except OSError:
                self._socket.close()
                raise
        with contextlib.suppress(OSError):  # it may have ended
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICENESS)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._owed = 0
        self._deadline = time.monotonic() + _START_SECONDS

    def is_ready(self) -> bool:
        """Whether it has said so. Raises EOFError, OSError."""
        if self._poll.poll(0):
            self._receive()
            return True
        if time.monotonic() > self._deadline:
            raise TimeoutError("it does not become ready")
        return False

    def scan(self, reader: ChunkReader, scan: Scan, check: Check, *, gently: bool) -> Bools | None:
        """None where it cannot be done in another process. What `check` raises ends the wait: the
        reply is left for the next call to throw away. Raises ScanFailed, EOFError, ValueError,
        msgspec.MsgspecError and OSError, after which nothing more may be asked."""
        descriptor = reader.descriptor
        message = encode_job(reader.number, reader.row, scan, gently=gently)
        if descriptor is None or len(message) > MAX_BYTES:
            return None
        self._deadline = time.monotonic() + _SCAN_SECONDS
        while self._owed:
            self._await(check)
        socket.send_fds(self._socket, [message], [descriptor])
        self._owed += 1
        try:
            return decode_reply(self._await(check), reader.count)
        except ScanFailed as error:
            _log.warning("a process could not scan a chunk: %s", error)
            return None

    def _await(self, check: Check) -> bytes:
        """The next reply that it owes."""
        while not self._poll.poll(_CHECK_SECONDS * 1000):
            check()
            if time.monotonic() > self._deadline:
                raise TimeoutError("it does not answer")
        self._owed -= 1
        return self._receive()

    def _receive(self) -> bytes:
        data = self._socket.recv(MAX_BYTES)
        if not data:
            raise EOFError("it ended")
        return data

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._socket.close()
