"""Single packets that kill or confuse a bare HTTP server."""

import gc
import json
import socket
import struct
import tracemalloc

import pytest
import trio
import trio.testing
from live_daemon import Daemon
from raw_http import (
    PATIENCE_SECONDS,
    assert_healthy,
    connected,
    exchange,
    get,
    parse,
    read_answer,
    read_to_end,
    request,
)

from logd.door.limits import MAX_HEADERS

pytestmark = pytest.mark.both_doors

H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
H2_SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"


def h2_frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return (
        len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
    )


def hpack(*pairs: tuple[bytes, bytes]) -> bytes:
    """Headers as literals without indexing."""
    return b"".join(
        b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in pairs
    )


def h2_headers(*pairs: tuple[bytes, bytes], flags: int = 0x05) -> bytes:
    return h2_frame(1, flags, 1, hpack(*pairs))


H2_INPUTS = {
    "non-ASCII path": h2_headers(
        (b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/\xff"), (b":authority", b"a")
    ),
    "non-ASCII method": h2_headers(
        (b":method", b"G\xe9T"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a")
    ),
    "CONNECT without a path": h2_headers((b":method", b"CONNECT"), (b":authority", b"a")),
    "DATA after an early response": h2_headers(
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/nowhere"),
        (b":authority", b"a"),
        flags=0x04,
    )
    + h2_frame(0, 0, 1, b"x" * 100) * 50,
    "1,001 PRIORITY frames": b"".join(
        h2_frame(2, 0, 2 * n + 1, b"\x00\x00\x00\x00\x10") for n in range(1001)
    ),
}


@pytest.mark.parametrize("frames", H2_INPUTS.values(), ids=H2_INPUTS.keys())
async def test_http2_by_prior_knowledge_is_refused(daemon: Daemon, frames: bytes) -> None:
    received = await exchange(daemon, H2_PREFACE + H2_SETTINGS + frames)
    answer = parse(received)
    assert answer is not None
    assert (answer.status, answer.code) == (505, "unsupported_http_version")
    await assert_healthy(daemon)


@pytest.mark.parametrize("settings", ["AAMAAABkAAQAAP__", "!", "\xff", "A" * 5000, ""])
async def test_an_upgrade_to_http2_is_ignored(daemon: Daemon, settings: str) -> None:
    async with connected(daemon) as stream:
        await stream.send_all(
            get(
                "/livez",
                "Connection: Upgrade, HTTP2-Settings",
                "Upgrade: h2c",
                f"HTTP2-Settings: {settings}",
            )
        )
        first = await read_answer(stream)
        assert first.status == 200
        await stream.send_all(get("/livez"))
        assert (await read_answer(stream, first.rest)).status == 200
    await assert_healthy(daemon)


@pytest.mark.parametrize("trailing", [b"", b"x", b"\x81\x05hello", b"\xff" * 100])
async def test_an_upgrade_to_websocket_is_ignored(daemon: Daemon, trailing: bytes) -> None:
    upgrade = get(
        "/livez",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    )
    async with connected(daemon) as stream:
        await stream.send_all(upgrade + trailing)
        answer = await read_answer(stream)
        assert answer.status == 200
    await assert_healthy(daemon)


async def test_content_length_with_transfer_encoding_is_refused(daemon: Daemon) -> None:
    smuggled = b"0\r\n\r\n" + get("/v1/orgs/mine")
    received = await exchange(
        daemon,
        request(
            "POST", "/v1/ingest", "Content-Length: 5", "Transfer-Encoding: chunked", body=smuggled
        ),
    )
    answer = parse(received)
    assert answer is not None
    assert (answer.status, answer.code) == (400, "malformed_request")
    assert answer.headers["connection"] == "close"
    assert answer.rest == b"", "the smuggled request is not answered"


async def test_a_refusal_of_a_head_names_the_request_as_its_client_does(daemon: Daemon) -> None:
    head = request("POST", "/v1/orgs", "Content-Length: 2", "Transfer-Encoding: chunked")
    for sent, echoed in ((b"mine-1", True), (b"not sane", False), (b"1\r\nX-Request-Id: 2", False)):
        marked = head[:-2] + b"X-Request-Id: " + sent + b"\r\n\r\n"
        answer = parse(await exchange(daemon, marked))
        assert answer is not None
        assert answer.status == 400
        assert (answer.headers["x-request-id"] == sent.decode()) is echoed
        assert json.loads(answer.body)["requestId"] == answer.headers["x-request-id"]


async def test_a_refusal_does_not_name_an_earlier_request(daemon: Daemon) -> None:
    async with connected(daemon) as stream:
        await stream.send_all(get("/v1/nowhere", "X-Request-Id: mine"))
        first = await read_answer(stream)
        assert first.headers["x-request-id"] == "mine"
        await stream.send_all(b"not HTTP\r\n\r\n")
        second = await read_answer(stream, first.rest)
        assert second.status == 400
        assert second.headers["x-request-id"] != "mine"


@pytest.mark.parametrize("path", ["/v1/me", "/v1/projects/{project}/logs", "/livez"])
async def test_a_client_that_resets_after_its_request_is_no_error(
    daemon: Daemon, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    await daemon.call("GET", "/v1/me", daemon.admin)  # there is a server
    data = get(path.format(project=daemon.project), f"Authorization: Bearer {daemon.admin}")
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", daemon.port)) as client:
            client.sendall(data)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await assert_healthy(daemon)
        await trio.testing.wait_all_tasks_blocked()
    assert "error" not in caplog.text


async def test_transfer_encoding_in_http_1_0_is_refused(daemon: Daemon) -> None:
    received = await exchange(
        daemon, b"POST /v1/ingest HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    answer = parse(received)
    assert answer is not None
    assert answer.status == 400


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\n\r\n", 400),  # without Host
        (b"GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"GET livez HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET ?a=b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET ftp://a/livez HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"CONNECT test:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"CONNECT HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"head /livez HTTP/1.1\r\nHost: a\r\n\r\n", 400),  # methods know upper from lower case
        (b"Get /livez HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /livez HTTP/3.7\r\nHost: a\r\n\r\n", 505),
        (b"POST /v1/ingest HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"GET /livez HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 40_000 + b"\r\n\r\n", 431),
        (b"GET /livez HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 40_000, 431),
        (
            b"POST /v1/ingest HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nX: "
            + b"a" * 40_000
            + b"\r\n\r\n[]",
            431,
        ),
        (b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431),
        (b"GET /livez HTTP/1.1\r\nHost: a\r\n" + b"A: b\r\n" * 6_000 + b"\r\n", 431),
    ],
)
async def test_a_bad_head_is_answered_with_a_problem(
    daemon: Daemon, data: bytes, status: int
) -> None:
    answer = parse(await exchange(daemon, data))
    assert answer is not None
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["connection"] == "close"
    assert answer.headers["x-request-id"]
    await assert_healthy(daemon)


BLANKS = b" " * 32_000
CHUNKED = request("POST", "/v1/ingest", "Transfer-Encoding: chunked")


@pytest.mark.parametrize(
    "data",
    [
        *(
            get("/livez")[:-2] + b"X:" + BLANKS + byte + b"\r\n\r\n"
            for byte in (b"\0", b"\v", b"\f")
        ),
        get("/livez")[:-2] + b"X:" + BLANKS + b"\rY: z\r\n\r\n",
        CHUNKED + b"0\r\nX:" + BLANKS + b"\0\r\n\r\n",
        CHUNKED + b"1;" + BLANKS + b"\n" + BLANKS[:100] + b"\r\nx\r\n0\r\n\r\n",
    ],
    ids=["NUL", "VT", "FF", "CR", "trailer", "chunk extension"],
)
async def test_many_blanks_before_what_is_not_allowed_hold_up_nobody(
    daemon: Daemon, data: bytes
) -> None:
    with trio.fail_after(PATIENCE_SECONDS):  # together
        for _ in range(16):
            answer = parse(await exchange(daemon, data))
            assert answer is not None
            assert (answer.status, answer.code) in (
                (400, "malformed_request"),
                (401, "credential_missing"),
            )
    await assert_healthy(daemon)


@pytest.mark.parametrize("path", ["/livez", "/v1/me"])
async def test_so_many_headers_and_no_more(daemon: Daemon, path: str) -> None:
    for count, status in ((MAX_HEADERS, 200), (MAX_HEADERS + 1, 431), (6000, 431)):
        headers = ["A: b"] * (count - 2)  # Host is one too
        async with connected(daemon) as stream:
            await stream.send_all(get(path, f"Authorization: Bearer {daemon.admin}", *headers))
            answer = await read_answer(stream)
            assert answer.status == status, count
            assert status == 200 or answer.code == "head_too_large"


async def test_long_paths_are_not_remembered(daemon: Daemon) -> None:
    """Nobody needs a credential to send them."""
    paths = [f"/v1/orgs/%F0%9F%98%80{number:030000}" for number in range(100)]
    async with connected(daemon) as stream:
        await stream.send_all(get(paths[0]))
        answer = await read_answer(stream)  # there is a server now
        tracemalloc.start()
        try:
            for path in paths:
                await stream.send_all(get(path))
                answer = await read_answer(stream, answer.rest)
                assert (answer.status, answer.code) == (401, "credential_missing")
            gc.collect()
            taken = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
    assert taken < len("".join(paths)) / 2


async def test_an_idle_connection_does_not_keep_what_came_on_it(daemon: Daemon) -> None:
    async with trio.open_nursery() as nursery:
        taken = []
        for size in (1, 1, 25_000):  # the first round makes what all share
            data = get("/v1/me", "X: " + "a" * size) * 2 + get("/v1/me")
            tracemalloc.start()
            for _ in range(30):
                stream = await trio.open_tcp_stream("127.0.0.1", daemon.port)
                nursery.start_soon(_close_in_the_end, stream)
                await stream.send_all(data)
                answer = await read_answer(stream)
                for _ in range(2):
                    answer = await read_answer(stream, answer.rest)
                assert answer.code == "credential_missing"
            gc.collect()
            taken.append(tracemalloc.get_traced_memory()[0])
            tracemalloc.stop()
        nursery.cancel_scope.cancel()
    assert taken[2] - taken[1] < 30 * 10_000


async def _close_in_the_end(stream: trio.SocketStream) -> None:
    async with stream:
        await trio.sleep_forever()


async def test_so_many_trailers_and_no_more(daemon: Daemon) -> None:
    head = request(
        "POST", "/v1/ingest", f"Authorization: Bearer {daemon.key}", "Transfer-Encoding: chunked"
    )
    for count, status in ((MAX_HEADERS, 200), (2 * MAX_HEADERS, 431), (10_000, 431)):
        async with connected(daemon) as stream:
            await stream.send_all(head + b"2\r\n[]\r\n0\r\n" + b"A: b\r\n" * count + b"\r\n")
            assert (await read_answer(stream)).status == status, count


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://test/livez", 200),
        ("HTTPS://test:8514/livez?", 200),
        ("*", 404),
        ("//livez", 404),
        ("/livez/", 404),
        ("/%6civez", 404),
        ("/..%2f..%2fetc/passwd", 404),
        ("/%00", 404),
        ("/%ff%fe", 404),
        ("/v1/orgs/%zz", 401),
        ("/v1/orgs/..", 401),
    ],
)
async def test_odd_targets_get_plain_answers(daemon: Daemon, target: str, status: int) -> None:
    async with connected(daemon) as stream:
        await stream.send_all(get(target))
        assert (await read_answer(stream)).status == status
    await assert_healthy(daemon)


async def test_an_odd_host_is_no_matter(daemon: Daemon) -> None:
    for host in ("", "a b", "\xff", "[::1", "a" * 300, "xn--\xe9", "a,b", "a:b:c", "/", "@"):
        async with connected(daemon) as stream:
            await stream.send_all(f"GET /livez HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1"))
            answer = await read_answer(stream)
            assert answer.status in (200, 400), host
    await assert_healthy(daemon)


async def test_pipelined_requests_are_answered_in_order(daemon: Daemon) -> None:
    async with connected(daemon) as stream:
        await stream.send_all(get("/livez", "X-Request-Id: one") + get("/nowhere") + get("/readyz"))
        first = await read_answer(stream)
        second = await read_answer(stream, first.rest)
        third = await read_answer(stream, second.rest)
    assert [first.status, second.status, third.status] == [200, 404, 200]
    assert first.headers["x-request-id"] == "one"


async def test_http_1_0_gets_its_answer_and_a_close(daemon: Daemon) -> None:
    answer = parse(await exchange(daemon, b"GET /livez HTTP/1.0\r\n\r\n"))
    assert answer is not None
    assert answer.status == 200
    assert answer.body == b'{"status":"alive"}'


async def test_head_has_the_headers_of_get_and_no_body(daemon: Daemon) -> None:
    async with connected(daemon) as stream:
        await stream.send_all(request("HEAD", "/livez", "Connection: close"))
        received = await read_to_end(stream)
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"content-length: 18" in head.lower()
    assert body == b""


async def test_expect_100_continue_is_answered_before_the_body(daemon: Daemon) -> None:
    body = b"[]"
    async with connected(daemon) as stream:
        await stream.send_all(
            request(
                "POST",
                "/v1/ingest",
                f"Authorization: Bearer {daemon.key}",
                "Expect: 100-continue",
                f"Content-Length: {len(body)}",
            )
        )
        interim = await read_answer(stream)
        assert interim.status == 100
        await stream.send_all(body)
        assert (await read_answer(stream, interim.rest)).status == 200
