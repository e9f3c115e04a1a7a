"""TLS at the daemon's port, through both doors, with a certificate made for the test."""

import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx
import msgspec
import pytest
import trio
import trustme
from live_daemon import Daemon, running_daemon
from raw_http import PATIENCE_SECONDS, connected, get, read_answer, read_to_end, request

from logd.client import LogdClient, NewEntry, Unreachable
from logd.config import KIB
from logd.door import listener

pytestmark = pytest.mark.both_doors

TlsStream = trio.SSLStream[trio.SocketStream]


class TlsDaemonFactory(Protocol):
    def __call__(self, **options: Any) -> AbstractAsyncContextManager[Daemon]: ...


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trust(authority: trustme.CA) -> ssl.SSLContext:
    """Of a client that knows the authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    return context


@pytest.fixture
def make_tls_daemon(
    tmp_path: Path, lane: bool, authority: trustme.CA, trust: ssl.SSLContext
) -> TlsDaemonFactory:
    issued = authority.issue_cert("127.0.0.1", "localhost")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.private_key_pem.write_to_path(key)
    for blob in issued.cert_chain_pems:
        blob.write_to_path(certificate, append=True)

    def make(**options: Any) -> AbstractAsyncContextManager[Daemon]:
        return running_daemon(
            tmp_path / "data",
            lane=lane,
            trust=trust,
            tls_cert=certificate,
            tls_key=key,
            **options,
        )

    return make


@pytest.fixture
async def tls_daemon(make_tls_daemon: TlsDaemonFactory) -> AsyncIterator[Daemon]:
    async with make_tls_daemon() as daemon:
        yield daemon


@asynccontextmanager
async def tls_connected(daemon: Daemon, trust: ssl.SSLContext) -> AsyncIterator[TlsStream]:
    stream = await trio.open_ssl_over_tcp_stream(
        "127.0.0.1", daemon.port, ssl_context=trust, https_compatible=True
    )
    async with stream:
        yield stream


def ingest(daemon: Daemon, count: int = 1, *headers: str, message: str = "m") -> bytes:
    body = msgspec.json.encode([daemon.entry(message=message)] * count)
    credential = f"Authorization: Bearer {daemon.key}"
    length = f"Content-Length: {len(body)}"
    return request("POST", "/v1/ingest", credential, length, *headers, body=body)


def listing(daemon: Daemon, *headers: str) -> bytes:
    path = f"/v1/projects/{daemon.project}/logs"
    return get(path, f"Authorization: Bearer {daemon.key}", *headers)


async def test_a_common_client_ingests_and_lists(tls_daemon: Daemon) -> None:
    assert tls_daemon.url.startswith("https://")
    for _ in range(3):
        response = await tls_daemon.call(
            "POST", "/v1/ingest", tls_daemon.key, json=[tls_daemon.entry()] * 1000
        )
        assert response.status_code == 200
    path = f"/v1/projects/{tls_daemon.project}/logs"
    response = await tls_daemon.call("GET", path, tls_daemon.key, params={"limit": 1000})
    assert response.json()["total"] == 3000
    assert len(response.json()["logs"]) == 1000


async def test_an_unknown_authority_is_the_clients_to_refuse(tls_daemon: Daemon) -> None:
    async with httpx.AsyncClient(trust_env=False) as stranger:
        with pytest.raises(httpx.ConnectError):
            await stranger.get(f"{tls_daemon.url}/livez")
    assert (await tls_daemon.call("GET", "/livez")).status_code == 200


async def test_the_client_asks_whom_it_trusts(
    tls_daemon: Daemon, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask() -> int:
        url, key, project = tls_daemon.url, tls_daemon.key, tls_daemon.project
        with LogdClient(url, key, project, retry_seconds=0) as client:
            client.ingest([NewEntry(level="INFO", message="over TLS", source="test")])
            return sum(1 for _ in client.iterate())

    with pytest.raises(Unreachable):
        await trio.to_thread.run_sync(ask)
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    assert await trio.to_thread.run_sync(ask) == 1


async def test_one_connection_serves_many_requests_and_both_kinds(
    tls_daemon: Daemon, trust: ssl.SSLContext
) -> None:
    async with tls_connected(tls_daemon, trust) as stream:
        have = b""
        for data in (ingest(tls_daemon), listing(tls_daemon), get("/livez"), listing(tls_daemon)):
            await stream.send_all(data)
            answer = await read_answer(stream, have)
            assert answer.status == 200
            assert "connection" not in answer.headers
            have = answer.rest


async def test_pipelined_requests_are_answered_in_order(
    tls_daemon: Daemon, trust: ssl.SSLContext
) -> None:
    async with tls_connected(tls_daemon, trust) as stream:
        names = [f"X-Request-Id: {n}" for n in range(5)]
        await stream.send_all(
            ingest(tls_daemon, 1, names[0])
            + listing(tls_daemon, names[1])
            + get("/livez", names[2])
            + ingest(tls_daemon, 1, names[3])
            + listing(tls_daemon, names[4])
        )
        have = b""
        for number in range(5):
            answer = await read_answer(stream, have)
            assert (answer.status, answer.headers["x-request-id"]) == (200, str(number))
            have = answer.rest
        assert msgspec.json.decode(answer.body)["total"] == 2


async def test_a_body_of_many_records_is_taken(tls_daemon: Daemon, trust: ssl.SSLContext) -> None:
    async with tls_connected(tls_daemon, trust) as stream:
        await stream.send_all(ingest(tls_daemon, 300, message="x" * 5000))
        answer = await read_answer(stream)
        assert answer.status == 200
        await stream.send_all(listing(tls_daemon))
        assert msgspec.json.decode((await read_answer(stream, answer.rest)).body)["total"] == 300


async def test_a_refused_body_leaves_an_answer(
    make_tls_daemon: TlsDaemonFactory, trust: ssl.SSLContext
) -> None:
    async with (
        make_tls_daemon(max_body_bytes=64 * KIB) as daemon,
        tls_connected(daemon, trust) as stream,
    ):
        credential = f"Authorization: Bearer {daemon.key}"
        await stream.send_all(
            request("POST", "/v1/ingest", credential, "Content-Length: 1000000000")
        )
        answer = await read_answer(stream)
        assert (answer.status, answer.code) == (413, "body_too_large")
        assert answer.headers["connection"] == "close"


async def test_http_1_1_is_the_protocol_whatever_is_offered(
    tls_daemon: Daemon, trust: ssl.SSLContext
) -> None:
    trust.set_alpn_protocols(["h2", "http/1.1"])
    async with tls_connected(tls_daemon, trust) as stream:
        await stream.send_all(get("/nowhere"))
        assert (await read_answer(stream)).status == 404
        assert stream.selected_alpn_protocol() == "http/1.1"


@pytest.mark.parametrize(
    "data",
    [b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\xff\xff", bytes(5000)],
    ids=["HTTP", "a broken handshake", "zeros"],
)
async def test_what_is_no_tls_ends_that_connection_only(tls_daemon: Daemon, data: bytes) -> None:
    async with connected(tls_daemon) as stream:
        await stream.send_all(data)
        await stream.send_eof()
        assert b"HTTP/1.1" not in await read_to_end(stream)
    assert (await tls_daemon.call("GET", "/livez")).status_code == 200


async def test_a_handshake_that_does_not_get_done_is_cut(
    make_tls_daemon: TlsDaemonFactory,
) -> None:
    async with (
        make_tls_daemon(request_timeout_seconds=0.3) as daemon,
        connected(daemon) as silent,
        connected(daemon) as slow,
    ):
        await slow.send_all(b"\x16\x03\x01\x02\x00\x01")
        assert await read_to_end(slow) == b""
        assert await read_to_end(silent) == b""


async def test_who_reads_to_the_end_of_the_connection_is_not_kept_waiting(
    make_tls_daemon: TlsDaemonFactory, trust: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon may still listen for a while, lest a reset takes the answer away."""
    monkeypatch.setattr(listener, "LINGER_SECONDS", 3600.0)
    async with make_tls_daemon() as daemon, tls_connected(daemon, trust) as stream:
        await stream.send_all(get("/livez", "Connection: close"))
        assert (await read_to_end(stream)).endswith(b"}")


async def test_stopping_closes_idle_connections_at_once(
    make_tls_daemon: TlsDaemonFactory, trust: ssl.SSLContext
) -> None:
    async with (
        make_tls_daemon(shutdown_grace_seconds=3600) as daemon,
        tls_connected(daemon, trust) as stream,
    ):
        await stream.send_all(listing(daemon))
        answer = await read_answer(stream)
        daemon.stop.set()
        assert answer.rest + await read_to_end(stream) == b""
        with trio.fail_after(PATIENCE_SECONDS):
            await daemon.stopped.wait()
