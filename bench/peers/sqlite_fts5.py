"""SQLite with its full-text index FTS5: what one gets without any server.

It runs inside a child process of its own, so that its CPU and memory can be told from the
benchmark's. The child times its own statements: SQLite pays for no HTTP and no process switch.
"""

import sqlite3
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec

from bench.children import start_child
from bench.corpus import Corpus
from bench.load import LoadResult
from bench.oracle import Hit
from bench.peers.base import LevelsReply, PeerError, Portion, Reply, Stored, milliseconds
from bench.procstat import cpu_seconds
from bench.queries import PAGE, Query
from bench.vocabulary import LEVELS

_CALL_LIMIT_S = 900.0

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS logs (
    ts INTEGER PRIMARY KEY, level INTEGER, source TEXT, message TEXT, tags TEXT, meta TEXT
);
CREATE INDEX IF NOT EXISTS logs_level ON logs (level, ts);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    message, source, tags, content='logs', content_rowid='ts', tokenize="unicode61 tokenchars '_'"
);
"""
_INSERT = "INSERT INTO logs (ts, level, source, message, tags, meta) VALUES (?, ?, ?, ?, ?, ?)"
_INSERT_WORDS = "INSERT INTO words (rowid, message, source, tags) VALUES (?, ?, ?, ?)"


class _Entry(msgspec.Struct):
    timestamp: str
    level: str
    source: str
    message: str
    tags: msgspec.Raw
    meta: msgspec.Raw


@dataclass(frozen=True)
class _Ingest:
    """A command to the child: store these entries; answered with (entries, seconds, latencies)."""

    corpus: Corpus
    first: int
    last: int
    batch: int
    limit_s: float


@dataclass(frozen=True)
class _Ask:
    """A command to the child: answered with a Reply."""

    query: Query


@dataclass(frozen=True)
class _Levels:
    """A command to the child: answered with a LevelsReply."""


_Command = _Ingest | _Ask | _Levels


class SqliteFts5:
    """One table with the time as its key, an index by level, and an FTS5 index over message,
    source and tags. Every batch is one transaction that is synced."""

    name = "sqlite"
    version = sqlite3.sqlite_version
    durable = True
    stores = True
    caveats: tuple[str, ...] = (
        "in process: no HTTP, no ids, no validation; one writer (other connection counts: none)",
        "time in milliseconds is the row's key, which the corpus' unique times allow",
        "non-ASCII substrings and meta values are found by reading the whole table",
    )

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._pipe: Pipe | None = None
        self._data: Path | None = None

    @property
    def data(self) -> Path:
        assert self._data is not None, "not started"
        return self._data

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self, data: Path) -> float:
        data.mkdir(parents=True, exist_ok=True)
        self._data = data
        started = time.monotonic()
        self._process, self._pipe = start_child(_serve, data / "logs.db")
        self.levels()
        return time.monotonic() - started

    def stop(self) -> None:
        if self._pipe is not None and self._process is not None:
            self._pipe.close()
            self._process.join(60)
        self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def publish(self) -> None:
        return

    def can(self, query: Query) -> bool:
        return True

    def ingest(self, portion: Portion, work: Path) -> Stored:
        assert self.pid is not None
        before = cpu_seconds(self.pid)
        command = _Ingest(
            portion.corpus, portion.first, portion.last, portion.batch, portion.limit_s
        )
        load = self._call(command)
        assert isinstance(load, LoadResult)
        cpu = cpu_seconds(self.pid) - before
        return Stored(len(load.acknowledged) * portion.batch, load, cpu)

    def ask(self, query: Query) -> Reply:
        reply = self._call(_Ask(query))
        assert isinstance(reply, Reply)
        return reply

    def levels(self) -> LevelsReply:
        reply = self._call(_Levels())
        assert isinstance(reply, LevelsReply)
        return reply

    def _call(self, command: _Command) -> object:
        assert self._pipe is not None, "not started"
        self._pipe.send(command)
        if not self._pipe.poll(_CALL_LIMIT_S):
            raise TimeoutError("SQLite did not answer")
        try:
            reply: object = self._pipe.recv()
        except EOFError:
            raise PeerError("SQLite ended early; its own message is above") from None
        return reply


def _serve(path: Path, pipe: Pipe) -> None:
    """The child: answers commands until the other end of the pipe is closed."""
    database = sqlite3.connect(path, isolation_level=None)
    database.executescript(_SCHEMA)
    try:
        while True:
            command: _Command = pipe.recv()
            match command:
                case _Ingest():
                    pipe.send(_ingest(database, command))
                case _Ask():
                    pipe.send(_ask(database, command.query))
                case _Levels():
                    pipe.send(_levels(database))
    except (EOFError, ConnectionError):  # closed before a command, or instead of taking a reply
        return
    finally:
        database.close()


def _ingest(database: sqlite3.Connection, command: _Ingest) -> LoadResult:
    """Reading the corpus from its file is not in the time; decoding its JSON is."""
    result = LoadResult()
    decoder = msgspec.json.Decoder(_Entry)
    number = 0
    for lines in command.corpus.read(command.first, command.last):
        for at in range(0, len(lines), command.batch):
            start = time.perf_counter()
            entries = [decoder.decode(line) for line in lines[at : at + command.batch]]
            _insert(database, entries)
            result.latencies_s.append(time.perf_counter() - start)
            result.seconds += result.latencies_s[-1]
            result.acknowledged.append(number)
            number += 1
            if result.seconds > command.limit_s:
                return result
    return result


def _insert(database: sqlite3.Connection, entries: list[_Entry]) -> None:
    rows = [
        (
            milliseconds(entry.timestamp),
            LEVELS.index(entry.level),
            entry.source,
            entry.message,
            bytes(entry.tags).decode(),
            bytes(entry.meta).decode(),
        )
        for entry in entries
    ]
    rows.sort()
    database.execute("BEGIN")
    database.executemany(_INSERT, rows)
    database.executemany(_INSERT_WORDS, [(row[0], row[3], row[2], row[4]) for row in rows])
    database.execute("COMMIT")


def _ask(database: sqlite3.Connection, query: Query) -> Reply:
    table, condition, values = _condition(query)
    key = "words.rowid" if table == "words" else "ts"
    source = "words JOIN logs ON logs.ts = words.rowid" if table == "words" else "logs"
    page = f"SELECT logs.* FROM {source} WHERE {condition} ORDER BY {key} DESC LIMIT {PAGE}"
    count = f"SELECT count(*) FROM {table} WHERE {condition}"
    start = time.perf_counter()
    rows = database.execute(page, values).fetchall()
    middle = time.perf_counter()
    (total,) = database.execute(count, values).fetchone()
    end = time.perf_counter()
    hits: tuple[Hit, ...] = tuple((row[0], row[3]) for row in rows)
    return Reply(hits, total, middle - start, end - middle)


def _levels(database: sqlite3.Connection) -> LevelsReply:
    start = time.perf_counter()
    rows = database.execute("SELECT level, count(*) FROM logs GROUP BY level").fetchall()
    seconds = time.perf_counter() - start
    return LevelsReply({LEVELS[level]: count for level, count in rows}, seconds)


def _condition(query: Query) -> tuple[str, str, tuple[str | int, ...]]:
    """The table to ask, the condition, and its parameters. No query of ours combines text with
    another condition."""
    match_terms = list(query.words)
    if query.phrase:
        match_terms.append(f'"{query.phrase}"')
    if query.prefix:
        match_terms.append(f'"{query.prefix}"*')
    if match_terms:
        return "words", "words MATCH ?", (" ".join(match_terms),)
    if query.substring:
        return "logs", "message LIKE ?", (f"%{query.substring}%",)
    if query.user_id:
        return "logs", "json_extract(meta, '$.userId') = ?", (query.user_id,)
    if query.level:
        return "logs", "level = ?", (LEVELS.index(query.level),)
    if query.from_ms is not None and query.to_ms is not None:
        return "logs", "ts >= ? AND ts < ?", (query.from_ms, query.to_ms)
    return "logs", "1", ()
