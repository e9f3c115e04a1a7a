"""A daemon on a real socket, as far as clients see one, that can be told to misbehave.

It takes entries as the /v1 contract says (partial batches, idempotency keys) and can be given a
script: the next requests are answered by it, one each, before the daemon is itself again.
"""

import enum
import gzip
import http.server
import threading
import uuid
from collections import deque
from collections.abc import Mapping
from typing import Any, Self, cast

import msgspec
import zstandard

PROJECT = "11111111-2222-4333-8444-555555555555"
KEY = "ldk_test"
MAX_MESSAGE_BYTES = 8192


class Answer(msgspec.Struct, frozen=True):
    """Sent instead of what the daemon would say."""

    status: int
    body: object = {}
    headers: Mapping[str, str] = {}


class Cut(enum.Enum):
    """The connection ends without an answer."""

    BEFORE_WORK = "before"
    AFTER_WORK = "after"


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def entries(self) -> list[dict[str, Any]]:
        return cast(list[dict[str, Any]], msgspec.json.decode(self.body))


class ScriptedDaemon:
    """`stored` holds the entries, oldest first; `requests` all requests, in order."""

    def __init__(self) -> None:
        self.stored: list[dict[str, Any]] = []
        self.requests: list[Request] = []
        self.script: deque[Answer | Cut] = deque()
        self.max_body_bytes = 1 << 20
        self.arrived = threading.Condition()
        self._answers: dict[str, Answer] = {}
        self._server = _Server(("127.0.0.1", 0), _handler_for(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def messages(self) -> list[str]:
        return [entry["message"] for entry in self.stored]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def wait_for_requests(self, count: int) -> None:
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.requests) >= count, 10)

    def answer(self, request: Request) -> Answer | None:
        """None: the connection is to be cut."""
        with self.arrived:
            scripted = self.script.popleft() if self.script else None
            if scripted in (None, Cut.AFTER_WORK):
                answer = self._work(request)
            self.requests.append(request)
            self.arrived.notify_all()
        if isinstance(scripted, Answer):
            return scripted
        return None if scripted else answer

    def _work(self, request: Request) -> Answer:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return problem(401, "credential_unknown", "nobody has this credential")
        if request.path.startswith("/v1/ingest"):
            return self._ingest(request)
        if request.path.endswith("/stats"):
            return Answer(200, {"DEBUG": 0, "INFO": len(self.stored), "WARN": 0, "ERROR": 0})
        return Answer(200, {"logs": [], "nextCursor": None, "total": 0})

    def _ingest(self, request: Request) -> Answer:
        if len(request.body) > self.max_body_bytes:
            return problem(413, "body_too_large", "the body is too large")
        key = request.headers["idempotency-key"]
        if key not in self._answers:
            self._answers[key] = self._take(request.entries)
        return self._answers[key]

    def _take(self, entries: list[dict[str, Any]]) -> Answer:
        ids: list[str | None] = []
        errors = []
        for index, entry in enumerate(entries):
            if fault := _fault(entry):
                errors.append({"index": index, **fault})
                ids.append(None)
            else:
                self.stored.append(entry)
                ids.append(f"log_{uuid.uuid4()}")
        stored = sum(entry_id is not None for entry_id in ids)
        receipt: dict[str, object] = {"ingested": stored, "ids": ids}
        return Answer(207, {**receipt, "errors": errors[:100]}) if errors else Answer(200, receipt)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is none; what else goes wrong shows in the test's assertions."""


def problem(status: int, code: str, detail: str, **headers: str) -> Answer:
    return Answer(
        status,
        {"title": code, "status": status, "code": code, "detail": detail, "requestId": "r1"},
        {name.replace("_", "-"): text for name, text in headers.items()},
    )


def _fault(entry: Mapping[str, Any]) -> dict[str, str] | None:
    for field in ("projectId", "level", "message", "source"):
        if field not in entry:
            return {"pointer": f"/{field}", "code": "missing", "detail": "is required"}
    if len(entry["message"].encode()) > MAX_MESSAGE_BYTES:
        return {"pointer": "/message", "code": "too_long", "detail": "over 8192 bytes"}
    return None


def _handler_for(daemon: ScriptedDaemon) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve(b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._serve(_plain(body, self.headers.get("Content-Encoding", "")))

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _serve(self, body: bytes) -> None:
            headers = {name.lower(): text for name, text in self.headers.items()}
            answer = daemon.answer(Request(self.command, self.path, headers, body))
            if answer is None:
                self.close_connection = True
                return
            content = msgspec.json.encode(answer.body)
            self.send_response(answer.status)
            for name, text in answer.headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def _plain(body: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        return gzip.decompress(body)
    if encoding == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    return body
