"""The admin socket: `logd user add` and its like, while the daemon has the data directory.

<data>/logd.sock   mode 0600: whoever may open it may read the data directory anyway
request            one line of JSON, `{"op": "user_add", "email": ...}`
reply              one line of JSON, `{"user_id": ..., "token": ...}` or `{"error": ...}`
"""

import logging
import os
import socket
from pathlib import Path
from typing import Final

import msgspec
import trio

from logd.daemon.admin_client import socket_address
from logd.daemon.admin_requests import MAX_LINE_BYTES, AdminReply, AdminRequest, perform
from logd.daemon.identity import Identity

log = logging.getLogger("logd.daemon")

_BACKLOG: Final = 16
_EXCHANGE_SECONDS: Final = 30.0
_decoder: Final = msgspec.json.Decoder[AdminRequest](AdminRequest)


def open_admin_socket(path: Path) -> trio.SocketListener:
    """Listens at `path`, in the place of what a daemon before has left there."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    os.fchmod(listening.fileno(), 0o600)  # before it has a name: never open to others
    with socket_address(path) as address:
        listening.bind(address)
    path.chmod(0o600)
    listening.listen(_BACKLOG)
    return trio.SocketListener(trio.socket.from_stdlib_socket(listening))


async def serve_admin(listener: trio.SocketListener, identity: Identity) -> None:
    """Until cancelled."""

    async def exchange(stream: trio.SocketStream) -> None:
        async with stream:
            try:
                with trio.move_on_after(_EXCHANGE_SECONDS):
                    line = await _read_line(stream)
                    reply = await _reply(line, identity)
                    await stream.send_all(msgspec.json.encode(reply) + b"\n")
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # the command went away; what it asked for is done or was never read
            except Exception:
                log.exception("an admin request failed")

    await trio.serve_listeners(exchange, [listener])


async def _read_line(stream: trio.SocketStream) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n") and len(line) <= MAX_LINE_BYTES:
        piece = await stream.receive_some(MAX_LINE_BYTES)
        if not piece:
            break
        line += piece
    return bytes(line)


async def _reply(line: bytes, identity: Identity) -> AdminReply:
    try:
        request = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return AdminReply(error=f"not a request: {error}")
    return await identity.change(perform, identity.control, request)
