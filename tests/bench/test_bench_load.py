"""The load client against a small server of its own."""

import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from answering import BUSY, LAST, OK, answering

from bench.corpus import BLOCK, write_corpus
from bench.http import Address
from bench.load import LoadPlan, LoadResult, run_load
from bench.oracle import Oracle
from bench.wire import RequestForm, write_requests


def word(lines: Sequence[bytes]) -> bytes:
    """A body that tells these lines from others."""
    return b"<%08x>" % zlib.crc32(b"\n".join(lines))


def load(work: Path, address: Address, requests: int, connections: int) -> LoadResult:
    corpus = write_corpus(work / "corpus", 1, BLOCK, Oracle([], []))
    form = RequestForm(b"POST / HTTP/1.1\r\n", word)
    file = write_requests(work / "requests", corpus, 0, BLOCK, 1, form)
    return run_load(LoadPlan(address, file, 0, requests, connections, 60.0))


def test_every_request_is_sent_once_and_acknowledged(tmp_path: Path) -> None:
    with answering([OK] * 100) as server:
        result = load(tmp_path, server.address, 60, 3)
    assert sorted(result.acknowledged) == list(range(60))
    assert len(result.latencies_s) == 60
    assert result.failures == []
    assert server.connections == 3
    assert len(set(server.received)) == len(server.received) == 60


@pytest.mark.parametrize("connections", [1, 3])
def test_where_the_server_announces_its_close_nothing_is_lost_and_nothing_sent_twice(
    tmp_path: Path, connections: int
) -> None:
    with answering([OK, LAST]) as server:
        result = load(tmp_path, server.address, 30, connections)
    assert sorted(result.acknowledged) == list(range(30))
    assert result.failures == []
    assert len(set(server.received)) == len(server.received) == 30
    assert server.connections >= 15


def test_a_server_that_takes_no_more_connections_ends_the_load(tmp_path: Path) -> None:
    with answering([OK, LAST]) as server:
        server.refuse_after(1)
        result = load(tmp_path, server.address, 10, 1)
    assert result.acknowledged == [0, 1]
    assert result.failures == ["ConnectionRefusedError"]


def test_refused_requests_are_failures_and_not_acknowledged(tmp_path: Path) -> None:
    with answering([OK, BUSY, OK]) as server:
        result = load(tmp_path, server.address, 3, 1)
    assert result.acknowledged == [0, 2]
    assert result.failures == ["status 503"]


def test_a_server_that_goes_away_ends_the_load(tmp_path: Path) -> None:
    with answering([OK, OK]) as server:
        result = load(tmp_path, server.address, 10, 1)
    assert result.acknowledged == [0, 1]
    assert result.failures == ["connection lost"]
