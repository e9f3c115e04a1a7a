"""Requests on one connection as bytes: plain ones, odd ones, damaged ones, in pieces."""

import gzip
import random
from typing import Final, NamedTuple

LAST: Final = b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
"""Ends each stream, and the connection, also where it becomes part of a damaged request."""


class Names(NamedTuple):
    """What requests may name: a project, its key, an admin's token, a stored entry's id."""

    project: str
    key: str
    admin: str
    entry: str


def make_stream(chance: random.Random, names: Names) -> list[bytes]:
    """The pieces to send one by one."""
    data = b"".join(_request(chance, names) for _ in range(chance.randrange(1, 5)))
    if chance.random() < 0.3:
        data = _damaged(data, chance)
    return _pieces(data + LAST, chance)


def _pieces(data: bytes, chance: random.Random) -> list[bytes]:
    cuts = sorted(chance.randrange(1, len(data)) for _ in range(chance.choice((0, 0, 1, 2, 6))))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]


# ---------------------------------------------------------------- requests


def _request(chance: random.Random, names: Names) -> bytes:
    method, target, body = chance.choice((_ingest, _ingest, _query, _query, _cold))(chance, names)
    headers = [chance.choice(_HOSTS), *_credential(chance, names)]
    if body is not None:
        headers += chance.choice(_KINDS)
        body, framing = _framed(body, chance)
        headers += framing
    for _ in range(chance.choice((0, 0, 1, 2))):
        headers.append(chance.choice(_EXTRAS))
    if chance.random() < 0.1:  # of this stream alone: the order of streams must not matter
        headers.append(b"Idempotency-Key: %d" % chance.getrandbits(64))
    if chance.random() < 0.1:
        headers.append(chance.choice(headers))
    if chance.random() < 0.3:
        chance.shuffle(headers)
    line = chance.choice(_LINES) if chance.random() < 0.15 else _LINES[0]
    end = b"\n" if chance.random() < 0.04 else b"\r\n"
    head = [line % (method, target), *(_spelt(one, chance) for one in headers), b"", b""]
    return end.join(head) + (body or b"")


def _ingest(chance: random.Random, names: Names) -> tuple[bytes, bytes, bytes | None]:
    entry = b'{"projectId":"%b","level":"INFO","message":"m %d","source":"s"}' % (
        names.project.encode(),
        chance.randrange(1000),
    )
    bodies = (
        entry,
        b"[%b,%b]" % (entry, entry),
        b"[]",
        b"",
        b"[",
        b"{}",
        b'[{"level":"odd"}]',
        entry.replace(b"INFO", b"\xff"),
        entry[:-1] + b',"extra":1}',
        b" " * 70_000,
        b" " * 200_000,
        entry[:-1] + b',"meta":{"filler":"%b"}}' % (b"x" * 40_000),
        gzip.compress(entry, mtime=0),
    )
    targets = (b"/v1/ingest",) * 4 + (
        b"/v1/ingest?partial=true",
        b"/v1/ingest?partial=maybe",
        b"/v1/ingest?",
        b"/v1/ingest?a=b&a=c",
        b"/v1/ingest/",
        b"/v1/ingest#f",
        b"/v1//ingest",
        b"/v1/%69ngest",
        b"http://a/v1/ingest",
    )
    weights = [8, 4] + [1] * (len(bodies) - 2)
    return b"POST", chance.choice(targets), chance.choices(bodies, weights)[0]


