"""What becomes of a benchmark whose peer refuses, hangs up or answers nonsense."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from answering import BUSY, OK, Answering, answering

from bench import suite
from bench.corpus import BLOCK, write_corpus
from bench.http import ConnectionLost, post
from bench.machine import Machine
from bench.oracle import Hit, Oracle
from bench.peers.base import HttpPeer, LevelsReply, PeerError, Question
from bench.queries import Query
from bench.report import table
from bench.results import CorpusInfo, PeerInfo, PeerRun, Results, ScaleFigures
from bench.wire import RequestForm
from bench.workloads import filled, mixed, scale
from bench.workloads.setting import SMOKE, Setting

QUERY = b"<query>"
READY = b"<ready>"
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
ENTRIES = 2 * BLOCK
SCOPE = replace(SMOKE, entries=ENTRIES, single_s=2.0, scale=(ENTRIES,))


class Told(HttpPeer):
    """Whatever the server at the address was told to answer."""

    name = "told"
    version = "1"
    durable = True

    def command(self, data: Path) -> list[str]:
        raise AssertionError("it runs already")

    def readiness(self) -> bytes:
        return post("/", self.address, READY)

    def enrol(self) -> None:
        return

    def form(self) -> RequestForm:
        def body(lines: Sequence[bytes]) -> bytes:
            return b"<entries>"

        return RequestForm(b"POST / HTTP/1.1\r\n", body)

    def can(self, query: Query) -> bool:
        return False

    def question(self, query: Query) -> Question:
        return Question(post("/", self.address, QUERY), None)

    def read_page(self, body: bytes) -> tuple[tuple[Hit, ...], int | None]:
        raise AssertionError("no question is asked")

    def read_total(self, body: bytes) -> int:
        raise AssertionError("no question is asked")

    def levels(self) -> LevelsReply:
        response = self.call(post("/", self.address, QUERY))
        return LevelsReply(msgspec.json.decode(response.body, type=dict[str, int]), 0.001)


@contextmanager
def setting_of(server: Answering, work: Path) -> Iterator[Setting]:
    oracle = Oracle([], [ENTRIES])
    corpus = write_corpus(work / "corpus", 1, ENTRIES, oracle)
    yield Setting(Told(server.address), corpus, oracle, SCOPE, work, lambda text: None)


def results_of(run: PeerRun) -> Results:
    info = PeerInfo(name=run.peer, version="1", durable=True, caveats=())
    return Results(
        taken="2026-11-21",
        machine=Machine("cpu", 2, 2**30, "Linux 6", "ext4", "3.11"),
        corpus=CorpusInfo(seed=1, entries=10, bytes_per_entry=280.0, sha256="ab" * 32),
        peers=[info],
        runs=[run],
    )


def test_requests_refused_beside_queries_are_noted(tmp_path: Path) -> None:
    responses = [BUSY, *[OK] * ENTRIES]
    with (
        answering(responses, {READY: OK, QUERY: OK}) as server,
        setting_of(server, tmp_path) as setting,
    ):
        peer = setting.peer
        assert isinstance(peer, Told)
        peer.start(tmp_path / "data")
        figures = mixed.run(setting, peer)
        peer.stop()
    assert figures.beside_per_s > 0
    assert setting.failed == ["mixed: 8 failed requests, first: status 503"] * 4


def test_a_query_loop_whose_server_hangs_up_is_a_peer_that_failed(tmp_path: Path) -> None:
    with (
        answering([OK] * ENTRIES, {READY: OK, QUERY: b""}) as server,
        setting_of(server, tmp_path) as setting,
    ):
        peer = setting.peer
        assert isinstance(peer, Told)
        peer.start(tmp_path / "data")
        with pytest.raises(ConnectionLost):
            mixed.run(setting, peer)
        peer.stop()


def test_a_load_that_was_not_taken_as_a_whole_is_noted(tmp_path: Path) -> None:
    into = PeerRun(peer="told", run=1)
    with (
        answering([OK, BUSY], {READY: OK, QUERY: EMPTY}) as server,
        setting_of(server, tmp_path) as setting,
    ):
        scale.run(setting, into)
    assert into.scale[0].entries_per_s > 0
    assert setting.failed == [
        "scale: 1 failed requests, first: status 503",
        "scale: 1,000 of 2,000 entries were taken",
    ]


@pytest.mark.parametrize("response", [BUSY, b""])
def test_of_a_load_that_was_not_taken_at_all_there_is_no_figure(
    response: bytes, tmp_path: Path
) -> None:
    into = PeerRun(peer="told", run=1)
    with (
        answering([response], {READY: OK}) as server,
        setting_of(server, tmp_path) as setting,
        pytest.raises(PeerError, match="nothing of a load was taken"),
    ):
        filled.run(setting, into, with_queries=False, with_mixed=False)
    assert into.ingest == []


@pytest.mark.parametrize("body", [b"{", b"[]"])
def test_a_peer_that_answers_nonsense_does_not_end_the_benchmark(
    body: bytes, tmp_path: Path
) -> None:
    nonsense = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with answering([OK] * 100, {READY: OK, QUERY: nonsense}) as server:
        order = suite.Order(
            peers=[lambda: Told(server.address)] * 2,
            parts=frozenset({"scale"}),
            scope=SCOPE,
            runs=1,
            seed=1,
            work=tmp_path,
            say=lambda text: None,
            keep=lambda found: None,
        )
        found = suite.run(order)
    assert len(found.runs) == 2
    assert all(problem.split(": ")[1].endswith("Error") for problem in found.problems())
    assert len(found.problems()) == 2


def test_what_loads_lacked_is_a_problem(tmp_path: Path) -> None:
    run = PeerRun(peer="told", run=1, failed=["mixed: 8 failed requests, first: status 503"])
    assert results_of(run).problems() == [
        "told, run 1: mixed: 8 failed requests, first: status 503"
    ]


def test_a_server_elsewhere_that_does_not_answer_is_told(tmp_path: Path) -> None:
    with answering([]) as server:
        address = server.address
    with pytest.raises(PeerError, match=f"told does not answer at 127.0.0.1:{address.port}"):
        Told(address).start(tmp_path / "data")


def test_a_server_elsewhere_has_no_sizes(tmp_path: Path) -> None:
    point = ScaleFigures(
        entries=10, entries_per_s=9.0, queries=(), disk_bytes_per_entry=0.0, rss=None
    )
    rows = table(results_of(PeerRun(peer="told", run=1, scale=[point]))).splitlines()
    for title in ("disk, bytes/entry", "memory, MB"):
        row = next(row for row in rows if row.startswith(f"| {title}"))
        assert row.split("|")[2].strip() == "-"
