"""What the workloads need from a peer, and what all peers that speak HTTP have in common."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from bench.corpus import START_MS, STEP_MS, Corpus
from bench.http import Address, Connection, ConnectionLost, Response
from bench.load import LoadPlan, LoadResult, run_load
from bench.oracle import Hit
from bench.procstat import Memory, cpu_seconds, memory
from bench.queries import Query
from bench.server import Server, free_port
from bench.wire import RequestFile, RequestForm, write_requests


class PeerError(Exception):
    """A peer answered what it must not answer."""


@dataclass(frozen=True)
class Reply:
    """A page and the exact number of all matches. `total_s`: what the number took on top of the
    page; 0 where the answer with the page carries it. Decoding is in neither time."""

    page: tuple[Hit, ...]
    total: int
    page_s: float
    total_s: float


@dataclass(frozen=True)
class LevelsReply:
    counts: dict[str, int]
    seconds: float


@dataclass(frozen=True)
class Portion:
    """Entries [first, last) of a corpus, to be stored in batches over some connections."""

    corpus: Corpus
    first: int
    last: int
    batch: int = 1_000
    connections: int = 1
    limit_s: float = 600.0


@dataclass(frozen=True)
class Stored:
    """A finished ingest. `server_cpu_s`: up to its end, without what goes on behind it; None
    where the server's process is unknown."""

    entries: int
    load: LoadResult
    server_cpu_s: float | None


class Peer(Protocol):
    """A log store under test. Its life: start, ingest, publish, ask ..., stop; start again on the
    same data; close at the end."""

    name: str
    version: str
    durable: bool
    stores: bool
    """Whether its ingest is one, and worth a figure."""
    caveats: tuple[str, ...]

    @property
    def data(self) -> Path: ...
    @property
    def pid(self) -> int | None: ...
    def start(self, data: Path) -> float:
        """Start on this directory; seconds until it answers a query."""
        ...

    def stop(self) -> None: ...
    def kill(self) -> None:
        """As kill -9 does."""
        ...

    def ingest(self, portion: Portion, work: Path) -> Stored: ...
    def publish(self) -> None:
        """Make everything acknowledged visible to queries."""
        ...

    def can(self, query: Query) -> bool: ...
    def ask(self, query: Query) -> Reply: ...
    def levels(self) -> LevelsReply: ...


class Question(NamedTuple):
    """Requests for a page and, where the page does not tell it, for the total."""

    page: bytes
    total: bytes | None


