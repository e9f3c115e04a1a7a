"""VictoriaLogs: JSON lines in, LogsQL out."""

import secrets
import subprocess
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from bench.corpus import timestamp
from bench.http import Address, get, head, post
from bench.oracle import Hit
from bench.peers.base import HttpPeer, LevelsReply, Question, milliseconds
from bench.queries import Query
from bench.wire import RequestForm

_INGEST = "/insert/jsonline?_stream_fields=source&_msg_field=message&_time_field=timestamp"


class _Log(msgspec.Struct):
    time: str = msgspec.field(name="_time")
    message: str = msgspec.field(name="_msg")


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct):
    result: list[_Sample]


class _Stats(msgspec.Struct):
    data: _Vector


_DECODER = msgspec.json.Decoder(_Log)


class VictoriaLogs(HttpPeer):
    """Starts the given binary, or uses the server at `address`.

    Its fast path is used throughout: `limit=` for the newest entries, and the time range of
    what was stored in every question, as its own user interface sends one.
    """

    name = "victorialogs"
    durable = False
    caveats: tuple[str, ...] = (
        "acknowledges from memory and writes to disk within 5 s: not durable",
        "its searches of words are case-sensitive and look at the message only, which is less work",
        "exact total by a second request (`stats count()`), added where a total is compared",
        "entries may be invisible for about a second; its flush is forced before queries",
    )

    def __init__(self, binary: str | None, address: Address | None = None) -> None:
        super().__init__(address)
        self._binary = binary
        self.version = "remote" if address else _version(binary) if binary else "unknown"
        self._tenant: tuple[str, ...] = ()

    def command(self, data: Path) -> list[str]:
        assert self._binary is not None
        return [
            self._binary,
            f"-httpListenAddr={self.address.host}:{self.address.port}",
            f"-storageDataPath={data}",
            "-retentionPeriod=100y",
            "-futureRetention=100y",
            "-loggerLevel=ERROR",
        ]

    def readiness(self) -> bytes:
        return get("/health", self.address)

    def enrol(self) -> None:
        """A server that runs elsewhere cannot be emptied: what is stored next has a tenant of its
        own, as if the store were new."""
        if self.is_remote:
            self._tenant = (f"AccountID: {secrets.randbits(31)}", "ProjectID: 0")

    def form(self) -> RequestForm:
        content = "Content-Type: application/stream+json"
        start = head("POST", _INGEST, self.address, content, *self._tenant)

        def body(lines: Sequence[bytes]) -> bytes:
            return b"\n".join(lines) + b"\n"

        return RequestForm(start, body)

    def publish(self) -> None:
        self.call(get("/internal/force_flush", self.address))

    def question(self, query: Query) -> Question:
        text = self._logsql(query)
        return Question(
            self._post("/select/logsql/query", query=text, limit=str(query.page)),
            self._post("/select/logsql/stats_query", query=f"{text} | stats count() as n"),
        )

    def levels(self) -> LevelsReply:
        text = f"{self._logsql(Query('', ''))} | stats by (level) count() as n"
        response = self.call(self._post("/select/logsql/stats_query", query=text))
        samples = msgspec.json.decode(response.body, type=_Stats).data.result
        counts = {sample.metric["level"]: int(sample.value[1]) for sample in samples}
        return LevelsReply(counts, response.seconds)

    def read_page(self, body: bytes) -> tuple[tuple[Hit, ...], int | None]:
        logs = [_DECODER.decode(line) for line in body.splitlines()]
        return tuple((milliseconds(log.time), log.message) for log in logs), None

    def read_total(self, body: bytes) -> int:
        samples = msgspec.json.decode(body, type=_Stats).data.result
        return int(samples[0].value[1]) if samples else 0

    def _logsql(self, query: Query) -> str:
        start, end = self.range(query)
        return " ".join([f"_time:[{timestamp(start)}, {timestamp(end)})", *_filters(query)])

    def _post(self, target: str, **parameters: str) -> bytes:
        body = urlencode(parameters).encode()
        form = "Content-Type: application/x-www-form-urlencoded"
        return post(target, self.address, body, form, *self._tenant)


def _version(binary: str) -> str:
    command = [binary, "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    words = (done.stdout + done.stderr).split()
    return next((word for word in reversed(words) if "victoria-logs" in word), "unknown")


def _filters(query: Query) -> list[str]:
    terms = list(query.words)
    if query.level:
        terms.append(f'level:="{query.level}"')
    if query.user_id:
        terms.append(f'meta.userId:="{query.user_id}"')
    if query.phrase:
        terms.append(f'"{query.phrase}"')
    if query.prefix:
        terms.append(f"{query.prefix}*")
    if query.substring:
        terms.append(f'~"{query.substring}"')
    return terms
