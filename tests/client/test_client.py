import urllib.parse
from collections.abc import Iterator

import pytest
from scripted_daemon import KEY, PROJECT, Answer, Cut, ScriptedDaemon, problem

from logd.client import (
    BadAnswer,
    ClientError,
    LogdClient,
    NewEntry,
    Refused,
    Unreachable,
)
from logd.client.delivery import Compression


@pytest.fixture
def scripted() -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon() as daemon:
        yield daemon


class Pauses:
    """Stands in for sleeping: remembers, wakes at once, and can say that time is up."""

    def __init__(self, woken_after: int | None = None) -> None:
        self.seconds: list[float] = []
        self._woken_after = woken_after

    def __call__(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        return self._woken_after is not None and len(self.seconds) > self._woken_after


def client_of(
    scripted: ScriptedDaemon,
    *,
    key: str = KEY,
    retry_seconds: float = 1000.0,
    compression: Compression = "none",
    pauses: Pauses | None = None,
) -> LogdClient:
    return LogdClient(
        scripted.url,
        key,
        PROJECT,
        compression=compression,
        retry_seconds=retry_seconds,
        sleep=pauses or Pauses(),
    )


def entry(message: str, timestamp: str | None = None) -> NewEntry:
    return NewEntry(level="INFO", message=message, source="tests", timestamp=timestamp)


def test_stored_entries_have_their_ids_in_order(scripted: ScriptedDaemon) -> None:
    with client_of(scripted) as client:
        result = client.ingest([entry("first"), entry("second")])
    assert scripted.messages == ["first", "second"]
    assert result.stored == 2
    assert result.rejected == ()
    assert all(entry_id and entry_id.startswith("log_") for entry_id in result.ids)


def test_an_entry_carries_the_project_and_only_what_was_said(scripted: ScriptedDaemon) -> None:
    with client_of(scripted) as client:
        client.ingest([entry("plain"), entry("dated", timestamp="2026-01-01T00:00:00Z")])
    assert scripted.stored == [
        {"projectId": PROJECT, "level": "INFO", "message": "plain", "source": "tests"},
        {
            "projectId": PROJECT,
            "level": "INFO",
            "message": "dated",
            "source": "tests",
            "timestamp": "2026-01-01T00:00:00Z",
        },
    ]


def test_nothing_is_sent_for_no_entries(scripted: ScriptedDaemon) -> None:
    with client_of(scripted) as client:
        assert client.ingest([]).ids == ()
    assert scripted.requests == []


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_compressed_body_arrives_as_it_was(
    scripted: ScriptedDaemon, compression: Compression
) -> None:
    with client_of(scripted, compression=compression) as client:
        client.ingest([entry("small on the way")])
    assert scripted.messages == ["small on the way"]
    assert scripted.requests[0].headers["content-encoding"] == compression


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_passing_refusal_is_repeated(scripted: ScriptedDaemon, status: int) -> None:
    scripted.script.extend([problem(status, "overloaded", "later")] * 3)
    pauses = Pauses()
    with client_of(scripted, pauses=pauses) as client:
        assert client.ingest([entry("patient")]).stored == 1
    assert len(pauses.seconds) == 3
    assert scripted.messages == ["patient"]


def test_a_retry_is_never_earlier_than_the_daemon_asks(scripted: ScriptedDaemon) -> None:
    scripted.script.append(problem(503, "storage_full", "the disk is full", Retry_After="40"))
    pauses = Pauses()
    with client_of(scripted, pauses=pauses) as client:
        client.ingest([entry("later")])
    assert pauses.seconds == [40.0]


def test_a_retry_is_given_up_when_the_time_is_over(scripted: ScriptedDaemon) -> None:
    scripted.script.append(problem(503, "overloaded", "later", Retry_After="40"))
    with client_of(scripted, retry_seconds=30) as client, pytest.raises(Refused) as refused:
        client.ingest([entry("late")])
    assert refused.value.status == 503
    assert refused.value.code == "overloaded"


def test_a_retry_is_given_up_when_the_pause_is_broken_off(scripted: ScriptedDaemon) -> None:
    scripted.script.extend([problem(503, "overloaded", "later")] * 9)
    with client_of(scripted, pauses=Pauses(woken_after=1)) as client, pytest.raises(Refused):
        client.ingest([entry("late")])
    assert len(scripted.requests) == 2


def test_a_lost_answer_does_not_store_twice(scripted: ScriptedDaemon) -> None:
    scripted.script.append(Cut.AFTER_WORK)
    with client_of(scripted) as client:
        result = client.ingest([entry("once")])
    assert result.stored == 1
    assert scripted.messages == ["once"]
    first, second = scripted.requests
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.body == second.body


def test_a_lost_request_is_repeated(scripted: ScriptedDaemon) -> None:
    scripted.script.extend([Cut.BEFORE_WORK, Cut.BEFORE_WORK])
    with client_of(scripted) as client:
        client.ingest([entry("at last")])
    assert scripted.messages == ["at last"]


def test_each_batch_has_its_own_idempotency_key(scripted: ScriptedDaemon) -> None:
    with client_of(scripted) as client:
        client.ingest([entry("same")])
        client.ingest([entry("same")])
    assert scripted.messages == ["same", "same"]


def test_nobody_there_is_said_with_the_address() -> None:
    scripted = ScriptedDaemon()
    scripted.close()
    with client_of(scripted, retry_seconds=0) as client, pytest.raises(Unreachable) as error:
        client.ingest([entry("hello?")])
    assert scripted.url in str(error.value)


def test_a_wrong_key_is_refused_at_once(scripted: ScriptedDaemon) -> None:
    with client_of(scripted, key="ldk_wrong") as client, pytest.raises(Refused) as refused:
        client.ingest([entry("who?")])
    assert refused.value.status == 401
    assert "ldk_wrong" not in str(refused.value)
    assert len(scripted.requests) == 1


def test_a_bad_entry_is_named_and_the_others_are_stored(scripted: ScriptedDaemon) -> None:
    with client_of(scripted) as client:
        result = client.ingest([entry("good"), entry("x" * 9000), entry("also good")])
    assert scripted.messages == ["good", "also good"]
    assert result.stored == 2
    assert [(one.index, one.reason) for one in result.rejected] == [(1, "message: over 8192 bytes")]
    assert [entry_id is None for entry_id in result.ids] == [False, True, False]


def test_bad_entries_beyond_the_explained_hundred_are_still_counted(
    scripted: ScriptedDaemon,
) -> None:
    with client_of(scripted) as client:
        result = client.ingest([entry("x" * 9000)] * 103)
    assert len(result.rejected) == 103
    assert result.rejected[-1].reason == "refused"


def test_a_batch_that_is_too_large_is_divided(scripted: ScriptedDaemon) -> None:
    scripted.max_body_bytes = 1000
    with client_of(scripted) as client:
        result = client.ingest([entry(f"{number:04}") for number in range(100)])
    assert scripted.messages == [f"{number:04}" for number in range(100)]
    assert result.stored == 100


def test_an_entry_too_large_for_any_batch_is_refused_alone(scripted: ScriptedDaemon) -> None:
    scripted.max_body_bytes = 1000
    with client_of(scripted) as client:
        result = client.ingest([entry("a"), entry("x" * 2000), entry("b"), entry("c")])
    assert scripted.messages == ["a", "b", "c"]
    assert [one.index for one in result.rejected] == [1]


def test_ids_that_do_not_fit_the_entries_are_not_believed(scripted: ScriptedDaemon) -> None:
    scripted.script.append(Answer(200, {"ingested": 1, "ids": []}))
    with client_of(scripted) as client, pytest.raises(BadAnswer):
        client.ingest([entry("alone")])


@pytest.mark.parametrize("body", ["text", {"ingested": "many"}])
def test_an_answer_that_is_not_logds_is_an_error(scripted: ScriptedDaemon, body: object) -> None:
    scripted.script.append(Answer(200, body))
    with client_of(scripted) as client, pytest.raises(BadAnswer):
        client.ingest([entry("anyone")])


def test_a_value_without_json_is_an_error_of_the_client(scripted: ScriptedDaemon) -> None:
    with client_of(scripted) as client, pytest.raises(ClientError, match="JSON"):
        client.ingest([NewEntry(level="INFO", message="x", source="x", meta={"o": object()})])
    with client_of(scripted) as client, pytest.raises(ClientError, match="JSON"):
        client.ingest([entry("\ud800")])


@pytest.mark.parametrize(
    "url", ["", "localhost:8514", "ftp://localhost", "http://", "http://a:b:c"]
)
def test_an_address_that_is_none_is_refused_in_the_beginning(url: str) -> None:
    with pytest.raises(ClientError, match="address"):
        LogdClient(url, KEY, PROJECT)


STORED = {
    "id": "log_1",
    "projectId": PROJECT,
    "level": "WARN",
    "message": "m",
    "source": "s",
    "ts": "2026-01-01T00:00:00.000Z",
    "tags": ["t"],
    "meta": {"n": 12345678901234567890, "deep": {"list": [1, None]}},
}


def test_a_page_holds_entries_with_their_meta(scripted: ScriptedDaemon) -> None:
    scripted.script.append(Answer(200, {"logs": [STORED], "nextCursor": "c", "total": 7}))
    with client_of(scripted) as client:
        page = client.list("word", level="WARN", from_="2026-01-01", to="2026-02-01", limit=1)
    assert page.next_cursor == "c"
    assert page.total == 7
    assert not page.partial
    assert page.logs[0].meta == STORED["meta"]
    assert page.logs[0].tags == ("t",)
    assert scripted.requests[0].path == (
        f"/v1/projects/{PROJECT}/logs?search=word&level=WARN&from=2026-01-01&to=2026-02-01&limit=1"
    )


def test_iteration_follows_the_cursors_to_the_end(scripted: ScriptedDaemon) -> None:
    for number, cursor in enumerate(["a b", "c", None]):
        log = {**STORED, "message": str(number)}
        scripted.script.append(Answer(200, {"logs": [log], "nextCursor": cursor, "total": 3}))
    with client_of(scripted) as client:
        assert [log.message for log in client.iterate()] == ["0", "1", "2"]
    cursors = [request.path.partition("cursor=")[2] for request in scripted.requests]
    assert cursors == ["", "a+b", "c"]


def test_a_bad_search_is_refused_with_its_reason(scripted: ScriptedDaemon) -> None:
    fault = {"code": "open_quote", "detail": "no end", "parameter": "search", "position": 3}
    scripted.script.append(Answer(400, {"detail": "no end", "code": "x", "errors": [fault]}))
    with client_of(scripted) as client, pytest.raises(Refused, match="search: no end"):
        client.list('"open')


def test_a_proxys_error_page_is_refused_with_its_status(scripted: ScriptedDaemon) -> None:
    scripted.script.append(Answer(404, "<html>"))
    with client_of(scripted) as client, pytest.raises(Refused) as refused:
        client.stats()
    assert str(refused.value) == "refused (404): Not Found"


def test_stats_count_by_level(scripted: ScriptedDaemon) -> None:
    with client_of(scripted) as client:
        client.ingest([entry("one"), entry("two")])
        stats = client.stats()
    assert (stats.INFO, stats.ERROR, stats.total) == (2, 0, 2)


@pytest.mark.parametrize(
    "key", ["", "ldk_secret\n", "ldk_secret\r", "ldk_se cret\t", "ldk_\u043a\u043b"]
)
def test_a_key_that_cannot_be_sent_is_refused_at_once_and_not_shown(key: str) -> None:
    with pytest.raises(ClientError, match="API key") as refused:
        LogdClient("http://127.0.0.1:1", key, PROJECT)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("project", ["a\r\n", "../..", "a?b#c", "\u00e9"])
def test_a_project_that_is_none_stays_within_its_part_of_the_path(
    scripted: ScriptedDaemon, project: str
) -> None:
    with LogdClient(scripted.url, KEY, project) as client:
        client.list()
    (request,) = scripted.requests
    path, _, query = request.path.partition("?")
    assert path.split("/")[:3] == ["", "v1", "projects"]
    assert path.split("/")[4:] == ["logs"]
    assert urllib.parse.unquote(path.split("/")[3]) == project
    assert query == "limit=100"


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "nonsense://127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_is_an_error_of_the_client(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ClientError, match="proxy"):
        LogdClient("http://127.0.0.1:1", KEY, PROJECT)
