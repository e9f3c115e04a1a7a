"""Columns of unsigned integers as byte planes, and the compression that every part shares.

planes   width bytes an item: all lowest bytes, then all second bytes, ...
         (items of a column vary mostly in their low bytes: high planes compress well)
frame    one zstd frame with its content size stated, without a zstd checksum
         (the table that names the frame carries a CRC-32 of it)
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import zstandard

_QUICK: Final = zstandard.ZstdCompressionParameters.from_level(
    1, write_content_size=True, write_checksum=False, min_match=7
)
"""A shorter match takes more room than the digits that it stands for."""
_THOROUGH: Final = zstandard.ZstdCompressionParameters.from_level(
    7, write_content_size=True, write_checksum=False, hash_log=16, chain_log=16
)
"""With tables that are large enough for what it is used for: a context keeps them."""
_THOROUGH_BYTES: Final = 1 << 20
_SMALLEST_BLOCK: Final = 512

UInts = npt.NDArray[np.unsignedinteger[Any]]
Bytes = npt.NDArray[np.uint8]


class _Contexts(threading.local):
    """zstd contexts are costly to make and not thread-safe."""

    def __init__(self) -> None:
        self.quick = zstandard.ZstdCompressor(compression_params=_QUICK)
        self.thorough = zstandard.ZstdCompressor(compression_params=_THOROUGH)
        self.decompressor = zstandard.ZstdDecompressor()


_contexts: Final = _Contexts()


def compress(*pieces: bytes) -> bytes:
    """One frame of all pieces. zstd codes the bytes of a block by how often each comes in it; so
    pieces that differ in that become blocks of their own, unless they are short."""
    blocks = list(_blocks(pieces))
    if len(blocks) < 2:
        return _contexts.quick.compress(b"".join(blocks))
    stream = _contexts.quick.compressobj(size=sum(map(len, blocks)))
    out = []
    for block in blocks[:-1]:
        out += [stream.compress(block), stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)]
    return b"".join([*out, stream.compress(blocks[-1]), stream.flush()])


def compress_texts(texts: bytes) -> bytes:
    """One frame of texts that differ little, as those of a dictionary do: they are worth a longer
    search for what they share, as long as they are not much of what is stored."""
    if len(texts) > _THOROUGH_BYTES:
        return compress(texts)
    return _contexts.thorough.compress(texts)


def _blocks(pieces: Sequence[bytes]) -> Iterator[bytes]:
    """Short pieces stay with the next one."""
    waiting = b""
    for piece in pieces:
        waiting = waiting + piece if waiting else piece
        if len(waiting) >= _SMALLEST_BLOCK:
            yield waiting
            waiting = b""
    if waiting:
        yield waiting


def decompress(frame: bytes | memoryview, raw_size: int) -> bytes:
    """Raises ValueError unless the frame holds exactly `raw_size` bytes."""
    try:
        stated = zstandard.frame_content_size(frame)
        if stated != raw_size:
            raise ValueError(f"a frame of {stated} bytes where {raw_size} were announced")
        raw = _contexts.decompressor.decompress(frame) if raw_size else b""
    except zstandard.ZstdError as error:
        raise ValueError(f"zstd: {error}") from None
    if len(raw) != raw_size:
        raise ValueError(f"{len(raw)} bytes decompressed where {raw_size} were announced")
    return raw


def byte_width(largest: int) -> int:
    """Bytes that hold values up to `largest`; at least 1."""
    return max(1, (largest.bit_length() + 7) // 8)


def to_planes(values: UInts) -> list[bytes]:
    """The planes of an unsigned column, as many as its largest value takes; none if it is empty."""
    if len(values) == 0:
        return []
    width = byte_width(int(values.max()))
    if width == 1:
        return [values.astype(np.uint8).tobytes()]
    wide = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    columns = wide.view(np.uint8).reshape(len(values), values.dtype.itemsize)
    return [columns[:, plane].tobytes() for plane in range(width)]


def narrowest(width: int) -> npt.DTypeLike:
    """The dtype of items of so many bytes (1 to 8), or the next wider one."""
    return (np.uint8, np.uint8, np.uint16, np.uint32, np.uint32)[width] if width < 5 else np.uint64


def planes_of(raw: bytes, count: int, widest: int = 8) -> Bytes:
    """uint8[width, count], a view: the planes of `count` items of up to `widest` bytes. Raises
    ValueError if the bytes do not divide into them."""
    if count == 0:
        if raw:
            raise ValueError("planes: bytes in an empty column")
        return np.zeros((1, 0), np.uint8)
    width, rest = divmod(len(raw), count)
    if rest or not 1 <= width <= widest:
        raise ValueError(f"planes: {len(raw)} bytes for {count} items of {widest} bytes")
    return np.frombuffer(raw, np.uint8).reshape(width, count)


def from_planes(raw: bytes, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The column of `count` items, read-only where it is no more than a view of its only plane.
    Raises ValueError if the bytes do not divide into planes."""
    kind = np.dtype(dtype)
    planes = planes_of(raw, count, kind.itemsize)
    out: npt.NDArray[Any] = planes[-1].astype(kind, copy=False)
    for plane in planes[-2::-1]:
        out <<= kind.type(8)
        out |= plane
    return out
