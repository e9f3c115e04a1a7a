import pytest
from answering import LAST, OK, answering

from bench.http import (
    Address,
    Connection,
    ConnectionLost,
    ResponseReader,
    get,
    is_plain_success,
    post,
)

ADDRESS = Address("127.0.0.1", 8080)

WITH_LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    b"5;x=1\r\nhello\r\n3\r\n\r\n!\r\n0\r\n\r\n"
)
EMPTY = b"HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n"


def read(data: bytes, step: int) -> ResponseReader:
    """Feeds the response in pieces; it must be complete with the last one, and not before."""
    reader = ResponseReader()
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    assert [reader.feed(piece) for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    return reader


@pytest.mark.parametrize("step", [1, 7, 1_000])
@pytest.mark.parametrize(
    ("data", "status", "body", "closes"),
    [
        (WITH_LENGTH, 200, b"hello", False),
        (CHUNKED, 200, b"hello\r\n!", True),
        (EMPTY, 204, b"", False),
    ],
)
def test_a_response_is_read_however_it_arrives(
    data: bytes, status: int, body: bytes, closes: bool, step: int
) -> None:
    reader = read(data, step)
    assert (reader.status, reader.body(), reader.closes) == (status, body, closes)


def test_only_a_whole_and_plain_success_is_taken_for_one() -> None:
    assert is_plain_success(WITH_LENGTH)
    assert is_plain_success(WITH_LENGTH.lower().replace(b"http", b"HTTP"))
    others = (
        WITH_LENGTH[:-1],
        WITH_LENGTH + b"x",
        WITH_LENGTH[:30],
        WITH_LENGTH.replace(b"200", b"503"),
        WITH_LENGTH.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n"),
        CHUNKED,
        EMPTY,
    )
    assert [is_plain_success(other) for other in others] == [False] * len(others)


def test_requests_are_complete() -> None:
    assert get("/x", ADDRESS, "A: b") == (
        b"GET /x HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nA: b\r\n\r\n"
    )
    assert post("/x", ADDRESS, b"body").endswith(b"\r\nContent-Length: 4\r\n\r\nbody")


def test_only_plain_http_is_spoken() -> None:
    assert Address.of_url("http://localhost:9428/") == Address("localhost", 9428)
    with pytest.raises(ValueError, match="plain http"):
        Address.of_url("https://localhost")


def exchange(connection: Connection, address: Address, word: bytes) -> bytes:
    return connection.exchange(post("/", address, b"<%s>" % word)).body


def test_a_connection_is_kept() -> None:
    with answering([OK] * 3) as server:
        connection = Connection(server.address)
        answers = [exchange(connection, server.address, word) for word in (b"a", b"b", b"c")]
        connection.close()
    assert answers == [b"ok"] * 3
    assert server.received == [b"<a>", b"<b>", b"<c>"]
    assert server.connections == 1


def test_after_an_announced_close_the_next_request_has_a_new_connection() -> None:
    with answering([OK, LAST]) as server:
        connection = Connection(server.address)
        words = (b"a", b"b", b"c")
        answers = [exchange(connection, server.address, word) for word in words]
        connection.close()
    assert answers == [b"ok"] * 3
    assert server.received == [b"<a>", b"<b>", b"<c>"]
    assert server.connections == 2


def test_a_connection_that_was_closed_while_it_was_idle_is_opened_anew() -> None:
    with answering([OK]) as server:
        connection = Connection(server.address)
        for word in (b"a", b"b"):
            assert exchange(connection, server.address, word) == b"ok"
            server.wait_hung_up()
        connection.close()
    assert server.received == [b"<a>", b"<b>"]
    assert server.connections == 2


def test_a_request_that_was_sent_and_not_answered_is_not_sent_again() -> None:
    with answering([b""]) as server:
        connection = Connection(server.address)
        with pytest.raises(ConnectionLost):
            exchange(connection, server.address, b"a")
    assert server.received == [b"<a>"]
    assert server.connections == 1
