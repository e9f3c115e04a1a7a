"""Chunks built in a process of their own are those built here, whatever happens to the process."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from child_processes import children_that_run

from logd.daemon import build_process
from logd.daemon.build_process import BuildProcess
from logd.entry import ProjectId, Seq
from logd.format.body import Batch, decode_body
from logd.format.chunk import BuiltChunk, IdempotencyRecord
from logd.format.wal import Idempotency
from logd.store.freeze import build_chunks
from logd.store.limits import StoreLimits
from logd.store.tail import Piece

PROJECT_ID = ProjectId("0b7e5a52-7d0c-4f0e-9d53-0d5f8f4f3a11")
LIMITS = StoreLimits(chunk_entries=9000)
RECORDS = [IdempotencyRecord(Idempotency(b"k" * 16, b"r" * 16), Seq(20_000), 3, 17)]
PATIENCE_SECONDS = 60.0


def batch(first: int, count: int) -> Batch:
    entries = [
        {
            "projectId": PROJECT_ID,
            "level": ("INFO", "ERROR")[n % 2],
            "message": f"request {n} took {n % 97} ms, grüße",
            "source": f"api-{n % 3}",
            "timestamp": f"2026-11-01T00:00:{n % 60:02d}Z",
            "tags": ["eu", str(n % 5)],
            "meta": {"id": n},
        }
        for n in range(first, first + count)
    ]
    return decode_body(json.dumps(entries).encode(), PROJECT_ID, 0, ndjson=False)


PIECES = [
    Piece(Seq(0), batch(0, 10_000)),
    Piece(Seq(10_000), batch(10_000, 8_000)),
    Piece(Seq(20_000), batch(20_000, 500)),  # behind a gap
]


def workers() -> list[int]:
    return children_that_run("build_worker")


@pytest.fixture
def build() -> Iterator[BuildProcess]:
    process = BuildProcess()
    try:
        yield process
    finally:
        process.rest()
    assert workers() == []


def same(left: Sequence[BuiltChunk], right: Sequence[BuiltChunk]) -> bool:
    return list(left) == list(right) and len(left) > 0


def test_the_chunks_are_the_same(build: BuildProcess) -> None:
    here = build_chunks(PIECES, RECORDS, LIMITS)
    assert [chunk.head.count for chunk in here] == [9000, 9000, 500]
    assert here[2].records == tuple(RECORDS)
    for _ in range(3):
        assert same(build(PIECES, RECORDS, LIMITS), here)
        assert len(workers()) == 1


def test_small_jobs_start_no_process_but_use_one_that_runs(build: BuildProcess) -> None:
    small = PIECES[2:]
    here = build_chunks(small, RECORDS, LIMITS)
    assert same(build(small, RECORDS, LIMITS), here)
    assert workers() == []
    build(PIECES, [], LIMITS)
    (worker,) = workers()
    assert same(build(small, RECORDS, LIMITS), here)
    assert workers() == [worker]


def test_it_rests_and_starts_again(build: BuildProcess) -> None:
    build(PIECES, [], LIMITS)
    build.rest()
    assert workers() == []
    assert same(build(PIECES, RECORDS, LIMITS), build_chunks(PIECES, RECORDS, LIMITS))
    assert len(workers()) == 1


def test_where_it_is_killed_the_chunks_are_built_here(build: BuildProcess) -> None:
    build(PIECES, [], LIMITS)
    (worker,) = workers()
    os.kill(worker, signal.SIGKILL)
    assert same(build(PIECES, RECORDS, LIMITS), build_chunks(PIECES, RECORDS, LIMITS))
    assert workers() == []


def test_signals_for_the_daemon_do_not_end_it(build: BuildProcess) -> None:
    build(PIECES, [], LIMITS)
    (worker,) = workers()
    os.kill(worker, signal.SIGTERM)
    os.kill(worker, signal.SIGINT)
    build(PIECES, [], LIMITS)
    assert workers() == [worker]


def test_where_it_cannot_be_started_the_chunks_are_built_here(
    build: BuildProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("/nowhere/python", "/bin/false"):
        monkeypatch.setattr(sys, "executable", program)
        unwilling = BuildProcess()
        assert same(unwilling(PIECES, RECORDS, LIMITS), build_chunks(PIECES, RECORDS, LIMITS))
    assert workers() == []


def test_a_job_that_cannot_be_done_fails_as_it_does_here(build: BuildProcess) -> None:
    torn = Batch(20_000, PIECES[0].batch.ts, b"", b"", b"", b"", b"")
    with pytest.raises(ValueError, match="texts"):
        build([Piece(Seq(0), torn)], [], LIMITS)
    assert same(build(PIECES, RECORDS, LIMITS), build_chunks(PIECES, RECORDS, LIMITS))


def test_a_reply_that_was_not_read_is_not_taken_for_that_to_the_next_job(
    build: BuildProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = [Piece(Seq(0), batch(0, 17_000))], [Piece(Seq(0), batch(50_000, 17_000))]

    def short_of_memory(_read: object) -> list[BuiltChunk]:
        raise MemoryError

    with monkeypatch.context() as short:
        short.setattr(build_process, "read_reply", short_of_memory)
        with pytest.raises(MemoryError):
            build(first, [], LIMITS)
    assert same(build(second, [], LIMITS), build_chunks(second, [], LIMITS))


def test_it_ends_with_its_daemon() -> None:
    """Whatever way the daemon went: the end of its input is all that it sees."""
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_build_process as t\n"
        "build = t.BuildProcess(); build(t.PIECES, [], t.LIMITS)\n"
        "print(*t.workers(), flush=True); os._exit(0)\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", script, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=PATIENCE_SECONDS,
    ).stdout
    deadline = time.monotonic() + PATIENCE_SECONDS
    while Path(f"/proc/{int(out)}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
