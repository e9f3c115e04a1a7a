"""Bodies that were accepted before, decoded many at a time: what a write-ahead log holds.

A body of one entry costs several times as much to decode alone as among others.
"""

from collections.abc import Sequence

import numpy as np

from logd.entry import ProjectId
from logd.format.body import Batch, decode_fast


def decode_bodies(
    bodies: Sequence[bytes],
    counts: Sequence[int],
    received_ns: Sequence[int],
    project: ProjectId,
    *,
    ndjson: bool,
) -> Batch | None:
    """The entries of all bodies, in order, as `decode_body` decodes each. `counts`: the entries
    of each. None where a body or its count is not what it was, or only `decode_body` can tell."""
    if ndjson:
        whole = b"\n".join(bodies)
    else:
        whole = b"[" + b",".join([_members(body) for body in bodies]) + b"]"
    batch = decode_fast(whole, project, np.repeat(np.array(received_ns, np.int64), counts), ndjson)
    return batch if batch is not None and batch.count == sum(counts) else None


def _members(body: bytes) -> bytes:
    """Of an array, or the one object."""
    if body[:1] == b"{":
        return body
    text = body.strip()
    return text[1:-1] if text[:1] == b"[" else text
