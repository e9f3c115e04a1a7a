"""The process that builds chunks for a daemon, and what the two say to each other.

    job     head, then for every stretch of entries without gaps the six columns of its batch
    reply   head, then for every chunk its data, vocabulary and postings

A head is its length, 4 bytes little-endian, and that much MessagePack. Jobs come on standard input,
replies go to standard output, one after the other; the process ends when its input does.
"""

import gc
import io
import select
import signal
import struct
from collections.abc import Callable, Sequence
from typing import BinaryIO, Final, NamedTuple

import msgspec
import numpy as np

from logd.allocator import give_back, set_up_allocator
from logd.entry import Seq
from logd.format.body import Batch
from logd.format.chunk import BuiltChunk, IdempotencyRecord, decode_head
from logd.format.separated import SEPARATOR
from logd.store.freeze import stretches, use_up
from logd.store.limits import StoreLimits
from logd.store.tail import Piece

HEAD: Final = struct.Struct("<I")

_QUIET_SECONDS: Final = 0.25
_KEPT_BYTES: Final = 256 << 20  # a page that is returned after a chunk costs a fault in the next

Read = Callable[[int], bytes]
"""Exactly so many bytes. Raises EOFError where they do not come."""


class _PieceHead(NamedTuple):
    """`sizes`: bytes of the columns."""

    first_seq: int
    entries: int
    sizes: tuple[int, ...]


class _JobHead(msgspec.Struct, frozen=True):
    pieces: tuple[_PieceHead, ...]
    records: tuple[IdempotencyRecord, ...]
    limits: StoreLimits


class _ReplyHead(msgspec.Struct, frozen=True):
    """`failure`: what went wrong, where no chunks follow."""

    sizes: tuple[tuple[int, int, int], ...] = ()
    records: tuple[tuple[IdempotencyRecord, ...], ...] = ()
    failure: str | None = None


class BuildFailed(Exception):
    """The process could not build the chunks."""


_job_decoder: Final = msgspec.msgpack.Decoder(_JobHead)
_reply_decoder: Final = msgspec.msgpack.Decoder(_ReplyHead)


def encode_job(
    pieces: Sequence[Piece], records: Sequence[IdempotencyRecord], limits: StoreLimits
) -> list[bytes]:
    """What to send, in this order. Columns are joined by being sent one behind the other."""
    heads, blobs = [], []
    for stretch in stretches(pieces):
        columns = _columns([piece.batch for piece in stretch])
        sizes = tuple(sum(map(len, column)) for column in columns)
        entries = sum(piece.batch.count for piece in stretch)
        heads.append(_PieceHead(stretch[0].first_seq, entries, sizes))
        blobs += [blob for column in columns for blob in column]
    head = msgspec.msgpack.encode(_JobHead(tuple(heads), tuple(records), limits))
    return [HEAD.pack(len(head)), head, *blobs]


def _columns(batches: Sequence[Batch]) -> list[list[bytes]]:
    return [
        [batch.ts.tobytes() for batch in batches],
        [batch.levels for batch in batches],
        _separated([batch.messages for batch in batches]),
        _separated([batch.sources for batch in batches]),
        _separated([batch.tags for batch in batches]),
        _separated([batch.metas for batch in batches]),
    ]


def _separated(blobs: Sequence[bytes]) -> list[bytes]:
    return [piece for blob in blobs for piece in (SEPARATOR, blob)][1:]


def _read_job(read: Read) -> tuple[list[Piece], tuple[IdempotencyRecord, ...], StoreLimits]:
    head = _job_decoder.decode(read(HEAD.unpack(read(HEAD.size))[0]))
    pieces = []
    for piece in head.pieces:
        ts, levels, messages, sources, tags, metas = map(read, piece.sizes)
        times = np.frombuffer(ts, np.int64)
        batch = Batch(piece.entries, times, levels, messages, sources, tags, metas)
        pieces.append(Piece(Seq(piece.first_seq), batch))
    return pieces, head.records, head.limits


def _encode_reply(chunks: Sequence[BuiltChunk]) -> list[bytes]:
    blobs = [(chunk.data, chunk.vocabulary, chunk.postings) for chunk in chunks]
    sizes = tuple((len(data), len(words), len(rest)) for data, words, rest in blobs)
    head = _ReplyHead(sizes, tuple(chunk.records for chunk in chunks))
    return [*_reply_head(head), *[blob for three in blobs for blob in three]]


def _reply_head(head: _ReplyHead) -> list[bytes]:
    encoded = msgspec.msgpack.encode(head)
    return [HEAD.pack(len(encoded)), encoded]


def read_reply(read: Read) -> list[BuiltChunk]:
    """Raises BuildFailed, and what `read` raises."""
    head = _reply_decoder.decode(read(HEAD.unpack(read(HEAD.size))[0]))
    if head.failure is not None:
        raise BuildFailed(head.failure)
    built = []
    for sizes, records in zip(head.sizes, head.records, strict=True):
        data, vocabulary, postings = map(read, sizes)
        built.append(BuiltChunk(decode_head(data), records, data, vocabulary, postings))
    return built


# ---------------------------------------------------------------- the process


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # they are meant for the daemon
        signal.signal(number, signal.SIG_IGN)
    set_up_allocator(thrifty=False, kept_bytes=_KEPT_BYTES)
    gc.disable()  # a job makes no cycles, and many objects
    with open(0, "rb") as jobs, open(1, "wb") as replies:
        while _wait_for(jobs):
            _serve(jobs, replies)


def _wait_for(jobs: io.BufferedReader) -> bool:
    """Whether there is another job. Memory that no job needs for a while goes back."""
    poll = select.poll()
    poll.register(jobs, select.POLLIN)
    if not poll.poll(_QUIET_SECONDS * 1000):
        give_back()
    return bool(jobs.peek(1))


def _serve(jobs: BinaryIO, replies: BinaryIO) -> None:
    def read(size: int) -> bytes:
        data = jobs.read(size)
        if len(data) < size:
            raise EOFError
        return data

    try:
        pieces, records, limits = _read_job(read)
    except EOFError:
        return  # the daemon has gone
    try:
        reply = _encode_reply(use_up(pieces, records, limits))
    except Exception as error:  # noqa: BLE001  # the daemon does it itself then, and says why
        reply = _reply_head(_ReplyHead(failure=repr(error)))
    replies.writelines(reply)
    replies.flush()


if __name__ == "__main__":
    main()
