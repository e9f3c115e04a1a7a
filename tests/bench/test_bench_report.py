from pathlib import Path

import msgspec
import pytest

from bench import results
from bench.figures import GROWTH, LOST, TARGETS, rate, replay
from bench.machine import Machine
from bench.report import markdown, table
from bench.results import (
    CorpusInfo,
    CrashFigures,
    IngestFigures,
    MemoryFigures,
    MixedFigures,
    PeerInfo,
    PeerRun,
    QueryFigures,
    RecoveryFigures,
    Results,
    ScaleFigures,
    StoreFigures,
)
from bench.tables import grid, number


def load(entries_per_s: float) -> IngestFigures:
    return IngestFigures(
        batch=1_000,
        connections=1,
        entries=10,
        entries_per_s=entries_per_s,
        p50_ms=1.0,
        p99_ms=2.0,
        client_cpu_us=0.1,
    )


def newest(page_ms: float, wrong: tuple[str, ...] = ()) -> QueryFigures:
    return QueryFigures(
        name="newest",
        total=10,
        first_ms=9.0,
        page_ms=page_ms,
        total_ms=0.0,
        low_ms=page_ms,
        high_ms=page_ms,
        repetitions=3,
        wrong=wrong,
    )


@pytest.fixture
def found() -> Results:
    return Results(
        taken="2026-11-21",
        machine=Machine("cpu", 2, 2**30, "Linux 6", "ext4", "3.11"),
        corpus=CorpusInfo(seed=1, entries=10, bytes_per_entry=280.0, sha256="ab" * 32),
        peers=[
            PeerInfo(name="logd", version="1", durable=True, caveats=("exact",)),
            PeerInfo(name="victorialogs", version="2", durable=False, caveats=("fast",)),
        ],
        runs=[
            PeerRun(peer="logd", run=1, ingest=[load(200.0)], queries=[newest(0.5)]),
            PeerRun(peer="logd", run=2, ingest=[load(300.0)], queries=[newest(0.7)]),
            PeerRun(peer="victorialogs", run=1, ingest=[load(400.0)], queries=[newest(7.0)]),
        ],
    )


def test_results_round_trip_through_json(found: Results, tmp_path: Path) -> None:
    results.save(found, tmp_path / "r.json")
    assert results.load(tmp_path / "r.json") == found


def test_targets_that_are_missed_come_first(found: Results) -> None:
    rows = table(found).split("## Ingest")[0].splitlines()
    assert [row.split("|")[1].strip() for row in rows if "MISSED" in row or " met " in row] == [
        "ingest, batch 1,000, 1 conn.",
        "newest 100, the first time",
        "newest 100",
    ]


def test_a_relative_target_is_scored_against_the_reference(found: Results) -> None:
    target = next(t for t in TARGETS if t.factor == 1.25)
    assert target.score(found) == pytest.approx(250 / (400 * 1.25))


def test_a_target_without_figures_has_no_score(found: Results) -> None:
    found.runs = [run for run in found.runs if run.peer == "logd"]
    assert TARGETS[0].score(found) is None


def test_a_figure_has_a_value_for_each_run(found: Results) -> None:
    assert rate(1_000, 1).values(found, "logd") == [200.0, 300.0]


def test_the_report_says_what_is_unfair_and_that_answers_were_right(found: Results) -> None:
    text = markdown(found)
    assert "**not durable**. fast." in text
    assert "Every answer of every peer was the right one." in text


def test_wrong_answers_and_losses_of_durable_stores_are_problems(found: Results) -> None:
    crash = CrashFigures(
        batch=1, connections=1, acknowledged=9, lost=9, ready_s=1.0, recovered_per_s=0.0
    )
    found.runs[0].crashes.append(crash)
    found.runs[2].crashes.append(crash)
    found.runs[1].queries.append(newest(1.0, ("newest: total 1 instead of 2",)))
    assert found.problems() == [
        "logd, run 1: 9 acknowledged entries lost by SIGKILL",
        "logd, run 2: newest: total 1 instead of 2",
    ]


def test_new_questions_have_a_table_of_their_own_and_count_as_answers(found: Results) -> None:
    asked = msgspec.structs.replace(newest(3.0, ("new_id_3: total 1 instead of 2",)), name="new_id")
    found.runs[0].new_queries.append(asked)
    assert found.problems() == ["logd, run 1: new_id_3: total 1 instead of 2"]
    for text in (table(found), markdown(found)):
        section = text.split("## Queries never asked before")[1].split("##")[0]
        assert "| 3.00" in section


def test_what_is_asked_first_is_to_be_as_quick_as_the_reference(found: Results) -> None:
    slow = [msgspec.structs.replace(newest(0.5), first_ms=18.0)]
    found.runs[0].queries = found.runs[1].queries = slow
    target = next(t for t in TARGETS if t.figure.title == "newest 100, the first time")
    assert target.score(found) == pytest.approx(0.5)
    for text in (table(found), markdown(found)):
        section = text.split("## Queries, the first time after a restart")[1].split("##")[0]
        (row,) = [row for row in section.splitlines() if row.startswith("| newest 100,")]
        assert row.split("|")[-2].strip() == "0.50x"


def point(entries: int, first_ms: float) -> ScaleFigures:
    asked = msgspec.structs.replace(newest(1.0), first_ms=first_ms)
    return ScaleFigures(
        entries=entries, entries_per_s=1.0, queries=(asked,), disk_bytes_per_entry=1.0, rss=None
    )


