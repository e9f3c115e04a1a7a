"""What a service manager is told and hands over: readiness, log lines, and open sockets.

`NOTIFY_SOCKET`, `WATCHDOG_PID`, `WATCHDOG_USEC`, `LISTEN_PID`, `LISTEN_FDS` and `JOURNAL_STREAM`
are the manager's protocol, not options of ours: see sd_notify(3), sd_watchdog_enabled(3),
sd_listen_fds(3) and systemd.exec(5).
"""

import logging
import os
import socket
from collections.abc import Mapping
from typing import Final

from logd.config import Address, BadConfig

_FIRST_FD: Final = 3
_PRIORITIES: Final = ((logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (0, 7))

ALIVE: Final = b"WATCHDOG=1"
READY: Final = b"READY=1"
STOPPING: Final = b"STOPPING=1"


def notify(environ: Mapping[str, str], state: bytes) -> None:
    """Tell the service manager, if there is one. Raises OSError where it cannot be reached."""
    address = environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):  # a name in Linux' abstract namespace
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
        manager.connect(address)
        manager.sendall(state)


def watchdog_seconds(environ: Mapping[str, str], pid: int) -> float | None:
    """How long the manager waits for a sign of life before it restarts this process; None: it does
    not."""
    microseconds = environ.get("WATCHDOG_USEC", "")
    if environ.get("WATCHDOG_PID", str(pid)) != str(pid) or not microseconds.isdigit():
        return None
    return int(microseconds) / 1_000_000 or None


def inherited_sockets(environ: Mapping[str, str], pid: int) -> list[socket.socket]:
    """The listening sockets that the manager opened for this process; none usually."""
    if environ.get("LISTEN_PID") != str(pid):
        return []
    count = int(environ.get("LISTEN_FDS", "0"))
    sockets = [socket.socket(fileno=fd) for fd in range(_FIRST_FD, _FIRST_FD + count)]
    for one in sockets:
        one.set_inheritable(False)
        one.setblocking(False)
    return sockets


def tcp_address(inherited: socket.socket) -> Address:
    """Where such a socket listens. Raises BadConfig where it is of another kind."""
    if inherited.family not in (socket.AF_INET, socket.AF_INET6):
        raise BadConfig("the socket unit", "ListenStream= has to be a TCP address")
    host, port, *_ = inherited.getsockname()
    return Address(host, port)


class JournalFormatter(logging.Formatter):
    """Lines as the journal takes them: it notes the time itself, and the priority where a line says
    it (sd-daemon(3))."""

    def __init__(self) -> None:
        super().__init__("%(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        priority = next(number for level, number in _PRIORITIES if record.levelno >= level)
        lines = super().format(record).splitlines()
        return "\n".join([f"<{priority}>{line}" for line in lines])


def goes_to_journal(environ: Mapping[str, str], descriptor: int) -> bool:
    """Whether what is written to the descriptor is read by the journal."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
