"""What a benchmark has measured, as it is kept in JSON. Names tell the unit."""

from pathlib import Path

import msgspec

from bench.machine import Machine

FORMAT = 1


class IngestFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One load: of several the one in the middle. CPU is per entry stored; `indexed_cpu_us` also
    holds what the server did behind the last acknowledgement, until it was quiet."""

    batch: int
    connections: int
    entries: int
    entries_per_s: float
    p50_ms: float
    p99_ms: float
    client_cpu_us: float
    server_cpu_us: float | None = None
    indexed_cpu_us: float | None = None
    failures: int = 0
    failure: str = ""


class QueryFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One question. `first_ms`: page and total, the first time after a restart. The others are
    of the warm repetitions: medians, and the range of page and total together. `wrong`: how the
    answer differs from the right one.

    Of questions never asked before (`PeerRun.new_queries`) it is a kind of them: each repetition
    is another question, `first_ms` the first of them, `total` what all found together."""

    name: str
    total: int
    first_ms: float
    page_ms: float
    total_ms: float
    low_ms: float
    high_ms: float
    repetitions: int
    wrong: tuple[str, ...] = ()

    @property
    def both_ms(self) -> float:
        return self.page_ms + self.total_ms


class StoreFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The footprint. Memory in bytes: just started without data, and after the ingest. Disk per
    entry once its size was stable (`settled`)."""

    idle_rss: int | None
    idle_pss: int | None
    filled_rss: int | None
    filled_pss: int | None
    filled_anonymous: int | None
    disk_bytes_per_entry: float
    apparent_bytes_per_entry: float
    settled: bool


class MixedFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One-entry requests alone, and beside a loop of `query` on a connection of its own.
    Latencies are medians of what several loads had."""

    query: str
    connections: int
    alone_per_s: float
    alone_p50_ms: float
    alone_p99_ms: float
    beside_per_s: float
    beside_p50_ms: float
    beside_p99_ms: float
    query_ms: float


class RestartFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A clean stop and start on a full store. `rss`: bytes, when it had come to rest, before
    anything was asked."""

    entries: int
    ready_s: float
    rss: int | None = None


class RecoveryFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Starts: on an empty directory, and after a SIGKILL right after a load in requests of `batch`
    of which `entries` are left. Each `ready_s` is the shortest of some starts: what takes longer
    has waited for others."""

    entries: int
    batch: int
    empty_ready_s: float
    ready_s: float

    @property
    def replayed_per_s(self) -> float:
        """Over what the recovery added to the start. Starts differ by a twentieth, or ten
        milliseconds, in any case: less than that cannot be told, and counts as that."""
        least_s = max(self.empty_ready_s / 20, 0.01)
        return self.entries / max(self.ready_s - self.empty_ready_s, least_s)


class MemoryFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Resident bytes: `ready` when just started, `peak` while `what` was done. `entries_per_s`:
    of a load."""

    what: str
    ready: int
    peak: int
    entries_per_s: float | None = None


class CrashFigures(msgspec.Struct, frozen=True, kw_only=True):
    """SIGKILL in the middle of a load. `lost`: acknowledged entries that were not found again.
    `refused`: requests answered with an error before."""

    batch: int
    connections: int
    acknowledged: int
    lost: int
    ready_s: float
    recovered_per_s: float
    refused: int = 0


class ScaleFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The store when it had grown to `entries`."""

    entries: int
    entries_per_s: float
    queries: tuple[QueryFigures, ...]
    disk_bytes_per_entry: float
    rss: int | None


class PeerRun(msgspec.Struct, kw_only=True):
    """All that one run found out about one peer. What was not run is empty. `error`: why the
    run ended early. `failed`: what went wrong at loads, beside the failures in `ingest`.
    `foreign_cores`: how many cores processes that are neither the peer nor the benchmark kept busy
    in the mean; above a few hundredths the figures are disturbed.
    `sync_ms`: what one fdatasync took just before the run."""

    peer: str
    run: int
    ingest: list[IngestFigures] = []
    queries: list[QueryFigures] = []
    new_queries: list[QueryFigures] = []
    store: StoreFigures | None = None
    mixed: MixedFigures | None = None
    restart: RestartFigures | None = None
    recovery: list[RecoveryFigures] = []
    memory: list[MemoryFigures] = []
    crashes: list[CrashFigures] = []
    scale: list[ScaleFigures] = []
    error: str = ""
    failed: list[str] = []
    foreign_cores: float = 0.0
    sync_ms: float = 0.0


class PeerInfo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str
    durable: bool
    caveats: tuple[str, ...]


class CorpusInfo(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    entries: int
    bytes_per_entry: float
    sha256: str


class Results(msgspec.Struct, kw_only=True):
    """A whole benchmark. `taken`: the day, ISO 8601."""

    format: int = FORMAT
    taken: str
    machine: Machine
    corpus: CorpusInfo
    peers: list[PeerInfo]
    runs: list[PeerRun] = []

    def of(self, peer: str) -> list[PeerRun]:
        return [run for run in self.runs if run.peer == peer]

    def problems(self) -> list[str]:
        """Everything that makes the benchmark a failure: wrong answers, losses, errors."""
        found = []
        durable = {info.name for info in self.peers if info.durable}
        for run in self.runs:
            where = f"{run.peer}, run {run.run}"
            if run.error:
                found.append(f"{where}: {run.error}")
            found += [f"{where}: {failure}" for failure in run.failed]
            asked = [*run.queries, *run.new_queries]
            asked += [query for point in run.scale for query in point.queries]
            found += [f"{where}: {wrong}" for query in asked for wrong in query.wrong]
            found += [
                f"{where}: {crash.lost:,} acknowledged entries lost by SIGKILL"
                for crash in run.crashes
                if crash.lost and run.peer in durable
            ]
            found += [
                f"{where}: the load before a SIGKILL was not taken ({crash.refused:,} refused)"
                for crash in run.crashes
                if crash.refused or not crash.acknowledged
            ]
            found += [
                f"{where}: {load.failures:,} failed requests, first: {load.failure}"
                for load in run.ingest
                if load.failures
            ]
        return found


class NoResults(Exception):
    """A file does not hold the results of a benchmark, or cannot be read."""


def save(results: Results, path: Path) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


def load(path: Path) -> Results:
    """NoResults when the file is not of this format."""
    try:
        results = msgspec.json.decode(path.read_bytes(), type=Results)
    except (OSError, msgspec.DecodeError) as error:
        raise NoResults(f"{path}: {error}") from None
    if results.format != FORMAT:
        raise NoResults(f"{path}: results of format {results.format}, not {FORMAT}")
    return results
