"""Chunks scanned in processes of their own give the rows that they give here, whatever happens to
the processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from child_processes import children_that_run
from store_world import World, entry, new_world

from logd.daemon.scan_processes import ScanProcesses
from logd.errors import Cancelled, Corruption
from logd.query.ast import Filter, Term, Word, WordKind
from logd.query.syntax import parse_search
from logd.store.cache import PartCache
from logd.store.chunk_reader import ChunkReader
from logd.store.chunk_scans import (
    MetaScan,
    PhraseScan,
    Scan,
    ScanHere,
    Scanner,
    VariableScan,
    scan_chunk,
)
from logd.store.files import OsFile
from logd.store.limits import StoreLimits
from logd.store.search import Found, search

CHUNKS = 6
ENTRIES = 500
PATIENCE_SECONDS = 60.0
CACHE_BYTES = 4 << 20
LIMITS = StoreLimits(min_free_disk_bytes=0, cache_bytes=0)  # so that nothing is remembered

PREFIX = VariableScan(Word("7", WordKind.PREFIX))
SUBSTRING = VariableScan(Word("grüße", WordKind.SUBSTRING))
META = MetaScan(Term((Word("9"),), meta_path=("size",)))
SEARCHES = ["7*", "grüße*", "meta.size:9", '"took 12 ms"', "-meta.size:1*", "user OR 3*", "absent*"]


def said(number: int) -> str:
    return f"request {number} took {number % 97} ms, user u{number % 13} grüße{number % 7}"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with new_world(LIMITS) as opened:
        for chunk in range(CHUNKS):
            numbers = range(chunk * ENTRIES, (chunk + 1) * ENTRIES)
            metas = [b'{"size":%d}' % (n % 30) for n in numbers]
            new = zip(numbers, metas, strict=True)
            opened.store_entries([entry(said(n), n, meta=meta) for n, meta in new])
            opened.project.freeze()
        assert len(opened.project.snapshot().chunks) == CHUNKS
        yield opened


@pytest.fixture
def chunk(world: World) -> ChunkReader:
    return world.project.snapshot().chunks[2]


def workers() -> list[int]:
    return children_that_run("scan_worker")


@pytest.fixture
def processes() -> Iterator[ScanProcesses]:
    scanner = ScanProcesses(2, CACHE_BYTES, lambda: False, cores=2)
    try:
        yield scanner
    finally:
        scanner.close()
    assert workers() == []


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def warmed(scanner: ScanProcesses, chunk: ChunkReader, count: int = 2) -> list[int]:
    """Scans until so many processes are ready; their ids."""

    def all_take_part() -> bool:
        scan_here_too(scanner, chunk, PREFIX)
        return scanner.ready == count

    until(all_take_part)
    found = workers()
    assert len(found) == count
    return found


def scan_here_too(scanner: Scanner, chunk: ChunkReader, scan: Scan) -> None:
    expected = scan_chunk(chunk, scan, never)
    assert np.array_equal(scanner.scan(chunk, scan, never), expected)


def never() -> None:
    """Does not end a scan."""


class Impatient:
    """Ends a scan when it is asked for the nth time, and from then on."""

    def __init__(self, times: int) -> None:
        self._left = times

    def __call__(self) -> None:
        self._left -= 1
        if self._left <= 0:
            raise Cancelled("enough")


class Halted:
    """Processes that are stopped for a while: whoever waits for them waits."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids

    def __enter__(self) -> None:
        for pid in self._pids:
            os.kill(pid, signal.SIGSTOP)

    def __exit__(self, *exc_info: object) -> None:
        for pid in self._pids:
            os.kill(pid, signal.SIGCONT)


def found_by(scanner: Scanner, world: World, text: str, limit: int = 10_000) -> Found:
    snapshot = world.project.snapshot()
    filter_ = Filter(search=parse_search(text))
    return search(snapshot, filter_, limit, None, with_total=True, scanner=scanner, check=never)


@pytest.mark.parametrize("limit", [3, 10_000])
def test_searches_find_the_same(processes: ScanProcesses, world: World, limit: int) -> None:
    warmed(processes, world.project.snapshot().chunks[0])
    for text in SEARCHES:
        here = found_by(ScanHere(), world, text, limit)
        assert found_by(processes, world, text, limit) == here, text
        assert (here.total == 0) is (text == "absent*")


def test_scans_find_the_same(processes: ScanProcesses, chunk: ChunkReader) -> None:
    words = (Word("took"), Word("12"), Word("ms"))
    codes = np.unique(chunk.template_codes()).astype(np.int64)
    warmed(processes, chunk)
    phrases = [PhraseScan(words, None, None), PhraseScan(words, codes, (0,))]
    scans: list[Scan] = [PREFIX, SUBSTRING, META, *phrases]
    for scan in scans:
        assert scan_chunk(chunk, scan, never).any()
        scan_here_too(processes, chunk, scan)


