"""Content-Type and Content-Encoding: what a body announces to be, and undoing its compression.

Decompression runs on the event loop in slices, with a checkpoint between them: no slice yields
more than 2.25 MiB, and none takes more than a few milliseconds. The output is counted as it comes
and never exceeds the limit by more than a slice.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Final, Literal

import trio
import zstandard

from logd.api.errors import BodyTooLarge, MalformedBody, UnsupportedMedia
from logd.api.exchange import Body, Head
from logd.api.joining import joined

Encoding = Literal["identity", "gzip", "deflate", "zstd"]

MAX_ZSTD_WINDOW_BYTES: Final = 8 << 20  # RFC 9659: the most that a zstd content coding may ask for

_JSON: Final = "application/json"
_NDJSON: Final = "application/x-ndjson"
_SLICE_BYTES: Final = 262_144
# Blocks that are nothing but tables take deflate 40 ms for 256 KiB of them, and yield nothing. And
# members may be of 20 bytes: each by itself, it would be millions of pieces to join.
_ZLIB_INPUT_BYTES: Final = 8192
# A block of 4 bytes can stand for 128 KiB, so this is what bounds a step's output to 2 MiB. More in
# one piece is fresh memory each time: 16 MiB take twenty milliseconds.
_ZSTD_INPUT_BYTES: Final = 64
_ZSTD_SLICE_INPUT_BYTES: Final = 512  # less, and a checkpoint would cost more than all else
_BROKEN: Final = "the body cannot be decompressed"
_TRUNCATED: Final = "the compressed body ends too early"


def is_ndjson(head: Head) -> bool:
    """Whether the body is announced as NDJSON rather than JSON. Raises UnsupportedMedia."""
    kind = _media_type(head)
    if kind == _NDJSON:
        return True
    if kind == _JSON:
        return False
    raise UnsupportedMedia("unsupported_content_type", f"send {_JSON} or {_NDJSON}")


def check_json(head: Head) -> None:
    """Raises UnsupportedMedia where the body is announced as anything but JSON."""
    if _media_type(head) != _JSON:
        raise UnsupportedMedia("unsupported_content_type", f"send {_JSON}")


def _media_type(head: Head) -> str:
    """In lower case; `application/json` where the header is absent."""
    if "content-type" in head.repeated:
        raise UnsupportedMedia("unsupported_content_type", "Content-Type may be sent once")
    kind, *parameters = head.headers.get("content-type", _JSON).lower().split(";")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in ("utf-8", "utf8"):
            raise UnsupportedMedia("unsupported_charset", "JSON is UTF-8")
    return kind.strip()


def encoding_of(head: Head) -> Encoding:
    """Raises UnsupportedMedia."""
    name = head.headers.get("content-encoding", "identity").lower()
    if "content-encoding" not in head.repeated:
        if name in ("identity", ""):
            return "identity"
        if name in ("gzip", "x-gzip"):
            return "gzip"
        if name == "deflate":
            return "deflate"
        if name == "zstd":
            return "zstd"
    raise UnsupportedMedia("unsupported_content_encoding", "send one of gzip, deflate, zstd")


async def decompress(data: bytes, encoding: Encoding, max_bytes: int, body: Body) -> bytes:
    """The plain body, of at most `max_bytes`, counted against the memory for bodies.

    Raises BodyTooLarge, MalformedBody, Overloaded.
    """
    if encoding == "identity":
        return data
    pieces = []
    total = 0
    try:
        for piece in _PLAIN[encoding](data):
            total += len(piece)
            if total > max_bytes:
                raise BodyTooLarge(max_bytes)
            body.hold(len(piece))
            pieces.append(piece)
            await trio.lowlevel.checkpoint()
    except (zlib.error, zstandard.ZstdError):
        raise MalformedBody("bad_compression", _BROKEN) from None
    return await joined(pieces)


def _gzip(data: bytes) -> Iterator[bytes]:
    """One or more members."""
    return _inflate(data, zlib.MAX_WBITS | 16, many=True)


def _deflate(data: bytes) -> Iterator[bytes]:
    """RFC 1950, and the bare RFC 1951 that some clients send under this name."""
    wrapped = len(data) >= 2 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
    return _inflate(data, zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS, many=False)


def _inflate(data: bytes, window_bits: int, *, many: bool) -> Iterator[bytes]:
    stream = zlib.decompressobj(window_bits)
    view = memoryview(data)
    for start in range(0, len(data), _ZLIB_INPUT_BYTES):
        rest = bytes(view[start : start + _ZLIB_INPUT_BYTES])
        pieces: list[bytes] = []
        room = _SLICE_BYTES
        while rest:
            if stream.eof:
                if not many:
                    raise MalformedBody("bad_compression", _BROKEN)
                stream = zlib.decompressobj(window_bits)
            pieces.append(stream.decompress(rest, room))
            rest = stream.unused_data if stream.eof else stream.unconsumed_tail
            room -= len(pieces[-1])
            if not room:
                yield b"".join(pieces)
                pieces, room = [], _SLICE_BYTES
        yield b"".join(pieces)
    while not stream.eof:  # all input is in, some output may still be inside
        piece = stream.decompress(b"", _SLICE_BYTES)
        if not piece:
            raise MalformedBody("truncated_body", _TRUNCATED)
        yield piece


def _zstd(data: bytes) -> Iterator[bytes]:
    """One or more frames."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW_BYTES)
    frame = decompressor.decompressobj()
    view = memoryview(data)
    pieces: list[bytes] = []
    for start in range(0, len(data), _ZSTD_INPUT_BYTES):
        rest = bytes(view[start : start + _ZSTD_INPUT_BYTES])
        while rest:
            if frame.eof:
                frame = decompressor.decompressobj()
            pieces.append(frame.decompress(rest))
            rest = frame.unused_data if frame.eof else b""
        is_end = not (start + _ZSTD_INPUT_BYTES) % _ZSTD_SLICE_INPUT_BYTES
        if is_end or sum(map(len, pieces)) >= _SLICE_BYTES:
            yield b"".join(pieces)
            pieces.clear()
    yield b"".join(pieces)
    if not frame.eof:
        raise MalformedBody("truncated_body", _TRUNCATED)


_PLAIN: Final[dict[Encoding, Callable[[bytes], Iterator[bytes]]]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
}
