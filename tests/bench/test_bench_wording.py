"""How the questions are worded for each peer."""

from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from bench.corpus import START_MS
from bench.http import Address
from bench.peers.logd import Logd
from bench.peers.loki import Loki
from bench.peers.victorialogs import VictoriaLogs
from bench.queries import Query, queries

ASKED = {query.name: query for query in queries(1_000_000)}
MINUTE = ASKED["minute"]


def target_of(request: bytes) -> str:
    return request.split(b" ")[1].decode()


def logd(query: Query) -> dict[str, list[str]]:
    return parse_qs(urlsplit(target_of(Logd().question(query).page)).query)


def victorialogs(query: Query) -> str:
    body = VictoriaLogs(None).question(query).page.split(b"\r\n\r\n")[1].decode()
    return parse_qs(body)["query"][0]


def loki(query: Query) -> str:
    return unquote(target_of(Loki(None).question(query).page).replace("+", " "))


@pytest.mark.parametrize(
    ("name", "search"),
    [
        ("rare_word", "segfault"),
        ("two_words", "connection timeout"),
        ("phrase", '"authentication failure"'),
        ("prefix", "blk_*"),
        ("non_ascii", "登录"),
        ("meta", f"meta.userId:{ASKED['meta'].user_id}"),
    ],
)
def test_logd_is_asked_in_its_search_language(name: str, search: str) -> None:
    assert logd(ASKED[name])["search"] == [search]


def test_logd_is_asked_for_level_and_time_by_parameters() -> None:
    assert logd(ASKED["newest_error"]) == {"limit": ["100"], "level": ["ERROR"]}
    assert logd(MINUTE)["from"] == ["2026-11-01T00:25:00.000Z"]
    assert logd(MINUTE)["to"] == ["2026-11-01T00:26:00.000Z"]


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("newest_error", 'level:="ERROR"'),
        ("two_words", "connection timeout"),
        ("phrase", '"authentication failure"'),
        ("prefix", "blk_*"),
        ("non_ascii", '~"登录"'),
        ("meta", f'meta.userId:="{ASKED["meta"].user_id}"'),
    ],
)
def test_victorialogs_is_asked_within_a_time_range(name: str, end: str) -> None:
    assert victorialogs(ASKED[name]).startswith("_time:[2026-11-01T00:00:00.000Z, ")
    assert victorialogs(ASKED[name]).endswith(f") {end}")


def test_victorialogs_counts_with_a_second_request() -> None:
    total = VictoriaLogs(None).question(ASKED["phrase"]).total
    assert total is not None
    assert total.endswith(b"%7C+stats+count%28%29+as+n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("newest_error", '{source=~".+",level="ERROR"}&'),
        ("rare_word", "|= `segfault` |~ `\\bsegfault\\b`&"),
        ("phrase", "|= `authentication failure`&"),
        ("meta", f"| userId=`{ASKED['meta'].user_id}`&"),
    ],
)
def test_loki_is_asked_with_filters_of_lines(name: str, text: str) -> None:
    assert text in loki(ASKED[name])


def test_a_minute_is_a_whole_one_of_the_clock() -> None:
    assert MINUTE.from_ms is not None
    assert MINUTE.to_ms == MINUTE.from_ms + 60_000
    assert MINUTE.from_ms % 60_000 == 0
    assert MINUTE.from_ms > START_MS


def test_a_victorialogs_that_runs_elsewhere_has_a_new_tenant_for_each_store() -> None:
    peer = VictoriaLogs(None, Address("127.0.0.1", 9428))
    found = []
    for _ in range(2):
        peer.enrol()
        question = peer.question(ASKED["newest"])
        assert question.total is not None
        requests = [peer.form().head + b"\r\n", question.page, question.total]
        heads = [request.split(b"\r\n\r\n")[0].split(b"\r\n") for request in requests]
        (tenant,) = {line for head in heads for line in head if line.startswith(b"AccountID: ")}
        assert all(tenant in head for head in heads)
        found.append(tenant)
    assert found[0] != found[1]
