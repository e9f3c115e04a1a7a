"""The entries of a WAL frame, column by column, as they are in memory.

    offset size
    0      16   bytes of messages, sources, tags, metas: 4 each
    16     8    mask
    24     8n   times, signed, ns since the epoch, each XOR mask (n: the frame's count)
    ...    n    levels: 0 DEBUG, 1 INFO, 2 WARN, 3 ERROR
    ...         messages, sources, tags (JSON arrays), metas (JSON objects): separated text

little-endian. The mask is 0, but where the frame marker would then stand somewhere before the
texts: no body holds the marker, so that a reader that lost its way takes nothing within one for a
frame.
"""

import hashlib
import struct
from typing import Final

import numpy as np

from logd.format.body import Batch
from logd.format.separated import SEPARATOR
from logd.format.wal import MARKER

_FIXED: Final = struct.Struct("<4IQ")
_MASK_BYTES: Final = 8


def encode_columns(batch: Batch) -> bytes:
    """A body without the marker, whose last byte is in no text."""
    texts = (batch.messages, batch.sources, batch.tags, batch.metas)
    sizes = tuple(map(len, texts))
    mask, times = 0, batch.ts.astype("<i8", copy=False)
    while MARKER in (numbers := _FIXED.pack(*sizes, mask) + times.tobytes() + batch.levels):
        digest = hashlib.blake2b(numbers, digest_size=_MASK_BYTES).digest()
        mask = int.from_bytes(digest, "little")
        times = batch.ts ^ np.frombuffer(digest, "<i8")
    return b"".join((numbers, *texts))


def decode_columns(body: bytes | memoryview, count: int) -> Batch:
    """The batch of `count` entries. Raises ValueError where the body is none."""
    if len(body) < _FIXED.size:
        raise ValueError("no columns")
    *sizes, _ = _FIXED.unpack_from(body)
    at = _FIXED.size + 8 * count
    if at + count + sum(sizes) != len(body):
        raise ValueError("columns of another length")
    mask_and_times = np.frombuffer(body, "<i8", 1 + count, _FIXED.size - _MASK_BYTES)
    ts = mask_and_times[1:] ^ mask_and_times[0]
    levels = bytes(body[at : at + count])
    at += count
    texts = []
    for size in sizes:
        texts.append(bytes(body[at : at + size]))
        at += size
        if texts[-1].count(SEPARATOR) != count - 1:
            raise ValueError(f"not {count} texts")
    if levels.strip(b"\0\1\2\3"):
        raise ValueError("an unknown level")
    messages, sources, tags, metas = texts
    return Batch(count, ts, levels, messages, sources, tags, metas)
