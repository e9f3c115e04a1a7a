"""The command lines: what is refused before anything is measured, and how a run ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_S = 120
FILL = ("--peers", "sqlite", "--only", "fill", "--entries", "1k")


def started(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_as_from_a_terminal,
    )


def _as_from_a_terminal() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs", "0", *FILL], "--runs: not a number of 1 or more: 0"),
        (["--peers", "sqlite,sqlite"], "named twice"),
        (["--peers", ""], "not available: "),
        (["--only", "scale"], "--only scale needs --scale"),
        (["--smoke", "--scale", "1k"], "--smoke has no scale curve"),
        (["--dir", "/nonexistent"], "no such directory: /nonexistent"),
        (["--json", "/nonexistent/r.json"], "no such directory: /nonexistent"),
        (["--report", "/nonexistent/r.md"], "no such directory: /nonexistent"),
        (["--victorialogs", "/nonexistent"], "no such program: /nonexistent"),
        (["--from-json", "/nonexistent"], "/nonexistent: [Errno 2]"),
        (["--from-json", "README.md"], "README.md: JSON is malformed"),
        ([*FILL, "--entries", "10000000M"], "GB of disk"),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    process = started("bench", *arguments)
    output, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode != 0
    assert message in errors
    assert "Traceback" not in errors
    assert "writing a corpus" not in errors
    assert output == ""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGHUP, 129), (signal.SIGTERM, 143)]
)
def test_an_interrupted_run_leaves_nothing_behind(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    """The terminal signals to its whole foreground."""
    process = started("bench", *FILL, "--dir", str(tmp_path))
    assert process.stderr is not None
    while "filling" not in process.stderr.readline():
        assert process.poll() is None
    os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_a_reader_may_close_the_pipe() -> None:
    with started("bench.steps", "--entries", "2000") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(LIMIT_S) == 0
    assert errors == ""


@pytest.mark.parametrize("entries", ["0", "70000"])
def test_steps_are_of_one_chunk(entries: str) -> None:
    process = started("bench.steps", "--entries", entries)
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 2
    assert f"not from 1 to 65,536: {entries}" in errors


def test_a_store_of_days_has_whole_millions() -> None:
    process = started("bench.start", "--entries", "1500000")
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 2
    assert "not in whole millions: 1500000" in errors
