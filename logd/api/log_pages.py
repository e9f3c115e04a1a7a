"""A page of entries as JSON.

An entry may have 72 KiB, and a page 1,000 of them. One that is large is made in slices, with a
checkpoint between them, and put together in a thread, which does that without the interpreter's
lock: so the event loop goes on. It counts against the memory for bodies until it is sent.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import trio
from msgspec import UNSET

from logd.api import log_schema
from logd.api.exchange import Call, Response, json_response, raw_json_response
from logd.daemon.queries import Page
from logd.entry import Entry, ProjectId

SLICE_BYTES: Final = 1 << 20
"""What is encoded without a pause, in about a millisecond. A smaller page is one slice."""

_FIXED_BYTES: Final = 200  # names, ids and the time, of an entry
_START: Final = b'{"logs":['
_encoder: Final = msgspec.json.Encoder()


async def page_response(
    project: ProjectId, page: Page, call: Call, max_held_bytes: int
) -> Response:
    """`max_held_bytes`: what a page counts against the memory for bodies at most, so that there is
    always room for one. Raises Overloaded."""
    size = sum(map(_size_bytes, page.rows))
    if size <= SLICE_BYTES:
        return json_response(
            _wire_page(page, tuple(_wire_entries(project, page, 0, len(page.rows))))
        )
    call.hold(min(size, max_held_bytes))
    pieces = [_START]
    first = 0
    for last in _slices(page.rows):
        entries = _encoder.encode(_wire_entries(project, page, first, last))
        pieces += [entries[1:-1], b","]
        first = last
        await trio.lowlevel.checkpoint()
    pieces[-1] = _encoder.encode(_wire_page(page, ()))[len(_START) :]
    return raw_json_response(await trio.to_thread.run_sync(b"".join, pieces))


def _wire_page(page: Page, logs: tuple[log_schema.LogEntry, ...]) -> log_schema.LogPage:
    return log_schema.LogPage(
        logs=logs,
        next_cursor=page.next_cursor,
        total=page.total,
        partial=True if page.damaged else UNSET,
    )


def _wire_entries(
    project: ProjectId, page: Page, first: int, last: int
) -> list[log_schema.LogEntry]:
    return [
        log_schema.log_entry(project, log_id, entry)
        for log_id, entry in zip(page.ids[first:last], page.rows[first:last], strict=True)
    ]


def _slices(rows: Sequence[Entry]) -> Iterator[int]:
    """Where slices of the rows end, the last one with them."""
    size = 0
    for number, entry in enumerate(rows):
        if size and size + _size_bytes(entry) > SLICE_BYTES:
            yield number
            size = 0
        size += _size_bytes(entry)
    yield len(rows)


def _size_bytes(entry: Entry) -> int:
    """About what it takes as JSON."""
    return len(entry.message) + len(entry.tags) + len(entry.meta) + _FIXED_BYTES
