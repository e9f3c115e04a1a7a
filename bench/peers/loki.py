"""Grafana Loki, one process on the local file system: JSON push in, LogQL out."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from bench.http import Address, get, head
from bench.oracle import Hit
from bench.peers.base import HttpPeer, LevelsReply, Question, milliseconds
from bench.queries import Query
from bench.server import free_port
from bench.wire import RequestForm

_NS = 1_000_000

_CONFIG = """\
auth_enabled: false
analytics:
  reporting_enabled: false
server:
  http_listen_address: 127.0.0.1
  http_listen_port: {port}
  grpc_listen_address: 127.0.0.1
  grpc_listen_port: {grpc_port}
  log_level: error
common:
  instance_addr: 127.0.0.1
  path_prefix: {data}
  replication_factor: 1
  storage:
    filesystem:
      chunks_directory: {data}/chunks
      rules_directory: {data}/rules
  ring:
    kvstore:
      store: inmemory
ingester:
  query_store_max_look_back_period: -1ns
  lifecycler:
    min_ready_duration: 0s
    final_sleep: 0s
querier:
  query_ingesters_within: 0
schema_config:
  configs:
    - from: 2020-01-01
      store: tsdb
      object_store: filesystem
      schema: v13
      index:
        prefix: index_
        period: 24h
limits_config:
  reject_old_samples: false
  creation_grace_period: 876000h
  unordered_writes: true
  ingestion_rate_mb: 1000
  ingestion_burst_size_mb: 1000
  per_stream_rate_limit: 1GB
  per_stream_rate_limit_burst: 1GB
  max_query_length: 0
  allow_structured_metadata: true
"""


class _Pushed(msgspec.Struct):
    """The parts of a corpus line that go to different places in a push."""

    timestamp: str
    level: str
    source: str
    message: str
    meta: dict[str, str | int | dict[str, bool]]
    tags: list[str]


class _Stream(msgspec.Struct):
    values: list[tuple[str, str]]


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Streams(msgspec.Struct):
    result: list[_Stream]


class _Vector(msgspec.Struct):
    result: list[_Sample]


class _StreamsAnswer(msgspec.Struct):
    data: _Streams


class _VectorAnswer(msgspec.Struct):
    data: _Vector


_DECODER = msgspec.json.Decoder(_Pushed)


class Loki(HttpPeer):
    """Starts the given binary, or uses the server at `address`."""

    name = "loki"
    durable = False
    caveats: tuple[str, ...] = (
        "its write-ahead log is not synced for each request: not durable",
        "source and level are stream labels, tags and meta are structured metadata",
        "has no index of words: every search reads the text of the time range",
        "exact total by a second request (`count_over_time`), added where a total is compared",
    )

    def __init__(self, binary: str | None, address: Address | None = None) -> None:
        super().__init__(address)
        self._binary = binary
        self.version = _version(binary) if binary else "remote"

    def command(self, data: Path) -> list[str]:
        assert self._binary is not None
        config = data / "bench-config.yaml"
        config.write_text(
            _CONFIG.format(port=self.address.port, grpc_port=free_port(), data=data.resolve())
        )
        return [self._binary, f"-config.file={config}"]

    def readiness(self) -> bytes:
        return get("/ready", self.address)

    def enrol(self) -> None:
        return

    def form(self) -> RequestForm:
        start = head("POST", "/loki/api/v1/push", self.address, "Content-Type: application/json")
        return RequestForm(start, _push)

    def question(self, query: Query) -> Question:
        start, end = self.range(query)
        text = _logql(query)
        page = {
            "query": text,
            "start": str(start * _NS),
            "end": str(end * _NS),
            "limit": str(query.page),
            "direction": "backward",
        }
        count = f"sum(count_over_time({text}[{end - start}ms]))"
        total = {"query": count, "time": str(end * _NS - 1)}
        return Question(
            get(f"/loki/api/v1/query_range?{urlencode(page)}", self.address),
            get(f"/loki/api/v1/query?{urlencode(total)}", self.address),
        )

    def levels(self) -> LevelsReply:
        start, end = self.range(Query("", ""))
        text = f'sum by (level) (count_over_time({{source=~".+"}}[{end - start}ms]))'
        parameters = urlencode({"query": text, "time": str(end * _NS - 1)})
        response = self.call(get(f"/loki/api/v1/query?{parameters}", self.address))
        samples = msgspec.json.decode(response.body, type=_VectorAnswer).data.result
        counts = {sample.metric["level"]: int(sample.value[1]) for sample in samples}
        return LevelsReply(counts, response.seconds)

    def read_page(self, body: bytes) -> tuple[tuple[Hit, ...], int | None]:
        streams = msgspec.json.decode(body, type=_StreamsAnswer).data.result
        hits = [(int(ns) // _NS, line) for stream in streams for ns, line in stream.values]
        return tuple(sorted(hits, reverse=True)), None

    def read_total(self, body: bytes) -> int:
        samples = msgspec.json.decode(body, type=_VectorAnswer).data.result
        return int(samples[0].value[1]) if samples else 0


def _version(binary: str) -> str:
    command = [binary, "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    match = re.search(r"version ([^ ,]+)", done.stdout + done.stderr)
    return match.group(1) if match else "unknown"


def _push(lines: Sequence[bytes]) -> bytes:
    """Entries grouped in streams by source and level."""
    streams: dict[tuple[str, str], list[tuple[str, str, dict[str, str]]]] = {}
    for line in lines:
        entry = _DECODER.decode(line)
        metadata = {name: _text(value) for name, value in entry.meta.items()}
        metadata["tags"] = " ".join(entry.tags)
        value = (str(milliseconds(entry.timestamp) * _NS), entry.message, metadata)
        streams.setdefault((entry.source, entry.level), []).append(value)
    return msgspec.json.encode(
        {
            "streams": [
                {"stream": {"source": source, "level": level}, "values": values}
                for (source, level), values in streams.items()
            ]
        }
    )


def _text(value: str | int | dict[str, bool]) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _logql(query: Query) -> str:
    labels = [f'level="{query.level}"'] if query.level else []
    text = "{" + ",".join(['source=~".+"', *labels]) + "}"
    for word in query.words:
        text += f" |= `{word}` |~ `\\b{word}\\b`"
    if query.phrase:
        text += f" |= `{query.phrase}`"
    if query.prefix:
        text += f" |= `{query.prefix}` |~ `\\b{query.prefix}`"
    if query.substring:
        text += f" |= `{query.substring}`"
    if query.user_id:
        text += f" | userId=`{query.user_id}`"
    return text
