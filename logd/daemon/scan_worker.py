"""A process that scans chunks for a daemon, and what the two say to each other.

Over a socket on standard input that keeps messages apart: first an empty reply, when the process is
ready; then for each job, MessagePack with the descriptor of the segment file beside it, a reply.
The process ends when its socket does.
"""

import gc
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from logd.allocator import set_up_allocator
from logd.daemon.turns import Turns
from logd.format.directory import ChunkRow
from logd.store.cache import PartCache
from logd.store.chunk_reader import ChunkReader
from logd.store.chunk_scans import Scan, scan_chunk
from logd.store.files import OsFile
from logd.store.selection import Bools

MAX_BYTES: Final = 128 << 10
"""Of a message: below what the system keeps for a socket by default."""


class _Job(msgspec.Struct, frozen=True):
    """`number`: what the daemon tells open files apart by. `gently`: others write meanwhile."""

    number: int
    row: ChunkRow
    scan: Scan
    gently: bool


class _Reply(msgspec.Struct, frozen=True):
    """`bits`: the rows that match, one a bit. `failure`: why there are none."""

    bits: bytes = b""
    failure: str | None = None


class ScanFailed(Exception):
    """The process could not scan the chunk."""


def _encode_array(value: object) -> bytes:
    if isinstance(value, np.ndarray) and value.dtype == np.int64:
        return value.tobytes()
    raise NotImplementedError(f"{type(value)} has no place in a message")


def _decode_array(kind: Any, value: bytes) -> object:
    return np.frombuffer(value, np.int64)


_encoder: Final = msgspec.msgpack.Encoder(enc_hook=_encode_array)
_job_decoder: Final = msgspec.msgpack.Decoder(_Job, dec_hook=_decode_array)
_reply_decoder: Final = msgspec.msgpack.Decoder(_Reply)


def encode_job(number: int, row: ChunkRow, scan: Scan, *, gently: bool) -> bytes:
    return _encoder.encode(_Job(number, row, scan, gently))


def decode_reply(data: bytes, count: int) -> Bools:
    """bool[count]. Raises ScanFailed, msgspec.MsgspecError, ValueError."""
    reply = _reply_decoder.decode(data)
    if reply.failure is not None:
        raise ScanFailed(reply.failure)
    bits = np.frombuffer(reply.bits, np.uint8)
    if len(bits) != -(-count // 8):
        raise ValueError("the reply is of another chunk")
    return np.unpackbits(bits, count=count).view(np.bool_)


# ---------------------------------------------------------------- the process


def main() -> None:
    """The argument: bytes to keep of what is decoded."""
    for number in (signal.SIGINT, signal.SIGTERM):  # they are meant for the daemon
        signal.signal(number, signal.SIG_IGN)
    set_up_allocator(thrifty=False)
    gc.disable()  # a scan makes no cycles
    cache = PartCache(int(sys.argv[1]))
    with socket.socket(fileno=0) as daemon:
        daemon.send(_encoder.encode(_Reply()))
        while _serve(daemon, cache):
            pass


def _serve(daemon: socket.socket, cache: PartCache) -> bool:
    """One job; false where there will be none."""
    data, descriptors, _, _ = socket.recv_fds(daemon, MAX_BYTES, 1)
    if not data:
        return False
    (descriptor,) = descriptors
    file = OsFile(Path("segment"), descriptor)
    try:
        job = _job_decoder.decode(data)
        check = Turns().take_rest if job.gently else _no_check
        found = scan_chunk(ChunkReader(file, job.number, job.row, cache), job.scan, check)
        reply = _Reply(np.packbits(found).tobytes())
    except Exception as error:  # noqa: BLE001  # the daemon does it itself then, and says why
        reply = _Reply(failure=repr(error))
    finally:
        file.close()
    daemon.send(_encoder.encode(reply))
    return True


def _no_check() -> None:
    """The daemon waits no longer for a chunk than it likes."""


if __name__ == "__main__":
    main()
