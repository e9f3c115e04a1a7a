import datetime
import json
from collections.abc import Iterator
from typing import Any

import pytest
from command_line import connected, run_logd
from scripted_daemon import PROJECT, Answer, ScriptedDaemon

from logd.cli.errors import CommandError
from logd.cli.main import main
from logd.cli.read import moment


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon() as daemon:
        for name, text in connected(daemon).items():
            if name.startswith("LOGD_"):
                monkeypatch.setenv(name, text)
        yield daemon


def page(count: int, cursor: str | None, **more: Any) -> Answer:
    log = {
        "id": "log_1", "projectId": PROJECT, "level": "ERROR", "message": "disk full",
        "source": "db", "ts": "2026-01-01T00:00:00.000Z", "tags": ["t"], "meta": {"n": 1},
    }  # fmt: skip
    return Answer(200, {"logs": [log] * count, "nextCursor": cursor, "total": 5, **more})


def test_entries_are_listed_one_a_line(
    scripted: ScriptedDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.script.append(page(2, None))
    assert main(["query", "disk", "--level", "ERROR"]) == 0
    line = "2026-01-01T00:00:00.000Z ERROR db               disk full #t\n"
    assert capsys.readouterr() == (line * 2, "")
    assert scripted.requests[0].path.endswith("/logs?search=disk&level=ERROR&limit=100")


def test_json_entries_are_as_the_daemon_sent_them(
    scripted: ScriptedDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.script.append(page(1, None))
    assert main(["query", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["meta"] == {"n": 1}


def test_no_more_pages_are_fetched_than_are_wanted(
    scripted: ScriptedDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.script.extend([page(1000, "a"), page(1000, "b"), page(1000, "c")])
    assert main(["query", "--limit", "1500", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1500
    assert len(scripted.requests) == 2


def test_all_follows_the_cursors_to_the_end(
    scripted: ScriptedDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.script.extend([page(2, "a"), page(2, "b"), page(1, None)])
    assert main(["query", "--all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_times_may_be_relative(scripted: ScriptedDaemon) -> None:
    assert main(["query", "--from", "-1h", "--to", "2026-01-01"]) == 0
    path = scripted.requests[0].path
    assert "from=20" in path
    assert "to=2026-01-01" in path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("2026-01-01", "2026-01-01"),
        ("now", "2026-11-21T12:00:00+00:00"),
        ("-90s", "2026-11-21T11:58:30+00:00"),
        ("15m", "2026-11-21T11:45:00+00:00"),
        ("-1h", "2026-11-21T11:00:00+00:00"),
        ("-7d", "2026-11-14T12:00:00+00:00"),
        ("-2w", "2026-11-07T12:00:00+00:00"),
        ("-1y", "-1y"),
    ],
)
def test_a_moment_is_relative_to_now(text: str | None, expected: str | None) -> None:
    assert moment(text, datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC)) == expected


def test_a_moment_before_all_time_is_wrong_use() -> None:
    with pytest.raises(CommandError, match="before"):
        moment("-999999999w", datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))


def test_damage_is_told(scripted: ScriptedDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    scripted.script.append(page(1, None, partial=True))
    assert main(["query"]) == 0
    assert "entries may be missing" in capsys.readouterr().err


def test_a_bad_search_is_one_line(
    scripted: ScriptedDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = {"code": "open_quote", "detail": "search: a quote is not closed (at 0)",
             "parameter": "search", "position": 0}  # fmt: skip
    scripted.script.append(Answer(400, {"detail": "x", "code": "open_quote", "errors": [fault]}))
    assert main(["query", '"open']) == 1
    expected = "logd: refused (400): search: a quote is not closed (at 0)\n"
    assert capsys.readouterr().err == expected


def test_a_limit_below_one_is_wrong_use(scripted: ScriptedDaemon) -> None:
    assert main(["query", "--limit", "0"]) == 2


def test_a_search_may_begin_with_a_dash(scripted: ScriptedDaemon) -> None:
    assert main(["query", "--", "-debug"]) == 0
    assert "search=-debug" in scripted.requests[0].path


def test_a_reader_that_goes_away_is_no_error(scripted: ScriptedDaemon) -> None:
    scripted.script.extend([page(1000, "a")] * 50)
    done = run_logd("query", "--limit", "50000", "--json", env=connected(scripted), head=True)
    assert done.stderr == ""


def test_stats_are_a_table_or_json(
    scripted: ScriptedDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {"DEBUG": 1, "INFO": 12_345, "WARN": 0, "ERROR": 2}
    scripted.script.extend([Answer(200, counts), Answer(200, counts)])
    assert main(["stats"]) == 0
    assert main(["stats", "--json"]) == 0
    *table, json_line = capsys.readouterr().out.splitlines()
    assert [line.split() for line in table] == [
        ["DEBUG", "1"], ["INFO", "12,345"], ["WARN", "0"], ["ERROR", "2"], ["total", "12,348"],
    ]  # fmt: skip
    assert json.loads(json_line) == counts


def test_a_project_and_a_key_are_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("LOGD_PROJECT", "LOGD_KEY", "LOGD_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert main(["stats"]) == 2
    assert main(["stats", "--key", "ldk_x"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "LOGD_KEY" in first
    assert "LOGD_PROJECT" in second
