"""The cursor of a listing: where the next page begins, as opaque text.

    offset  size  content, big-endian
    0       1     version, 1
    1       8     pinned_seq   int64
    9       8     last_ts_ns   int64
    17      8     last_seq     int64
    25      8     total        int64
    33      8     BLAKE2b-64 of the project's id and the filter's digest
    41      4     CRC-32 of bytes 0-40

as base64url: 60 characters, without padding. The checksum finds accidents, not forgery: a forged
cursor shows nothing that its bearer may not list anyway.
"""

import base64
import hashlib
import re
import struct
import zlib
from typing import Final

import msgspec

from logd.entry import ProjectId, Seq
from logd.errors import BadQuery
from logd.query.ast import And, Filter, Node, Not, Or, Term

_VERSION: Final = 1
_PAYLOAD: Final = struct.Struct(">B4q8s")
_CHECKSUM: Final = struct.Struct(">I")
assert _PAYLOAD.size == 41
_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{60}")


class Cursor(msgspec.Struct, frozen=True):
    """`pinned_seq`: the listing holds the entries below this sequence number, as its first page
    did. `last_ts_ns` and `last_seq`: the last entry of the page before; the next page begins just
    after it in listing order. `total`: what the first page counted."""

    pinned_seq: int
    last_ts_ns: int
    last_seq: Seq
    total: int


def encode(cursor: Cursor, project_id: ProjectId, filter_digest: bytes) -> str:
    payload = _PAYLOAD.pack(
        _VERSION,
        cursor.pinned_seq,
        cursor.last_ts_ns,
        cursor.last_seq,
        cursor.total,
        _binding(project_id, filter_digest),
    )
    data = payload + _CHECKSUM.pack(zlib.crc32(payload))
    return base64.urlsafe_b64encode(data).decode()


def decode(text: str, project_id: ProjectId, filter_digest: bytes) -> Cursor:
    """Raises BadQuery: `bad_cursor` for anything that `encode` does not write, `cursor_mismatch`
    for the cursor of another project or other filters."""
    if _TEXT.fullmatch(text) is None:
        raise _bad("not a cursor")
    data = base64.urlsafe_b64decode(text)
    if data[0] != _VERSION:
        raise _bad(f"version {data[0]} is unknown")
    payload, checksum = data[: _PAYLOAD.size], data[_PAYLOAD.size :]
    if checksum != _CHECKSUM.pack(zlib.crc32(payload)):
        raise _bad("damaged")
    _, pinned_seq, last_ts_ns, last_seq, total, binding = _PAYLOAD.unpack(payload)
    if not 0 <= last_seq < pinned_seq or total < 0:
        raise _bad("impossible position")
    if binding != _binding(project_id, filter_digest):
        detail = "the cursor belongs to another project or to other filters"
        raise BadQuery("cursor", "cursor_mismatch", detail)
    return Cursor(pinned_seq, last_ts_ns, Seq(last_seq), total)


def _bad(reason: str) -> BadQuery:
    return BadQuery("cursor", "bad_cursor", f"cursor: {reason}; pass the previous nextCursor")


def _binding(project_id: ProjectId, filter_digest: bytes) -> bytes:
    return hashlib.blake2b(filter_digest + project_id.encode(), digest_size=8).digest()


_DIGEST_BYTES: Final = 16


def filter_digest(filter_: Filter) -> bytes:
    """16 bytes that are the same for equal filters, in every process and after every restart."""
    search = None if filter_.search is None else _tagged(filter_.search)
    fields = (filter_.level, filter_.from_ns, filter_.to_ns, search)
    return hashlib.blake2b(msgspec.json.encode(fields), digest_size=_DIGEST_BYTES).digest()


def _tagged(node: Node) -> tuple[object, ...]:
    """The tree as JSON types, each node led by its kind, so that different trees never agree."""
    if isinstance(node, Term):
        words = [(word.text, word.kind.value) for word in node.words]
        return ("term", node.field.value, node.meta_path, words)
    if isinstance(node, Not):
        return ("not", _tagged(node.child))
    kind = {And: "and", Or: "or"}[type(node)]
    return (kind, [_tagged(child) for child in node.children])