def test_the_processes_do_the_work(processes: ScanProcesses, chunk: ChunkReader) -> None:
    with Halted(warmed(processes, chunk)), pytest.raises(Cancelled):
        processes.scan(chunk, PREFIX, Impatient(3))


def test_a_few_scans_start_no_process(processes: ScanProcesses, chunk: ChunkReader) -> None:
    for _ in range(3):
        scan_here_too(processes, chunk, META)
    assert workers() == []


def test_without_processes_all_is_scanned_here(chunk: ChunkReader) -> None:
    scanner = ScanProcesses(0, CACHE_BYTES, lambda: False, cores=2)
    for _ in range(30):
        scan_here_too(scanner, chunk, META)
    assert workers() == []
    scanner.close()


def test_there_is_one_process_a_core_at_most(chunk: ChunkReader) -> None:
    scanner = ScanProcesses(2, CACHE_BYTES, lambda: False, cores=1)
    try:
        pids = warmed(scanner, chunk, 1)
        for _ in range(50):
            scan_here_too(scanner, chunk, META)
        assert workers() == pids
    finally:
        scanner.close()


def test_a_core_is_left_to_those_who_write(chunk: ChunkReader) -> None:
    for cores, beside_writers in ((2, False), (3, True)):
        writing = threading.Event()
        scanner = ScanProcesses(2, CACHE_BYTES, writing.is_set, cores=cores)
        try:
            warmed(scanner, chunk)
            assert is_shared_by_two(scanner)
            writing.set()
            assert is_shared_by_two(scanner) is beside_writers
        finally:
            scanner.close()


def is_shared_by_two(scanner: Scanner) -> bool:
    """Where it is not, nobody is given any work."""
    both = threading.Barrier(2)
    taken: list[int] = []

    def work() -> None:
        taken.append(both.wait(PATIENCE_SECONDS))

    scanner.share(work, CHUNKS)
    return sorted(taken) == [0, 1]


def test_who_was_cancelled_leaves_no_reply_for_the_next(
    processes: ScanProcesses, chunk: ChunkReader
) -> None:
    pids = warmed(processes, chunk)
    for _ in range(5):
        with Halted(pids):
            for scan in (PREFIX, META):
                with pytest.raises(Cancelled):
                    processes.scan(chunk, scan, Impatient(2))
        for scan in (META, PREFIX):
            scan_here_too(processes, chunk, scan)
    assert workers() == pids


def test_a_file_that_was_deleted_meanwhile_is_scanned(processes: ScanProcesses) -> None:
    with new_world(LIMITS) as other:
        other.store_entries([entry(said(n), n) for n in range(ENTRIES)])
        other.project.freeze()
        (chunk,) = other.project.snapshot().chunks
        pids = warmed(processes, chunk)
        for path in other.layout.segments.iterdir():
            path.unlink()
        scan_here_too(processes, chunk, SUBSTRING)
        with Halted(pids), pytest.raises(Cancelled):
            processes.scan(chunk, META, Impatient(3))


def test_where_they_are_killed_the_chunk_is_scanned_here(
    processes: ScanProcesses, chunk: ChunkReader
) -> None:
    for pid in warmed(processes, chunk):
        os.kill(pid, signal.SIGKILL)
    for scan in (PREFIX, SUBSTRING, META):
        scan_here_too(processes, chunk, scan)
    assert workers() == []


def test_signals_for_the_daemon_do_not_end_them(
    processes: ScanProcesses, chunk: ChunkReader
) -> None:
    pids = warmed(processes, chunk)
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGINT)
    for _ in range(4):
        scan_here_too(processes, chunk, META)
    assert workers() == pids


def test_damage_is_found_here_too(processes: ScanProcesses) -> None:
    with new_world(LIMITS) as other:
        other.store_entries([entry(said(n), n) for n in range(ENTRIES)])
        other.project.freeze()
        (chunk,) = other.project.snapshot().chunks
        pids = warmed(processes, chunk)
        (path,) = other.layout.segments.iterdir()
        with path.open("r+b") as file:
            file.seek(chunk.row.offset + chunk.row.head_bytes)
            file.write(b"\0" * (chunk.row.chunk_bytes - chunk.row.head_bytes))
        with pytest.raises(Corruption):
            processes.scan(chunk, SUBSTRING, never)
        assert workers() == pids


def test_a_file_that_cannot_be_read_ends_none_of_them(
    processes: ScanProcesses, chunk: ChunkReader, world: World
) -> None:
    pids = warmed(processes, chunk)
    path = world.layout.segment_file(chunk.row.segment_seq, chunk.row.segment_number)
    unreadable = OsFile(path, os.open(path, os.O_WRONLY))
    for scan in (SUBSTRING, META):
        with pytest.raises(Corruption, match="cannot be read"):
            processes.scan(ChunkReader(unreadable, -1, chunk.row, PartCache(0)), scan, never)
        scan_here_too(processes, chunk, scan)
    assert workers() == pids


