"""Ids of entries: computed from the project and the sequence number, never stored.

    log_SSSSSSSS-SSSS-8SSS-VSSS-QQQQQQQQQQQQ     a UUIDv8 (RFC 9562) behind "log_"

S: salt, 74 bits of BLAKE2b over the project's id; V: variant and two more bits of the salt;
Q: the sequence number, 48 bits.
"""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from logd.entry import ProjectId, Seq

PREFIX: Final = "log_"
_SEQ_DIGITS: Final = 12
_LOW: Final = tuple(f"{low:03x}" for low in range(4096))
_STRETCH: Final = 4096  # indexes that are looked at together: a fraction of a millisecond
_SHAPE: Final = re.compile(
    r"log_[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)


@lru_cache(maxsize=4096)
def id_prefix(project: ProjectId) -> str:
    """All of an id but its last 12 digits, the same for all entries of a project."""
    salt = hashlib.blake2b(project.encode(), digest_size=10, person=b"logd-entry-ids").hexdigest()
    variant = "89ab"[int(salt[15], 16) & 3]
    return f"{PREFIX}{salt[:8]}-{salt[8:12]}-8{salt[12:15]}-{variant}{salt[16:19]}-"


def log_id(project: ProjectId, seq: Seq) -> str:
    return f"{id_prefix(project)}{seq:012x}"


def parse_log_id(project: ProjectId, text: str) -> Seq | None:
    """The sequence number, or None where the text is no id of this project."""
    lowered = text.lower()
    if not _SHAPE.fullmatch(lowered) or not lowered.startswith(id_prefix(project)):
        return None
    return Seq(int(lowered[-_SEQ_DIGITS:], 16))


def ids_json_each(project: ProjectId, first: Seq, count: int) -> list[bytes]:
    """For each of `count` consecutive entries a JSON array with nothing but its id."""
    prefix = id_prefix(project)
    return [f'["{prefix}{seq:012x}"]'.encode() for seq in range(first, first + count)]


def ids_json(project: ProjectId, first: Seq, count: int) -> bytes:
    """A JSON array of the ids of `count` consecutive entries, about 10 ns an id."""
    if count == 0:
        return b"[]"
    if count == 1:
        return ids_json_each(project, first, 1)[0]
    prefix = id_prefix(project)
    pieces = []
    before = "["
    for high in range(first >> 12, ((first + count - 1) >> 12) + 1):
        start = max(first - (high << 12), 0)
        stop = min(first + count - (high << 12), 4096)
        base = f'"{prefix}{high:09x}'
        ids = f'",{base}'.join(_LOW[start:stop])
        pieces.append(f'{before}{base}{ids}"'.encode())
        before = ","
    pieces.append(b"]")
    return b"".join(pieces)  # of bytes: many are joined without the interpreter's lock


def ids_json_of_kept(project: ProjectId, first: Seq, kept: Sequence[int], count: int) -> bytes:
    """A JSON array of `count` entries: the ids of those at the indexes `kept`, which are ascending
    and have the sequence numbers from `first` on, and null for the others."""
    if count == 0:
        return b"[]"
    pieces = [b"["]
    known = 0
    for start in range(0, count, _STRETCH):
        stop = min(start + _STRETCH, count)
        following = bisect_left(kept, stop, known)
        texts = np.full(stop - start, b"null", object)
        if following > known:
            ids = ids_json(project, Seq(first + known), following - known)
            texts[np.array(kept[known:following]) - start] = ids[1:-1].split(b",")
        pieces += [b",".join(texts.tolist()), b","]
        known = following
    pieces[-1] = b"]"
    return b"".join(pieces)
