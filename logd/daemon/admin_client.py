"""The command line's side of the admin socket: one request, one reply, plain and blocking."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from logd.daemon.admin_requests import MAX_LINE_BYTES, AdminReply, AdminRequest
from logd.errors import LogdError
from logd.store.layout import DataLayout

_TIMEOUT_SECONDS: Final = 30.0
_MAX_ADDRESS_BYTES: Final = 107  # sun_path of Linux, without its final NUL


class NoDaemon(LogdError):
    """No daemon listens on the data directory's admin socket."""


class AdminFailed(LogdError):
    """The daemon broke off, or did not answer in time."""


def admin_call(data_dir: Path, request: AdminRequest) -> AdminReply:
    """Ask the daemon that has the data directory. Raises NoDaemon, AdminFailed, PermissionError."""
    path = DataLayout(data_dir).admin_socket
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT_SECONDS)
        try:
            with socket_address(path) as address:
                connection.connect(address)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise NoDaemon(f"no daemon serves {data_dir}") from error
        except PermissionError as error:  # of a socket it does not say which
            raise PermissionError(error.errno, error.strerror, str(path)) from error
        try:
            connection.sendall(msgspec.json.encode(request) + b"\n")
            return msgspec.json.decode(_read_line(connection), type=AdminReply)
        except (OSError, msgspec.DecodeError) as error:
            raise AdminFailed("the daemon did not answer") from error


def _read_line(connection: socket.socket) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n") and len(line) <= MAX_LINE_BYTES:
        piece = connection.recv(MAX_LINE_BYTES)
        if not piece:
            break
        line += piece
    return bytes(line)


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """The path, or where it is too long for an address a short way to it: through the open
    directory, while the context lasts."""
    if len(os.fsencode(path)) <= _MAX_ADDRESS_BYTES:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
