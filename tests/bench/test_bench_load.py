"""The load client against a small server of its own."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.corpus import BLOCK, write_corpus
from bench.http import Address
from bench.load import LoadPlan, LoadResult, run_load
from bench.oracle import Oracle
from bench.wire import RequestForm, write_requests

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LAST = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


class Answering:
    """Answers the requests of a connection with these responses, and then hangs up. Requests
    have a body of one byte, `x`, that stands nowhere else."""

    def __init__(self, responses: list[bytes]) -> None:
        self.responses = responses
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address(*self._listener.getsockname())
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            for response in self.responses:
                while data := connection.recv(4_096):
                    if b"x" in data:
                        break
                else:
                    return
                connection.sendall(response)


@contextmanager
def answering(responses: list[bytes]) -> Iterator[Answering]:
    server = Answering(responses)
    try:
        yield server
    finally:
        server.close()


def load(work: Path, address: Address, requests: int, connections: int) -> LoadResult:
    corpus = write_corpus(work / "corpus", 1, BLOCK, Oracle([], []))
    form = RequestForm(b"POST / HTTP/1.1\r\n", lambda lines: b"x")
    file = write_requests(work / "requests", corpus, 0, BLOCK, 1, form)
    return run_load(LoadPlan(address, file, 0, requests, connections, 60.0))


def test_every_request_is_sent_once_and_acknowledged(tmp_path: Path) -> None:
    with answering([OK] * 100) as server:
        result = load(tmp_path, server.address, 60, 3)
    assert sorted(result.acknowledged) == list(range(60))
    assert len(result.latencies_s) == 60
    assert result.failures == []
    assert server.connections == 3


def test_a_connection_that_the_server_ends_is_replaced(tmp_path: Path) -> None:
    with answering([OK, LAST]) as server:
        result = load(tmp_path, server.address, 10, 1)
    assert sorted(result.acknowledged) == list(range(10))
    assert server.connections == 6


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