def test_on_the_largest_store_peers_are_compared(found: Results) -> None:
    found.runs[0].scale = [point(10, 1.0), point(20, 2.0)]
    found.runs[2].scale = [point(10, 9.0), point(20, 8.0)]
    section = table(found).split("## Queries on 20 entries")[1].split("##")[0]
    cells = [row.split("|") for row in section.splitlines() if row.startswith("|")]
    rows = {row[1].strip(): row[-2].strip() for row in cells}
    assert rows["newest 100, the first time (ms)"] == "4.00x"
    assert rows["newest 100, again (ms)"] == "1.00x"


def test_stores_of_different_sizes_are_not_compared(found: Results) -> None:
    found.runs[0].scale, found.runs[2].scale = [point(10, 1.0)], [point(20, 8.0)]
    assert "## As the store grows" in table(found)
    assert "## Queries on" not in table(found)


def test_replay_is_what_the_tail_adds_to_a_start(found: Results) -> None:
    figures = RecoveryFigures(entries=60_000, batch=1_000, empty_ready_s=0.3, ready_s=0.4)
    assert figures.replayed_per_s == pytest.approx(600_000)
    for ready_s in (0.2, 0.3, 0.301):  # less than starts differ by
        close = msgspec.structs.replace(figures, ready_s=ready_s)
        assert close.replayed_per_s == pytest.approx(4_000_000)
    quick = RecoveryFigures(entries=60_000, batch=1_000, empty_ready_s=0.01, ready_s=0.011)
    assert quick.replayed_per_s == pytest.approx(6_000_000)
    found.runs[0].recovery.append(figures)
    assert replay(1_000).values(found, "logd") == [pytest.approx(600_000)]
    assert replay(1).values(found, "logd") == []
    row = next(row for row in table(found).splitlines() if "start after SIGKILL" in row)
    assert "0.40" in row


def test_writes_beside_a_heavy_query_may_take_twice_as_long(found: Results) -> None:
    mixed = MixedFigures(
        query="new_prefix",
        connections=8,
        alone_per_s=9.0,
        alone_p50_ms=1.0,
        alone_p99_ms=2.0,
        beside_per_s=8.0,
        beside_p50_ms=2.0,
        beside_p99_ms=5.0,
        query_ms=300.0,
    )
    found.runs[0].mixed = mixed
    found.runs[1].mixed = msgspec.structs.replace(mixed, beside_p99_ms=2.0)
    assert GROWTH.values(found, "logd") == [2.5, 1.0]
    assert f"- {GROWTH.title}" not in table(found)
    found.runs[1].mixed = mixed
    rows = table(found).splitlines()
    assert "MISSED" in next(row for row in rows if row.startswith(f"| {GROWTH.title} "))
    assert any(row.startswith(f"- {GROWTH.title}: two cores") for row in rows)
    assert next(row for row in rows if "logd, run 1 " in row).split("|")[6].strip() == "2.50x"


def test_memory_at_work_is_a_table(found: Results) -> None:
    assert "Memory at work" not in table(found)
    peak = MemoryFigures(what="300 entries", ready=50_000_000, peak=67_108_864, entries_per_s=7.0)
    found.runs[0].memory.append(peak)
    row = next(row for row in markdown(found).splitlines() if "300 entries" in row)
    assert [cell.strip() for cell in row.split("|")[2:6]] == ["50.0", "67.1", "64.0", "7.00"]


def test_columns_are_padded() -> None:
    assert grid(["a", "bb"], [["ccc", "d"]]) == (
        "| a   | bb |\n"
        "| --- | -: |\n"
        "| ccc |  d |\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"), [(0.004, "0.004"), (0.5, "0.50"), (12.34, "12.3"), (1234.5, "1,234")]
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_entries_lost_in_one_run_of_several_are_a_miss(found: Results) -> None:
    none = CrashFigures(
        batch=1, connections=1, acknowledged=9, lost=0, ready_s=1.0, recovered_per_s=9.0
    )
    for run in found.runs[:2]:
        run.crashes.append(none)
    third = PeerRun(peer="logd", run=3, crashes=[msgspec.structs.replace(none, lost=1)])
    found.runs.append(third)
    row = next(row for row in table(found).splitlines() if row.startswith(f"| {LOST.title} "))
    assert "MISSED" in row


def test_a_reference_that_took_nothing_does_not_end_the_report(found: Results) -> None:
    found.runs[2].ingest[0] = load(0.0)
    assert "| ingest, batch 1,000, 1 conn. " in table(found)


def test_a_store_that_did_not_come_to_rest_is_told(found: Results) -> None:
    store = StoreFigures(
        idle_rss=None,
        idle_pss=None,
        filled_rss=None,
        filled_pss=None,
        filled_anonymous=None,
        disk_bytes_per_entry=40.0,
        apparent_bytes_per_entry=40.0,
        settled=True,
    )
    found.runs[0].store = store
    assert "Still at work" not in markdown(found)
    found.runs[2].store = msgspec.structs.replace(store, settled=False)
    assert "which may get more or less: victorialogs, run 1." in markdown(found)


def test_right_answers_are_not_claimed_where_nothing_was_asked(found: Results) -> None:
    for run in found.runs:
        run.queries = []
    assert "Every answer of every peer" not in markdown(found)
    assert "No question was asked" in markdown(found)
