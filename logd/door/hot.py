"""Which heads the fast lane is sure of.

An HTTP/1.1 request whose head ends in CR LF CR LF and which llhttp takes, with one Host, no
Transfer-Encoding, Upgrade or Expect, no Connection but keep-alive, and for POST one Content-Length.
The body is then exactly the next so many bytes, and the next request follows.
"""

import re
from functools import lru_cache
from typing import Final

import httptools
import msgspec

from logd.api.exchange import HeadText, read_head
from logd.api.express import Ticket, ticket_of
from logd.door.heads import HOST
from logd.door.limits import MAX_HEAD_BYTES, MAX_HEADERS

_HOT_BEGINNINGS: Final = (b"POST /v1/ingest", b"GET /v1/projects/", b"GET /readyz", b"GET /livez")
_HOT: Final = re.compile(
    rb"(?:POST /v1/ingest|GET /v1/projects/[0-9a-f-]{36}/logs(?:/stats|/log_[0-9a-f-]{36})?"
    rb"|GET /(?:livez|readyz))"  # who probes and sends on one connection stays in the lane
    rb"(?:\?[!-~]*)? HTTP/1\.1\r\n"
)
_USUAL_BYTES: Final = 2048
_DOUBTFUL: Final = frozenset(
    (b"transfer-encoding", b"upgrade", b"expect", b"te", b"trailer", b"http2-settings")
)


class Request(msgspec.Struct, frozen=True):
    """A head, and the bytes of body that follow it. `ticket`: where it may go without a task."""

    text: HeadText
    length: int
    ticket: Ticket | None


class _Callbacks:
    """What llhttp finds in a head."""

    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = False

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.complete = True


def hot_request(data: bytes) -> Request | None:
    """The request of a whole head, None where there is any doubt."""
    if len(data) > MAX_HEAD_BYTES or not data.endswith(b"\r\n\r\n") or not _HOT.match(data):
        return None
    return _usual_request(data) if len(data) <= _USUAL_BYTES else _read(data)


@lru_cache(maxsize=1024)
def _usual_request(data: bytes) -> Request | None:
    """A client's heads differ in little but the Content-Length, so most were read before."""
    return _read(data)


def _read(data: bytes) -> Request | None:
    if not data.isascii() or data.count(b"\n") > 1 + MAX_HEADERS + 1:
        return None
    found = _Callbacks()
    parser = httptools.HttpRequestParser(found)
    try:
        parser.feed_data(data)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    if not found.complete:
        return None
    method = parser.get_method().decode()
    length = _body_length(method, found.headers)
    if length is None:
        return None
    text = read_head(method, found.target.decode(), found.headers)
    return Request(text, length, ticket_of(text))


def _body_length(method: str, headers: list[tuple[bytes, bytes]]) -> int | None:
    """Bytes of body that follow, None where a header raises a doubt."""
    hosts = 0
    length: int | None = None
    for name, value in headers:
        if name == b"host":
            hosts += 1
            if len(value) > 260 or not HOST.fullmatch(value):
                return None
        elif name == b"content-length":
            if length is not None or not value.isdigit() or len(value) > 12:
                return None
            length = int(value)
        elif name in _DOUBTFUL or (
            name == b"connection" and value.lower() not in (b"keep-alive", b"")
        ):
            return None
    if hosts != 1 or (method == "GET" and length):
        return None
    return 0 if method == "GET" else length


def may_become_hot(data: bytes) -> bool:
    """Whether more bytes may turn these into a head that is the lane's."""
    begins_so = any(hot.startswith(data[: len(hot)]) for hot in _HOT_BEGINNINGS)
    return begins_so and len(data) < MAX_HEAD_BYTES and not holds_head(data)


def holds_head(data: bytes) -> bool:
    """Whether a head ends in these bytes, by whichever line ends."""
    return b"\n\r\n" in data or b"\n\n" in data
