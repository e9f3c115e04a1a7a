"""How a benchmark ends before its time, and how it prints to a reader who has seen enough."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType


def ended_orderly(work: Callable[[], int]) -> int:
    """The exit code of `work`. Who interrupts or terminates it, or closes its terminal, still has
    its servers stopped and its files removed."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` wants it
            signal.signal(number, _end)
    try:
        return work()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


def show(text: str) -> None:
    """Print it. A reader that closes the pipe wants no more, which is no failure."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
