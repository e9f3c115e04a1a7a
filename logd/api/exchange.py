"""A request and its response, as values that know no web framework.

Every door delivers a `Head` and a `Body`, and gets a `Response`. The head alone decides whether a
request is let in; the body is read only then.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

import msgspec

from logd.control.model import Principal
from logd.entry import RandomBytes

_SANE_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")

_REQUEST_ID_BYTES: Final = 16
_IDS_AT_ONCE: Final = 64

Header = tuple[str, str]
"""Name in lower case, value."""

_KNOWN: Final = frozenset(
    (
        "authorization",
        "content-encoding",
        "content-type",
        "idempotency-key",
        "x-request-id",
    )
)


class Head(msgspec.Struct, frozen=True):
    """A request without its body.

    `path`: as sent, percent-encoded, without the query. `query`: the raw text after `?`.
    `headers`: those that operations look at, by lower-case name, `repeated` the names among them
    that came more than once. `request_id`: echoed where the client sent a sane one.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    repeated: frozenset[str]
    request_id: str


class Body(Protocol):
    """The body of a request, on its way in."""

    async def read(self, max_bytes: int) -> bytes:
        """All of it. Raises BodyTooLarge, BodyTooSlow, or Overloaded where the memory for
        bodies is spent."""
        ...

    def hold(self, count: int) -> None:
        """Count further bytes of it, plain or decompressed, against the memory for bodies, until
        the response is sent. Raises Overloaded: what it held is free then."""
        ...

    def hold_answer(self, size: int) -> None:
        """Count its response, of so many bytes, against the memory for bodies, until that is sent.
        Again where the size is known better. Raises Overloaded."""
        ...


class Response(msgspec.Struct, frozen=True):
    """`headers` says nothing about the length, which is that of `body`."""

    status: int
    headers: tuple[Header, ...]
    body: bytes


class Call(msgspec.Struct, frozen=True):
    """A request that was let in. `params`: the path's parameters, ids in canonical form;
    `query`: the query's parameters, each known to the route; `hold_answer`: see `Body`."""

    head: Head
    params: dict[str, str]
    query: Mapping[str, str]
    principal: Principal | None
    body: bytes
    hold_answer: Callable[[int], None]


class HeadText(msgspec.Struct, frozen=True):
    """What a head says. `request_id`: None where the client sent none that is sane."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    repeated: frozenset[str]
    request_id: str | None

    def head(self, random_bytes: RandomBytes) -> Head:
        """The head of one request that said so."""
        request_id = self.request_id or new_request_id(random_bytes)
        return Head(self.method, self.path, self.query, self.headers, self.repeated, request_id)


def make_head(
    method: str, target: str, headers: Iterable[tuple[bytes, bytes]], random_bytes: RandomBytes
) -> Head:
    """See `read_head`."""
    return read_head(method, target, headers).head(random_bytes)


def read_head(method: str, target: str, headers: Iterable[tuple[bytes, bytes]]) -> HeadText:
    """`target`: as in the request line, in origin form. `headers`: raw, names in any case."""
    found: dict[str, str] = {}
    repeated = set()
    for raw_name, raw_value in headers:
        name = raw_name.decode("latin-1").lower()
        if name in _KNOWN:
            if name in found:
                repeated.add(name)
            found[name] = raw_value.decode("latin-1").strip()
    path, _, query = target.partition("?")
    request_id: str | None = found.get("x-request-id", "")
    if "x-request-id" in repeated or not _SANE_REQUEST_ID.fullmatch(request_id or ""):
        request_id = None
    return HeadText(method, path, query, found, frozenset(repeated), request_id)


def new_request_id(random_bytes: RandomBytes) -> str:
    return random_bytes(_REQUEST_ID_BYTES).hex()


class RequestIds:
    """New ids for many requests, the randomness of several drawn at once."""

    def __init__(self, random_bytes: RandomBytes) -> None:
        self._random_bytes = random_bytes
        self._drawn: list[str] = []

    def next(self) -> str:
        if not self._drawn:
            text = self._random_bytes(_REQUEST_ID_BYTES * _IDS_AT_ONCE).hex()
            step = 2 * _REQUEST_ID_BYTES
            self._drawn = [text[at : at + step] for at in range(0, len(text), step)]
        return self._drawn.pop()


_JSON: Final[Header] = ("content-type", "application/json")
_NO_STORE: Final[Header] = ("cache-control", "no-store")
_encoder: Final = msgspec.json.Encoder()


def json_response(value: object, status: int = 200) -> Response:
    """`value`: a struct of `schema.py`, or a list of them."""
    return Response(status, (_JSON,), _encoder.encode(value))


def raw_json_response(body: bytes, status: int = 200) -> Response:
    return Response(status, (_JSON,), body)


NO_CONTENT: Final = Response(204, (), b"")


def with_common(response: Response, request_id: str) -> Response:
    """With the headers that every response has; the one that is never the same comes last."""
    headers = (*response.headers, _NO_STORE, ("x-request-id", request_id))
    return Response(response.status, headers, response.body)
