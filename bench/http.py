"""HTTP/1.1 responses and one kept-alive connection, by hand: small, and equal for every peer."""

import socket
import struct
import time
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urlsplit

TIMEOUT_S: Final = 120.0
"""Longest wait for one response."""

_CHUNK_END = b"\r\n"


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    @classmethod
    def of_url(cls, url: str) -> "Address":
        """Only plain http is spoken. ValueError for anything else."""
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"not a plain http URL: {url}")
        return cls(parts.hostname, parts.port or 80)


class ConnectionLost(Exception):
    """The server closed the connection before a response was complete."""


@dataclass(frozen=True)
class Response:
    """`seconds`: from the first byte sent to the last byte received."""

    status: int
    body: bytes
    seconds: float
    closes: bool


def is_plain_success(data: bytes) -> bool:
    """Whether these bytes are one whole 2xx response, of stated length, on a connection that
    stays open: what nearly every answer to a load is. False: let a ResponseReader look."""
    end = data.find(b"\r\n\r\n")
    at = max(data.find(b"ontent-Length: ", 0, end), data.find(b"ontent-length: ", 0, end))
    if data[:10] != b"HTTP/1.1 2" or at < 0 or data.find(b"lose\r\n", 0, end + 2) >= 0:
        return False
    return int(data[at + 15 : data.index(b"\r", at)]) == len(data) - end - 4


class ResponseReader:
    """Collects bytes until a response is complete. One object for one response."""

    __slots__ = ("_body_at", "_data", "_length", "closes", "status")

    def __init__(self) -> None:
        self._data = bytearray()
        self._body_at = 0
        self._length: int | None = None
        self.status = 0
        self.closes = False

    def feed(self, data: bytes) -> bool:
        """Add bytes; True when the response is complete."""
        self._data += data
        if not self._body_at and not self._read_head():
            return False
        if self._length is not None:
            return len(self._data) >= self._body_at + self._length
        return self._data.endswith(b"0\r\n\r\n")

    def body(self) -> bytes:
        """The body of a complete response, joined when it came in chunks."""
        raw = bytes(self._data[self._body_at :])
        if self._length is not None:
            return raw
        parts: list[bytes] = []
        at = 0
        while True:
            line_end = raw.index(_CHUNK_END, at)
            size = int(raw[at:line_end].split(b";")[0], 16)
            if not size:
                return b"".join(parts)
            parts.append(raw[line_end + 2 : line_end + 2 + size])
            at = line_end + 4 + size

    def _read_head(self) -> bool:
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._data[:end]).lower()
        self._body_at = end + 4
        self.status = int(head[9:12])
        self.closes = b"\r\nconnection: close" in head
        at = head.find(b"\r\ncontent-length:")
        if at >= 0:
            self._length = int(head[at + 17 :].split(b"\r\n", 1)[0])
        elif b"\r\ntransfer-encoding: chunked" not in head:
            self._length = 0
        return True


def connect(address: Address) -> socket.socket:
    """A blocking connection without Nagle's delay.

    Its timeouts are the kernel's: with Python's own, every call would cost a poll as well.
    """
    connection = socket.create_connection(address, timeout=TIMEOUT_S)
    connection.settimeout(None)
    limit = struct.pack("@ll", int(TIMEOUT_S), 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _is_idle(connection: socket.socket) -> bool:
    """Whether it is open and nothing waits to be read, as between a response and a request."""
    try:
        connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


class Connection:
    """A kept-alive connection for one request at a time; opened when first needed, and anew where
    the server has ended it between two requests, as servers do with idle or old ones."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._socket: socket.socket | None = None

    def exchange(self, request: bytes) -> Response:
        """Send a complete request, once, and wait for its response. OSError or ConnectionLost when
        the server is not there or goes away; the next call connects anew."""
        if self._socket is not None and not _is_idle(self._socket):
            self.close()
        if self._socket is None:
            self._socket = connect(self._address)
        reader = ResponseReader()
        start = time.perf_counter()
        try:
            self._socket.sendall(request)
            while True:
                data = self._socket.recv(262_144)
                if not data:
                    raise ConnectionLost
                if reader.feed(data):
                    break
        except (OSError, ConnectionLost):
            self.close()
            raise
        seconds = time.perf_counter() - start
        if reader.closes:
            self.close()
        return Response(reader.status, reader.body(), seconds, reader.closes)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def head(method: str, target: str, address: Address, *fields: str) -> bytes:
    """Request line and headers, ready for `Content-Length` and the body to follow."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {address.host}:{address.port}", *fields]
    return "".join(line + "\r\n" for line in lines).encode()


def get(target: str, address: Address, *fields: str) -> bytes:
    """A complete GET request."""
    return head("GET", target, address, *fields) + b"\r\n"


def post(target: str, address: Address, body: bytes, *fields: str) -> bytes:
    """A complete POST request."""
    start = head("POST", target, address, *fields)
    return b"%sContent-Length: %d\r\n\r\n%s" % (start, len(body), body)
