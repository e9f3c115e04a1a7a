"""Bytes that came, or were made, in pieces."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from logd.daemon.threads import in_thread
from logd.errors import Overloaded

_INLINE_BYTES: Final = 1 << 20  # of fewer, joining does not let go of the interpreter's lock


async def joined(pieces: Sequence[bytes | bytearray]) -> bytes:
    """All of them. Many are joined in a thread, and the event loop goes on: tens of megabytes of
    fresh memory take tens of milliseconds."""
    if sum(map(len, pieces)) < _INLINE_BYTES:
        return b"".join(pieces)
    try:
        return await in_thread(partial(_join_many, pieces))
    except Overloaded:  # no thread: late is better than an answer that says that nothing was done
        return b"".join(pieces)


def _join_many(pieces: Sequence[bytes | bytearray]) -> bytes:
    """With the lock let go: not while one of them could change."""
    return b"".join([bytes(piece) for piece in pieces])
