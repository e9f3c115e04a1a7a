"""ripgrep over a plain NDJSON file: the floor, no store at all."""

import re
import shutil
import subprocess
import time
from pathlib import Path

import msgspec

from bench.corpus import timestamp
from bench.load import LoadResult
from bench.oracle import Hit
from bench.peers.base import LevelsReply, PeerError, Portion, Reply, Stored, milliseconds
from bench.queries import MINUTE_MS, PAGE, Query
from bench.vocabulary import LEVELS

_LIMIT_S = 300
_SLACK = 4
"""Entries may stand so many lines away from their place in time."""


class _Entry(msgspec.Struct):
    timestamp: str
    message: str


_DECODER = msgspec.json.Decoder(_Entry)
_IN_MESSAGE = r'"message":"([^"\\]|\\.)*'


class Ripgrep:
    """`rg` reads the file for every question: once for the page, once for the total."""

    name = "ripgrep"
    durable = False
    stores = False
    caveats: tuple[str, ...] = (
        "reads the whole file for every question; each time holds the start of a process",
        "its ingest is an append to a file, without index, ids or sync: not compared",
    )

    def __init__(self, binary: str) -> None:
        self._binary = binary
        self.version = _version(binary)
        self._data: Path | None = None

    @staticmethod
    def find() -> str | None:
        return shutil.which("rg")

    @property
    def data(self) -> Path:
        assert self._data is not None, "not started"
        return self._data

    @property
    def pid(self) -> int | None:
        return None

    @property
    def _file(self) -> str:
        return str(self.data / "logs.ndjson")

    def start(self, data: Path) -> float:
        data.mkdir(parents=True, exist_ok=True)
        self._data = data
        return 0.0

    def stop(self) -> None:
        return

    def kill(self) -> None:
        return

    def publish(self) -> None:
        return

    def can(self, query: Query) -> bool:
        return True

    def ingest(self, portion: Portion, work: Path) -> Stored:
        result = LoadResult()
        start = time.perf_counter()
        with open(self._file, "ab") as file:
            for lines in portion.corpus.read(portion.first, portion.last):
                file.write(b"\n".join(lines) + b"\n")
        result.seconds = time.perf_counter() - start
        return Stored(portion.last - portion.first, result, None)

    def ask(self, query: Query) -> Reply:
        patterns = _patterns(query)
        start = time.perf_counter()
        found = self._pipe([*self._stages(patterns), ["tail", f"-n{PAGE + _SLACK}"]])
        middle = time.perf_counter()
        count = self._pipe(self._stages(patterns, "--count"))
        end = time.perf_counter()
        entries = [_DECODER.decode(line) for line in found.splitlines()]
        hits: list[Hit] = [(milliseconds(entry.timestamp), entry.message) for entry in entries]
        page = tuple(sorted(hits, reverse=True)[:PAGE])
        return Reply(page, int(count or b"0"), middle - start, end - middle)

    def levels(self) -> LevelsReply:
        start = time.perf_counter()
        counts: dict[str, int] = {
            level: int(self._pipe(self._stages([f'"level":"{level}"'], "--count")) or b"0")
            for level in LEVELS
        }
        return LevelsReply(counts, time.perf_counter() - start)

    def _stages(self, patterns: list[str], *last_options: str) -> list[list[str]]:
        """One `rg` for each pattern: the first reads the file, the others what is left of it."""
        stages = [[self._binary, "--no-config", "-e", pattern] for pattern in patterns]
        stages[0].append(self._file)
        stages[-1][1:1] = last_options
        return stages

    def _pipe(self, stages: list[list[str]]) -> bytes:
        """What the last stage prints. That nothing was found is no error."""
        processes: list[subprocess.Popen[bytes]] = []
        for stage in stages:
            before = processes[-1].stdout if processes else subprocess.DEVNULL
            processes.append(subprocess.Popen(stage, stdin=before, stdout=subprocess.PIPE))
            if processes[:-1] and processes[-2].stdout:
                processes[-2].stdout.close()
        output, _ = processes[-1].communicate(timeout=_LIMIT_S)
        if any(process.wait(_LIMIT_S) > 1 for process in processes):
            raise PeerError("rg failed")
        return output


def _version(binary: str) -> str:
    done = subprocess.run(
        [binary, "--version"], capture_output=True, text=True, timeout=30, check=True
    )
    return done.stdout.split()[1]


def _patterns(query: Query) -> list[str]:
    """Regular expressions that a line must match, all of them."""
    if query.level:
        return [f'"level":"{query.level}"']
    if query.user_id:
        return [f'"userId":"{query.user_id}"']
    if query.from_ms is not None:
        if query.from_ms % MINUTE_MS:
            raise ValueError("rg can only look for a whole minute of the clock")
        return [f'"timestamp":"{timestamp(query.from_ms)[:17]}']
    if query.prefix:
        return [rf"{_IN_MESSAGE}\b{re.escape(query.prefix)}"]
    if query.substring:
        return [re.escape(query.substring)]
    if query.phrase:
        return [rf"\b{query.phrase}\b"]
    return [rf"\b{re.escape(word)}\b" for word in query.words] or ["."]