class HttpPeer(ABC):
    """A peer behind HTTP: a child process, or one that runs elsewhere (`url`)."""

    name: str
    version: str
    durable: bool
    stores = True
    caveats: tuple[str, ...] = ()

    def __init__(self, address: Address | None) -> None:
        self._remote = address
        self._server: Server | None = None
        self._data: Path | None = None
        self._connection: Connection | None = None
        self.ready_memory: Memory | None = None
        """Of the server when it was ready, and had been asked nothing but that."""
        self.address = address or Address("127.0.0.1", 0)
        self._end_ms = START_MS + 1

    @property
    def data(self) -> Path:
        assert self._data is not None, "not started"
        return self._data

    @property
    def pid(self) -> int | None:
        return self._server.pid if self._server else None

    @property
    def is_remote(self) -> bool:
        return self._remote is not None

    def start(self, data: Path) -> float:
        self._data = data
        data.mkdir(parents=True, exist_ok=True)
        is_new = not any(data.iterdir())
        if self._remote is None:
            self.address = Address("127.0.0.1", free_port())
            log = data.parent / f"{data.name}.log"
            self._server = Server(self.command(data), log, self.environment(data.parent))
        self._connection = Connection(self.address)
        if self._server is None and not self._is_ready():
            raise PeerError(f"{self.name} does not answer at {':'.join(map(str, self.address))}")
        seconds = self._server.wait_ready(self._is_ready) if self._server else 0.0
        self.ready_memory = memory(self._server.pid) if self._server else None
        if is_new:
            self.enrol()
            self._connection.close()  # what administers may be slower to answer than what asks
            self._connection = Connection(self.address)
        return seconds

    def stop(self) -> None:
        if self._connection:
            self._connection.close()
        if self._server:
            self._server.stop()
            self._server = None

    def kill(self) -> None:
        if self._connection:
            self._connection.close()
        if self._server:
            self._server.kill()
            self._server = None

    def range(self, query: Query) -> tuple[int, int]:
        """The time range to ask for, milliseconds: the query's, or all that was ever sent."""
        start = query.from_ms if query.from_ms is not None else START_MS
        return start, query.to_ms if query.to_ms is not None else self._end_ms

    def prepare(self, portion: Portion, work: Path) -> RequestFile:
        self._end_ms = max(self._end_ms, START_MS + portion.last * STEP_MS)
        path = work / f"{self.name}-{portion.batch}.requests"
        return write_requests(
            path, portion.corpus, portion.first, portion.last, portion.batch, self.form()
        )

    def ingest(self, portion: Portion, work: Path) -> Stored:
        requests = self.prepare(portion, work)
        plan = LoadPlan(
            self.address, requests, 0, len(requests.ends), portion.connections, portion.limit_s
        )
        before = cpu_seconds(self.pid) if self.pid else None
        load = run_load(plan)
        cpu = cpu_seconds(self.pid) - before if self.pid and before is not None else None
        requests.path.unlink()
        return Stored(len(load.acknowledged) * portion.batch, load, cpu)

    def ask(self, query: Query) -> Reply:
        question = self.question(query)
        page = self.call(question.page)
        if question.total is None:
            hits, total = self.read_page(page.body)
            if total is None:
                raise PeerError(f"{self.name} gave no total")
            return Reply(hits, total, page.seconds, 0.0)
        answer = self.call(question.total)
        hits, _ = self.read_page(page.body)
        return Reply(hits, self.read_total(answer.body), page.seconds, answer.seconds)

    def call(self, request: bytes) -> Response:
        """One request over the peer's own connection. PeerError unless it is answered 2xx."""
        assert self._connection is not None, "not started"
        response = self._connection.exchange(request)
        if not 200 <= response.status < 300:
            text = response.body[:300].decode(errors="replace")
            raise PeerError(f"{self.name} answered {response.status}: {text}")
        return response

    def _is_ready(self) -> bool:
        assert self._connection is not None
        try:
            return self._connection.exchange(self.readiness()).status == 200
        except (OSError, ConnectionLost):
            return False

    def can(self, query: Query) -> bool:
        return True

    def publish(self) -> None:
        return

    @abstractmethod
    def command(self, data: Path) -> list[str]:
        """The command line that serves `data` on `self.address`."""

    def environment(self, work: Path) -> dict[str, str] | None:
        """What the server is started with, None for what this process has. `work`: a directory of
        the benchmark, which goes when it ends."""
        return None

    @abstractmethod
    def readiness(self) -> bytes:
        """A request that is answered 200 as soon as the peer takes entries and questions."""

    @abstractmethod
    def enrol(self) -> None:
        """Called when ready for the first time on a directory: make what the peer needs."""

    @abstractmethod
    def form(self) -> RequestForm: ...
    @abstractmethod
    def question(self, query: Query) -> Question: ...
    @abstractmethod
    def read_page(self, body: bytes) -> tuple[tuple[Hit, ...], int | None]: ...
    @abstractmethod
    def read_total(self, body: bytes) -> int: ...
    @abstractmethod
    def levels(self) -> LevelsReply: ...


def milliseconds(text: str) -> int:
    """An RFC 3339 time in UTC, to milliseconds since the epoch."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    seconds = int(datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp())
    return seconds * 1000 + int((fraction + "000")[:3])