def _query(chance: random.Random, names: Names) -> tuple[bytes, bytes, bytes | None]:
    base = b"/v1/projects/%b/logs" % names.project.encode()
    until = b"to=2021-01-01T00:00:00Z"  # what the streams themselves ingest is later
    targets = (
        b"%b?%b" % (base, until),
        b"%b?%b&limit=3" % (base, until),
        b"%b?%b&level=ERROR" % (base, until),
        b"%b?%b&search=stored+7" % (base, until),
        b"%b?%b&search=%%22" % (base, until),
        b"%b?%b&search=%%ff" % (base, until),
        b"%b?%b&search=\xc3\xa4" % (base, until),
        b"%b?%b&limit=0" % (base, until),
        b"%b?%b&limit=3&limit=4" % (base, until),
        b"%b?%b&x=1" % (base, until),
        b"%b?%b&cursor=nonsense" % (base, until),
        b"%b?%b#fragment" % (base, until),
        b"%b?%b&search=a b" % (base, until),
        b"%b/stats?%b" % (base, until),
        b"%b/stats?bad=1" % base,
        b"%b/%b" % (base, names.entry.encode()),
        b"%b/%b?x=1" % (base, names.entry.encode()),
        b"%b/%b" % (base, names.entry.upper().replace("LOG_", "log_").encode()),
        b"%b/log_%b" % (base, b"0" * 36),
        b"%b/stats/" % base,
        b"%b/?%b" % (base, until),
        base.replace(b"projects/", b"projects/%b" % (b"0" * 8))[: len(base) + 1] + b"?" + until,
        b"/v1/projects/%b/logs" % (b"-" * 36),
        b"/v1/projects/%b/logs" % (b"0" * 36),
    )
    weights = [6, 3, 3, 3] + [1] * (len(targets) - 4)
    method = chance.choices((b"GET", b"HEAD", b"get", b"DELETE", b"POST"), (30, 2, 1, 1, 1))[0]
    body = b"x" if chance.random() < 0.05 else None
    return method, chance.choices(targets, weights)[0], body


def _cold(chance: random.Random, names: Names) -> tuple[bytes, bytes, bytes | None]:
    target = chance.choice((b"/livez", b"/v1/orgs/mine", b"/nowhere", b"/v1/me", b"*", b"/livez?x"))
    return chance.choice((b"GET", b"GET", b"GET", b"HEAD", b"OPTIONS", b"PUT")), target, None


def _credential(chance: random.Random, names: Names) -> list[bytes]:
    key, admin = names.key.encode(), names.admin.encode()
    good = [b"Authorization: Bearer " + key]
    others: tuple[list[bytes], ...] = (
        [],
        [b"Authorization: Bearer " + admin],
        [b"Authorization: Bearer nonsense"],
        [b"Authorization: bearer   " + key],
        [b"Authorization: Basic YTpi"],
        [b"Authorization:"],
        [b"Authorization: Bearer \xe4\xff"],
        [*good, *good],
        [b"authorization:Bearer %b  " % key],
        [b"Authorization:\tBearer " + key],
        [b"Authorization : Bearer " + key],
    )
    return good if chance.random() < 0.7 else list(chance.choice(others))


def _framed(body: bytes, chance: random.Random) -> tuple[bytes, list[bytes]]:
    """The body as it is sent, and the headers that say how long it is."""
    kind = chance.random()
    size = len(body)
    if kind < 0.75:
        return body, [b"Content-Length: %d" % size]
    if kind < 0.87:
        middle = size // 2
        halves = (body[:middle], body[middle:])
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(half), half) for half in halves if half)
        return chunks + b"0\r\n\r\n", [b"Transfer-Encoding: chunked"]
    odd: tuple[list[bytes], ...] = (
        [b"Content-Length:%d" % size],
        [b"Content-Length: %05d" % size],
        [b"Content-Length: +%d" % size],
        [b"Content-Length: %d " % size],
        [b"Content-Length: %d, %d" % (size, size)],
        [b"Content-Length: %d" % size] * 2,
        [b"Content-Length: %d" % size, b"Content-Length: %d" % (size + 1)],
        [b"Content-Length: %d" % size, b"Transfer-Encoding: chunked"],
        [b"Content-Length: 9999999999999999999999"],
        [b"Content-Length: 100000000000"],
        [b"Content-Length: 0x%x" % size],
        [b"Content-Length: %d" % size, b"Expect: 100-continue"],
        [b"Content-Length: \xb2"],
        [b"Content-Length:"],
        [],
    )
    return body, list(chance.choice(odd))


