"""A small HTTP server for the benchmark's client: it answers what it was told to, and hangs up."""

import contextlib
import re
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from bench.http import Address

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LAST = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"

_BODY = re.compile(rb"<\w+>")


class Answering:
    """Answers the requests of each connection with these responses, and then hangs up.

    The body of a request is a word in angle brackets, which stand nowhere else. `received`: these
    words, of all connections. `always`: responses to certain words, which are none of the others;
    an empty one hangs up.
    """

    def __init__(
        self, responses: Sequence[bytes], always: Mapping[bytes, bytes] | None = None
    ) -> None:
        self.connections = 0
        self.received: list[bytes] = []
        self._most: int | None = None
        self._responses = responses
        self._always = always or {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address(*self._listener.getsockname())
        self._hung_up = threading.Semaphore(0)
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def refuse_after(self, connections: int) -> None:
        """Takes no more than these."""
        self._most = connections

    def wait_hung_up(self) -> None:
        """Until one more connection was hung up, and its client could know."""
        assert self._hung_up.acquire(timeout=60)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # it takes no more already
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
            if self.connections == self._most:
                self._listener.close()
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            for response in self._responses:
                while (word := self._receive(connection)) in self._always:
                    if not self._always[word]:
                        return
                    connection.sendall(self._always[word])
                if not word:
                    return
                connection.sendall(response)
        self._hung_up.release()

    def _receive(self, connection: socket.socket) -> bytes:
        """The next word; none when the client has hung up."""
        request = b""
        while data := connection.recv(4_096):
            request += data
            if body := _BODY.search(request):
                self.received.append(body[0])
                return body[0]
        return b""


@contextmanager
def answering(
    responses: Sequence[bytes], always: Mapping[bytes, bytes] | None = None
) -> Iterator[Answering]:
    server = Answering(responses, always)
    try:
        yield server
    finally:
        server.close()
