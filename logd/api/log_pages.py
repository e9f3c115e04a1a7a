"""A page of entries as JSON.

An entry may have 72 KiB, and a page 1,000 of them. One that is large is made in slices, with a
checkpoint between them, and put together in a thread, which does that without the interpreter's
lock: so the event loop goes on. It counts against the memory for bodies until it is sent.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Final

import msgspec
import trio
from msgspec import UNSET

from logd.api import log_schema
from logd.api.exchange import Call, Response, raw_json_response
from logd.api.joining import joined
from logd.daemon.queries import Page
from logd.entry import Entry, ProjectId, Seq

SLICE_BYTES: Final = 1 << 20
"""What is encoded without a pause, in about a millisecond. A smaller page is one slice."""

_FIXED_BYTES: Final = 200  # names, ids and the time, of an entry
_START: Final = b'{"logs":['
_REMEMBERED_BYTES: Final = 1 << 19
_LARGEST_BYTES: Final = 1024  # of a text that is remembered: a page of them is one slice
_TEXT_BYTES: Final = 250  # what a text that is remembered takes besides its bytes
_encoder: Final = msgspec.json.Encoder()

_Key = tuple[int, Seq]
"""An opening of a project, and a sequence number."""


class LogPages:
    """Writes pages. What small entries are as JSON is remembered for a while: who looks at a log
    asks for its newest again and again."""

    def __init__(self) -> None:
        self._texts: dict[_Key, bytes] = {}
        self._size_bytes = 0

    async def response(self, project: ProjectId, page: Page, call: Call) -> Response:
        """Raises Overloaded."""
        response = self.response_at_once(project, page)
        if response is None:
            call.hold_answer(_page_bytes(page))
            response = await _in_slices(project, page)
        return response

    def response_at_once(self, project: ProjectId, page: Page) -> Response | None:
        """None for a page of more than a slice."""
        keys = list(zip(repeat(page.opening), [entry.seq for entry in page.rows]))
        try:
            texts = [self._texts[key] for key in keys]
        except KeyError:
            if _page_bytes(page) > SLICE_BYTES:
                return None
            texts = list(map(self._text, repeat(project), keys, page.rows))
        return raw_json_response(b"%b%b%b" % (_START, b",".join(texts), _end(page)))

    def _text(self, project: ProjectId, key: _Key, entry: Entry) -> bytes:
        known = self._texts.get(key)
        if known is not None:
            return known
        text = _encoder.encode(log_schema.log_entry(project, entry))
        if len(text) <= _LARGEST_BYTES:
            self._texts[key] = text
            self._size_bytes += len(text) + _TEXT_BYTES
            while self._size_bytes > _REMEMBERED_BYTES:
                oldest = next(iter(self._texts))
                self._size_bytes -= len(self._texts.pop(oldest)) + _TEXT_BYTES
        return text


async def _in_slices(project: ProjectId, page: Page) -> Response:
    pieces = [_START]
    first = 0
    for last in _slices(page.rows):
        entries = _encoder.encode(
            [log_schema.log_entry(project, entry) for entry in page.rows[first:last]]
        )
        pieces += [entries[1:-1], b","]
        first = last
        await trio.lowlevel.checkpoint()
    pieces[-1] = _end(page)
    return raw_json_response(await joined(pieces))


def _end(page: Page) -> bytes:
    """What follows the last entry."""
    without_entries = log_schema.LogPage(
        logs=(),
        next_cursor=page.next_cursor,
        total=page.total,
        partial=True if page.damaged else UNSET,
    )
    return _encoder.encode(without_entries)[len(_START) :]


def _slices(rows: Sequence[Entry]) -> Iterator[int]:
    """Where slices of the rows end, the last one with them."""
    size = 0
    for number, entry in enumerate(rows):
        if size and size + _size_bytes(entry) > SLICE_BYTES:
            yield number
            size = 0
        size += _size_bytes(entry)
    yield len(rows)


def _page_bytes(page: Page) -> int:
    return sum(map(_size_bytes, page.rows))


def _size_bytes(entry: Entry) -> int:
    """About what it takes as JSON."""
    return len(entry.message) + len(entry.tags) + len(entry.meta) + _FIXED_BYTES
