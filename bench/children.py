"""Processes of the benchmark's own, and what they have to say."""

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess

from bench.http import ConnectionLost


def start_child(target: Callable[..., None], *args: object) -> tuple[BaseProcess, Pipe]:
    """(a process that runs `target(*args, pipe)`, the other end of its pipe). It ends with this
    one. Ctrl-C, which a terminal sends to both, is for this one alone."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(*args, theirs), daemon=True)
    resource_tracker.ensure_running()  # as `start` would, which lets signals through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which the child inherits
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return process, ours


def received(pipe: Pipe, child: str) -> object:
    """The next message of a child process. Raises ConnectionLost where it has ended instead."""
    try:
        message: object = pipe.recv()
    except EOFError:
        raise ConnectionLost(f"{child} ended early; its own message is above") from None
    return message