def _spelt(header: bytes, chance: random.Random) -> bytes:
    name, colon, value = header.partition(b":")
    style = chance.random()
    if style < 0.8 or not colon:
        return header
    if style < 0.9:
        return name.lower() + colon + value
    if style < 0.95:
        return name.upper() + colon + b"  " + value + b" \t "
    return name + colon + value.strip()


_LINES: Final = (
    b"%b %b HTTP/1.1",
    b"%b %b HTTP/1.0",
    b"%b %b HTTP/1.2",
    b"%b %b HTTP/2.0",
    b"%b  %b HTTP/1.1",
    b"%b %b  HTTP/1.1",
    b"%b %b HTTP/1.1 ",
    b"%b\t%b HTTP/1.1",
    b"%b %b http/1.1",
    b" %b %b HTTP/1.1",
    b"\r\n%b %b HTTP/1.1",
    b"\r\n\r\n%b %b HTTP/1.1",
    b"%b %b",
    b"%b %b HTTP/1.1\r\n folded: x",
    b"%b %b HTTP/01.1",
)

_HOSTS: Final = (b"Host: a",) * 16 + (
    b"Host: localhost:8514",
    b"Host: [::1]:8514",
    b"Host:",
    b"Host: a b",
    b"Host: a, b",
    b"Host: \xff",
    b"Host: " + b"a" * 300,
    b"X-No-Host: a",
    b"host : a",
)

_KINDS: Final[tuple[list[bytes], ...]] = ([b"Content-Type: application/json"],) * 8 + (
    [],
    [b"Content-Type: application/x-ndjson"],
    [b"Content-Type: text/plain"],
    [b"Content-Type: application/json; charset=utf-8"],
    [b"Content-Type: application/json", b"Content-Encoding: gzip"],
    [b"Content-Type: application/json", b"Content-Encoding: identity"],
    [b"Content-Type: application/json", b"Content-Type: application/json"],
    [b"Content-Type: \xe9"],
)

_EXTRAS: Final = (
    b"Connection: keep-alive",
    b"Connection: Keep-Alive",
    b"Connection: close",
    b"Connection: Close",
    b"Connection: keep-alive, close",
    b"Connection: upgrade",
    b"Connection:",
    b"Upgrade: h2c",
    b"Upgrade: websocket",
    b"TE: trailers",
    b"Trailer: x",
    b"Expect: 100-continue",
    b"Expect: something",
    b"Transfer-Encoding: identity",
    b"Accept-Encoding: gzip",
    b"Idempotency-Key: \xff",
    b"X-Request-Id: mine",
    b"X-Request-Id: not sane",
    b"X: " + b"a" * 5_000,
    b"X: " + b"a" * 40_000,
    b"X: \x00",
    b"X: \x01\x7f",
    b"X: a\rb",
    b"X: \xe4",
    b"X",
    b": x",
    b" X: folded",
    b"X Y: z",
    b"X(): z",
    b"Keep-Alive: timeout=5",
    b"Proxy-Connection: close",
    b"Cookie: a=b",
    b"Range: bytes=0-1",
    b"If-None-Match: *",
    b"X-Http-Method-Override: DELETE",
    b"Content-Length: 0",
)

# ---------------------------------------------------------------- damage


def _damaged(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randrange(1, 3)):
        at = chance.randrange(len(data))
        kind = chance.randrange(5)
        if kind == 0:
            data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[at + chance.randrange(1, 8) :]
        elif kind == 2:
            data = data[:at] + chance.choice(_FRAGMENTS) + data[at:]
        elif kind == 3:
            data = data[:at] + data[at : at + chance.randrange(1, 40)] + data[at:]
        else:
            data = data[: at + 1]
    return data


_FRAGMENTS: Final = (
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"\x00",
    b"\xff\xfe",
    b" ",
    b"\t",
    b":",
    b"%",
    b"?",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Host: b\r\n",
    b"Connection: close\r\n",
)
