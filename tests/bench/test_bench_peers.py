"""The peers that need no server, from the first entry to the last answer."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bench.corpus import BLOCK, write_corpus
from bench.new_questions import KINDS, new_questions
from bench.oracle import Oracle
from bench.peers.base import LevelsReply, Peer, PeerError, Portion, Reply
from bench.peers.ripgrep import Ripgrep
from bench.peers.sqlite_fts5 import SqliteFts5
from bench.procstat import cpu_seconds, disk, memory
from bench.queries import Query, queries
from bench.results import PeerRun
from bench.workloads import asking, filled, ingest, scale
from bench.workloads.setting import SMOKE, Scope, Setting

ENTRIES = 3 * BLOCK
SCOPE = replace(
    SMOKE, entries=ENTRIES, settle_s=0.0, repetitions=2, query_s=0.0, scale=(BLOCK, ENTRIES)
)


@contextmanager
def setting_of(peer: Peer, work: Path, scope: Scope = SCOPE) -> Iterator[Setting]:
    asked = [query for count in SCOPE.scale for query in queries(count)] + new_questions()
    oracle = Oracle(asked, SCOPE.scale)
    corpus = write_corpus(work / "corpus", 1, ENTRIES, oracle)
    yield Setting(peer, corpus, oracle, scope, work, lambda text: None)


def test_sqlite_answers_every_question_rightly(tmp_path: Path) -> None:
    into = PeerRun(peer="sqlite", run=1)
    with setting_of(SqliteFts5(), tmp_path) as setting:
        filled.run(setting, into, with_queries=True, with_mixed=False)
    assert [query.wrong for query in into.queries] == [()] * (len(queries(ENTRIES)) + 1)
    assert [(kind.name, kind.wrong) for kind in into.new_queries] == [(k.name, ()) for k in KINDS]
    assert all(kind.repetitions == SCOPE.repetitions for kind in into.new_queries)
    assert into.ingest[0].entries == ENTRIES
    assert into.store is not None
    assert into.store.disk_bytes_per_entry > 100
    assert into.restart is not None


def test_ripgrep_answers_rightly_at_every_checkpoint(tmp_path: Path) -> None:
    binary = Ripgrep.find()
    if binary is None:
        pytest.skip("rg is not installed")
    into = PeerRun(peer="ripgrep", run=1)
    with setting_of(Ripgrep(binary), tmp_path) as setting:
        scale.run(setting, into)
    assert [point.entries for point in into.scale] == list(SCOPE.scale)
    assert [query.wrong for point in into.scale for query in point.queries if query.wrong] == []


def test_what_a_process_costs_can_be_read() -> None:
    assert cpu_seconds(os.getpid()) > 0
    found = memory(os.getpid())
    assert 0 < found.anonymous <= found.pss <= found.rss


def test_disk_counts_files_at_every_depth(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(b"x" * 5_000)
    assert disk(tmp_path).apparent == 5_000


def test_sqlite_is_loaded_several_times_with_the_same_entries(tmp_path: Path) -> None:
    into = PeerRun(peer="sqlite", run=1)
    with setting_of(SqliteFts5(), tmp_path, replace(SCOPE, loads=3)) as setting:
        ingest.run(setting, into)
    assert [(load.batch, load.connections) for load in into.ingest] == [(1, 1)]
    assert into.ingest[0].entries > 0
    assert into.ingest[0].failures == 0


def test_a_sqlite_that_ends_is_a_peer_that_failed(tmp_path: Path) -> None:
    peer = SqliteFts5()
    with setting_of(peer, tmp_path) as setting, setting.started("twice"):
        portion = Portion(setting.corpus, 0, BLOCK)
        peer.ingest(portion, tmp_path)
        with pytest.raises(PeerError, match="SQLite ended early"):
            peer.ingest(portion, tmp_path)


class Forgetful(SqliteFts5):
    """Answers rightly but for one answer to each question: the `wrong`-th."""

    def __init__(self, wrong: int) -> None:
        super().__init__()
        self._wrong = wrong
        self._asked: Counter[str] = Counter()

    def ask(self, query: Query) -> Reply:
        reply = super().ask(query)
        self._asked[query.name] += 1
        return replace(reply, total=-1) if self._asked[query.name] == self._wrong else reply

    def levels(self) -> LevelsReply:
        reply = super().levels()
        self._asked["levels"] += 1
        is_wrong = self._asked["levels"] == self._wrong + 1  # one more: a start is waited for so
        return replace(reply, counts={"INFO": 1}) if is_wrong else reply


@pytest.mark.parametrize("wrong", [1, 2, 3])
def test_a_wrong_answer_is_noticed_whenever_it_comes(wrong: int, tmp_path: Path) -> None:
    peer = Forgetful(wrong)
    with setting_of(peer, tmp_path) as setting, setting.started("asked"):
        peer.ingest(Portion(setting.corpus, 0, ENTRIES), tmp_path)
        found = asking.ask_all(setting, queries(ENTRIES), ENTRIES)
    assert [len(query.wrong) for query in found] == [1] * (len(queries(ENTRIES)) + 1)