def test_a_job_that_fits_no_message_is_done_here(
    processes: ScanProcesses, chunk: ChunkReader
) -> None:
    pids = warmed(processes, chunk)
    scan = PhraseScan((Word("took"), Word("12")), np.zeros(30_000, np.int64), None)
    with Halted(pids):
        scan_here_too(processes, chunk, scan)


def test_they_rest_when_nobody_needs_them(chunk: ChunkReader) -> None:
    scanner = ScanProcesses(2, CACHE_BYTES, lambda: False, cores=2, quiet_seconds=0.5)
    try:
        first = warmed(scanner, chunk)
        until(lambda: scanner.is_quiet)
        scanner.rest()
        assert workers() == []
        assert not scanner.is_quiet
        assert not set(warmed(scanner, chunk)) & set(first)
    finally:
        scanner.close()


def test_where_they_cannot_be_started_all_is_scanned_here(
    chunk: ChunkReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("/nowhere/python", "/bin/false"):
        monkeypatch.setattr(sys, "executable", program)
        scanner = ScanProcesses(2, CACHE_BYTES, lambda: False, cores=2)
        for _ in range(30):
            scan_here_too(scanner, chunk, META)
        scanner.close()
        assert workers() == []


def test_shared_work_is_done_by_several_threads(
    processes: ScanProcesses, chunk: ChunkReader
) -> None:
    warmed(processes, chunk)
    items = iter(range(1000))
    done: list[int] = []
    both = threading.Barrier(2)

    def work() -> None:
        both.wait(PATIENCE_SECONDS)
        for item in items:
            processes.scan(chunk, META, never)
            done.append(item)
            if len(done) > 50:
                break

    processes.share(work, CHUNKS)
    assert sorted(done) == list(range(len(done)))


def test_processes_that_become_ready_take_part_in_what_is_under_way(
    processes: ScanProcesses, chunk: ChunkReader
) -> None:
    helped = threading.Event()
    asked = threading.current_thread()

    def work() -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not helped.is_set():
            assert time.monotonic() < deadline
            scan_here_too(processes, chunk, META)
            if threading.current_thread() is not asked:
                helped.set()

    processes.share(work, 1000)
    assert helped.is_set()
    assert len(workers()) == 2


def test_work_on_a_few_chunks_waits_for_no_process(
    processes: ScanProcesses, chunk: ChunkReader
) -> None:
    done: list[int] = []
    processes.share(lambda: done.append(1), CHUNKS)
    assert done == []
    assert workers() == []


def test_where_no_thread_can_be_started_work_is_not_shared(
    processes: ScanProcesses, chunk: ChunkReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed(processes, chunk)
    done: list[str] = []

    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refused)
        processes.share(lambda: done.append("first"), CHUNKS)
        processes.share(lambda: done.append("second"), CHUNKS)
    assert done == ["first", "second"]
    assert is_shared_by_two(processes)  # those who come late do nothing
    assert done == ["first", "second"]


def test_shared_work_fails_where_a_helper_does(
    processes: ScanProcesses, chunk: ChunkReader
) -> None:
    warmed(processes, chunk)
    both, asked = threading.Barrier(2), threading.current_thread()

    def work() -> None:
        both.wait(PATIENCE_SECONDS)
        if threading.current_thread() is not asked:
            raise KeyError("x")

    with pytest.raises(KeyError):
        processes.share(work, CHUNKS)


def test_shared_work_ends_for_all_when_the_query_is_stopped(
    processes: ScanProcesses, chunk: ChunkReader
) -> None:
    pids = warmed(processes, chunk)
    stopped = Impatient(5)

    def stop() -> None:
        stopped()

    def work() -> None:
        while True:
            processes.scan(chunk, META, stop)

    with Halted(pids), pytest.raises(Cancelled):
        processes.share(work, CHUNKS)
    scan_here_too(processes, chunk, PREFIX)


def test_they_end_with_their_daemon(tmp_path: Path) -> None:
    """Whatever way the daemon went: the end of their socket is all that they see."""
    script = (
        "import os, sys; sys.path[:0] = sys.argv[1:]\n"
        "import test_scan_processes as t\n"
        "scanner = t.ScanProcesses(2, t.CACHE_BYTES, lambda: False, cores=2)\n"
        "with t.new_world(t.LIMITS) as world:\n"
        "    world.store_entries([t.entry(t.said(n), n) for n in range(t.ENTRIES)])\n"
        "    world.project.freeze()\n"
        "    pids = t.warmed(scanner, world.project.snapshot().chunks[0])\n"
        "print(*pids, flush=True); os._exit(0)\n"
    )
    paths = [str(Path(__file__).parent), *sys.path]
    out = subprocess.run(
        [sys.executable, "-c", script, *paths],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECONDS,
        cwd=tmp_path,
    ).stdout
    pids = out.split()
    assert len(pids) == 2
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
