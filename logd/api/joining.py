"""Bytes that came, or were made, in pieces."""

from collections.abc import Sequence
from typing import Final

import trio

_INLINE_BYTES: Final = 1 << 20  # of fewer, joining does not let go of the interpreter's lock


async def joined(pieces: Sequence[bytes | bytearray]) -> bytes:
    """All of them. Many are joined in a thread, and the event loop goes on: tens of megabytes of
    fresh memory take tens of milliseconds."""
    if sum(map(len, pieces)) < _INLINE_BYTES:
        return b"".join(pieces)
    return await trio.to_thread.run_sync(_join_many, pieces)


def _join_many(pieces: Sequence[bytes | bytearray]) -> bytes:
    """With the lock let go: not while one of them could change."""
    return b"".join([bytes(piece) for piece in pieces])
