"""What the door allows a connection, and why."""

from typing import Final

import msgspec

from logd.config import Config

MAX_HEAD_BYTES: Final = 32_768
"""Request line and headers. Tokens and cursors are below 1 KiB; a search may be long."""

MAX_HEADERS: Final = 128
"""Lines of a head behind the first, and of trailers. To parse one takes h11 as long as a small
request takes the lane, so what fits into the bytes would hold up everybody else."""

KEEP_ALIVE_SECONDS: Final = 75.0
"""An idle connection is kept this long: longer than the pools of common clients and proxies (60 s
and less), so that it is they who close and no request meets a closing connection."""

MIN_IDLE_SECONDS: Final = 1.0
"""At `max_connections`, a connection without a request for so long makes room for a new one."""

MIN_BODY_BYTES_PER_SECOND: Final = 1024
"""A body slower than this over a stall timeout's time, at its beginning or later, is cut."""

MIN_ANSWER_BYTES_PER_SECOND: Final = 8192
"""The same for an answer that is read, so that a large one is held for some hours at most. More
than for a body: of 64 KiB a stall timeout nobody may stay below in any case (SEND_PIECE_BYTES)."""

SMALL_BODY_BYTES: Final = 65_536
SMALL_ANSWER_BYTES: Final = 1 << 20
"""What is larger cannot take the memory that is kept for these: any single entry, and a page of a
thousand common ones, are small."""

UNCOUNTED_ANSWER_BYTES: Final = 65_536
"""So much of each answer counts nowhere. The socket takes it, or soon will; with `max_connections`
of them it is bounded too."""

SKIPPED_BYTES: Final = 65_536
"""How far a refused body is read on, so that a small one does not cost its connection."""

LINGER_SECONDS: Final = 2.0
"""How long input is discarded after an answer that came before the request was complete. Closing
at once would reset the connection and could take the answer from the client."""

HANDSHAKE_SECONDS: Final = 10.0
"""For TLS, where a request's head does not get less."""

SEND_PIECE_BYTES: Final = 65_536
"""The unit of progress of a send: a piece not taken within the stall timeout ends it."""


_STORAGE_DESCRIPTORS: Final = 1024


class Limits(msgspec.Struct, frozen=True):
    """The configured ones. Seconds and bytes."""

    max_connections: int
    body_memory_bytes: int
    handshake_seconds: float
    head_seconds: float
    stall_seconds: float
    grace_seconds: float


def limits_of(config: Config, max_descriptors: int) -> Limits:
    """`max_descriptors`: of the process. Half of them are left to the storage where they are few,
    so that connections cannot starve it. A quarter of the memory for bodies is kept for what is
    small: the rest has room for one of the largest in any case."""
    reserved = min(max_descriptors // 2, _STORAGE_DESCRIPTORS)
    return Limits(
        max_connections=max(1, min(config.max_connections, max_descriptors - reserved)),
        body_memory_bytes=max(config.body_memory_bytes, config.max_body_bytes * 4 // 3),
        handshake_seconds=min(HANDSHAKE_SECONDS, config.request_timeout_seconds),
        head_seconds=config.request_timeout_seconds,
        stall_seconds=config.stall_timeout_seconds,
        grace_seconds=config.shutdown_grace_seconds,
    )
