"""Ingest, listing, stats and single entries, as the contract says."""

import gzip
import json
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import pytest
import trio
import zstandard
from live_daemon import Daemon, DaemonFactory

pytestmark = pytest.mark.both_doors


async def ingest(
    daemon: Daemon, body: Any, path: str = "/v1/ingest", **more: Any
) -> httpx.Response:
    return await daemon.call("POST", path, daemon.key, json=body, **more)


async def listed(daemon: Daemon, **query: Any) -> dict[str, Any]:
    path = f"/v1/projects/{daemon.project}/logs"
    response = await daemon.call("GET", path, daemon.key, params=query)
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


async def refused(daemon: Daemon, **query: Any) -> dict[str, Any]:
    """The problem that a listing ends with."""
    path = f"/v1/projects/{daemon.project}/logs"
    response = await daemon.call("GET", path, daemon.key, params=query)
    assert response.status_code == 400, response.text
    problem: dict[str, Any] = response.json()
    return problem


# ---------------------------------------------------------------- ingest


async def test_one_entry_comes_back_as_it_was_sent(daemon: Daemon) -> None:
    response = await ingest(
        daemon,
        daemon.entry(
            level="ERROR",
            message="Zahlung fehlgeschlagen \N{PILE OF POO}\x00",
            timestamp="2026-01-31 09:30:00.123456789+02:00",
            tags=["a", "b"],
        ),
    )
    assert response.status_code == 200
    receipt = response.json()
    assert receipt["ingested"] == 1
    (entry,) = (await listed(daemon))["logs"]
    assert entry == {
        "id": receipt["ids"][0],
        "projectId": daemon.project,
        "level": "ERROR",
        "message": "Zahlung fehlgeschlagen \N{PILE OF POO}\x00",
        "source": "auth",
        "ts": "2026-01-31T07:30:00.123456789Z",
        "tags": ["a", "b"],
        "meta": {},
    }


async def test_meta_is_not_rounded(daemon: Daemon) -> None:
    meta = b'{"big":123456789012345678901234567890,"float":0.10000000000000000001,"e":1E400}'
    body = json.dumps(daemon.entry()).encode()[:-1] + b',"meta":' + meta + b"}"
    response = await daemon.call("POST", "/v1/ingest", daemon.key, content=body)
    assert response.status_code == 200, response.text
    response = await daemon.call("GET", f"/v1/projects/{daemon.project}/logs", daemon.key)
    assert b'"meta":' + meta in response.content


async def test_ids_are_in_request_order(daemon: Daemon) -> None:
    ids = (await ingest(daemon, [daemon.entry(message=str(n)) for n in range(5)])).json()["ids"]
    for number, log_id in enumerate(ids):
        path = f"/v1/projects/{daemon.project}/logs/{log_id}"
        entry = (await daemon.call("GET", path, daemon.key)).json()
        assert (entry["id"], entry["message"]) == (log_id, str(number))


async def test_an_empty_array_stores_nothing(daemon: Daemon) -> None:
    assert (await ingest(daemon, [])).json() == {"ingested": 0, "ids": []}


async def test_one_bad_entry_rejects_the_whole_request(daemon: Daemon) -> None:
    response = await ingest(daemon, [daemon.entry(), daemon.entry(level="FATAL"), daemon.entry()])
    problem = response.json()
    assert (response.status_code, problem["code"]) == (400, "invalid_entries")
    assert [(e["index"], e["pointer"]) for e in problem["errors"]] == [(1, "/level")]
    assert (await listed(daemon))["total"] == 0


async def test_an_unknown_field_is_named(daemon: Daemon) -> None:
    problem = (await ingest(daemon, daemon.entry(mesage="typo"))).json()
    (error,) = problem["errors"]
    assert (error["pointer"], error["code"]) == ("/mesage", "unknown_field")


async def test_partial_stores_the_good_entries_and_lists_the_bad(daemon: Daemon) -> None:
    response = await ingest(
        daemon,
        [daemon.entry(), {"level": "INFO"}, daemon.entry(projectId=str(uuid4()))],
        "/v1/ingest?partial=true",
    )
    assert response.status_code == 207
    receipt = response.json()
    assert receipt["ingested"] == 1
    assert [log_id is None for log_id in receipt["ids"]] == [False, True, True]
    assert {error["index"] for error in receipt["errors"]} == {1, 2}
    assert (await listed(daemon))["total"] == 1


async def test_a_torn_line_is_a_bad_entry_of_a_partial_request(daemon: Daemon) -> None:
    good = json.dumps(daemon.entry())
    lines = "\n".join([good, good[: len(good) // 2], good])
    headers = {"Content-Type": "application/x-ndjson"}
    url = "/v1/ingest?partial=true"
    response = await daemon.call("POST", url, daemon.key, content=lines, headers=headers)
    assert response.status_code == 207
    receipt = response.json()
    assert [log_id is None for log_id in receipt["ids"]] == [False, True, False]
    (error,) = receipt["errors"]
    assert (error["index"], error["pointer"], error["code"]) == (1, "", "malformed_json")
    assert (await listed(daemon))["total"] == 2


async def test_partial_without_bad_entries_is_an_ordinary_success(daemon: Daemon) -> None:
    response = await ingest(daemon, [daemon.entry()], "/v1/ingest?partial=true")
    assert response.status_code == 200
    assert set(response.json()) == {"ingested", "ids"}


async def test_another_projects_entry_is_forbidden(daemon: Daemon) -> None:
    response = await ingest(daemon, [daemon.entry(), daemon.entry(projectId=str(uuid4()))])
    problem = response.json()
    assert (response.status_code, problem["code"]) == (403, "foreign_project")
    assert problem["errors"][0]["index"] == 1
    assert (await listed(daemon))["total"] == 0


async def test_ndjson_is_one_entry_a_line(daemon: Daemon) -> None:
    lines = "\n".join(json.dumps(daemon.entry(message=str(n))) for n in range(3)) + "\n"
    response = await daemon.call(
        "POST",
        "/v1/ingest",
        daemon.key,
        content=lines,
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert response.json()["ingested"] == 3


@pytest.mark.parametrize(
    "kind", [None, "application/json", "application/json; charset=utf-8", "Application/JSON"]
)
async def test_json_may_be_announced_in_several_ways(daemon: Daemon, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    response = await daemon.call("POST", "/v1/ingest", daemon.key, content=b"[]", headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Encoding": "br"},
        {"Content-Encoding": "gzip, gzip"},
    ],
)
async def test_other_media_are_415(daemon: Daemon, headers: dict[str, str]) -> None:
    response = await daemon.call("POST", "/v1/ingest", daemon.key, content=b"[]", headers=headers)
    assert response.status_code == 415


def _deflate_raw(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-15)


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate, raw": _deflate_raw,
    "zstd": zstandard.ZstdCompressor().compress,
    "zstd without size": zstandard.ZstdCompressor(write_content_size=False).compress,
    "x-gzip": gzip.compress,
}


@pytest.mark.parametrize("name", ENCODERS)
async def test_compressed_bodies_are_read(daemon: Daemon, name: str) -> None:
    plain = json.dumps([daemon.entry(message=str(n)) for n in range(2000)]).encode()
    body = ENCODERS[name](plain)
    encoding = name.split(",")[0].split(" ")[0]
    response = await daemon.call(
        "POST", "/v1/ingest", daemon.key, content=body, headers={"Content-Encoding": encoding}
    )
    assert response.status_code == 200, response.text
    assert response.json()["ingested"] == 2000


@pytest.mark.parametrize("name", ENCODERS)
async def test_a_truncated_compressed_body_is_400(daemon: Daemon, name: str) -> None:
    body = ENCODERS[name](json.dumps([daemon.entry()] * 3).encode())
    encoding = name.split(",")[0].split(" ")[0]
    for end in (0, 1, len(body) // 2, len(body) - 1):
        response = await daemon.call(
            "POST",
            "/v1/ingest",
            daemon.key,
            content=body[:end],
            headers={"Content-Encoding": encoding},
        )
        assert response.status_code == 400, (end, response.text)
        assert response.json()["code"] in ("truncated_body", "bad_compression", "malformed_json")
    assert (await listed(daemon))["total"] == 0


@pytest.mark.parametrize("name", ["gzip", "zstd"])
async def test_several_compressed_streams_are_one_body(daemon: Daemon, name: str) -> None:
    text = json.dumps([daemon.entry()] * 3).encode()
    body = ENCODERS[name](text[:50]) + ENCODERS[name](text[50:])
    response = await daemon.call(
        "POST", "/v1/ingest", daemon.key, content=body, headers={"Content-Encoding": name}
    )
    assert response.json()["ingested"] == 3


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b"7",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[NaN]",
        b"\xff\xfe",
        b'[{"level": "\\ud800"}]',
        b"null",
    ],
)
async def test_a_body_that_is_no_json_is_400(daemon: Daemon, body: bytes) -> None:
    response = await daemon.call("POST", "/v1/ingest", daemon.key, content=body)
    assert response.status_code == 400
    assert response.headers["content-type"] == "application/problem+json"


async def test_the_same_idempotency_key_answers_the_first_response_again(daemon: Daemon) -> None:
    headers = {"Idempotency-Key": "batch-17"}
    first = await ingest(daemon, [daemon.entry()], headers=headers)
    again = await ingest(daemon, [daemon.entry()], headers=headers)
    assert first.json() == again.json()
    other = await ingest(daemon, [daemon.entry(message="another")], headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_conflict")
    assert (await listed(daemon))["total"] == 1


@pytest.mark.parametrize("nothing", [[], [{}]])
async def test_a_request_that_stored_nothing_leaves_its_idempotency_key_free(
    daemon: Daemon, nothing: list[Any]
) -> None:
    path, headers = "/v1/ingest?partial=true", {"Idempotency-Key": "batch-17"}
    assert (await ingest(daemon, nothing, path, headers=headers)).json()["ingested"] == 0
    assert (await ingest(daemon, daemon.entry(), path, headers=headers)).json()["ingested"] == 1
    assert (await ingest(daemon, nothing, path, headers=headers)).json()["ingested"] == 0
    other = await ingest(daemon, daemon.entry(message="another"), path, headers=headers)
    assert other.status_code == 422


@pytest.mark.parametrize("field", ["timestamp", "tags", "meta"])
async def test_an_optional_field_is_left_out_or_has_a_value(daemon: Daemon, field: str) -> None:
    response = await ingest(daemon, daemon.entry(**{field: None}))
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] == f"/{field}"


@pytest.mark.parametrize("key", ["", "a b", "x" * 129, "tab\there"])
async def test_an_idempotency_key_is_1_to_128_visible_characters(daemon: Daemon, key: str) -> None:
    response = await ingest(daemon, [], headers={"Idempotency-Key": key})
    assert response.status_code == 400
    assert response.json()["errors"][0]["parameter"] == "Idempotency-Key"


async def test_ingest_knows_one_parameter_only(daemon: Daemon) -> None:
    for query in ("partal=true", "partial=1", "partial=true&partial=true"):
        response = await ingest(daemon, [], f"/v1/ingest?{query}")
        assert response.status_code == 400, query


async def test_a_user_token_does_not_ingest(daemon: Daemon) -> None:
    response = await daemon.call("POST", "/v1/ingest", daemon.admin, json=[])
    assert (response.status_code, response.json()["code"]) == (403, "key_required")


# ---------------------------------------------------------------- listing


async def test_pages_follow_each_other_to_the_end(daemon: Daemon) -> None:
    await ingest(daemon, [daemon.entry(message=str(n)) for n in range(25)])
    seen: list[str] = []
    page = await listed(daemon, limit=10)
    while True:
        seen += [entry["message"] for entry in page["logs"]]
        assert page["total"] == 25
        if page["nextCursor"] is None:
            break
        page = await listed(daemon, limit=10, cursor=page["nextCursor"])
    assert seen == [str(n) for n in reversed(range(25))]


async def test_later_entries_do_not_join_the_pages(daemon: Daemon) -> None:
    await ingest(daemon, [daemon.entry(message=str(n)) for n in range(4)])
    first = await listed(daemon, limit=2)
    await ingest(daemon, [daemon.entry(message="late")])
    second = await listed(daemon, limit=2, cursor=first["nextCursor"])
    assert [e["message"] for e in first["logs"] + second["logs"]] == ["3", "2", "1", "0"]
    assert second["total"] == 4


async def test_filters_narrow(daemon: Daemon) -> None:
    await ingest(
        daemon,
        [
            daemon.entry(level="INFO", message="alpha", timestamp="2026-01-01T00:00:00Z"),
            daemon.entry(level="ERROR", message="beta", timestamp="2026-01-02T00:00:00Z"),
            daemon.entry(level="ERROR", message="Alpha beta", timestamp="2026-01-03T00:00:00Z"),
        ],
    )

    async def messages(**query: Any) -> list[str]:
        return [entry["message"] for entry in (await listed(daemon, **query))["logs"]]

    assert await messages(level="ERROR") == ["Alpha beta", "beta"]
    assert await messages(search="ALPHA") == ["Alpha beta", "alpha"]
    assert await messages(search="alpha -beta") == ["alpha"]
    assert await messages(search="  ") == ["Alpha beta", "beta", "alpha"]
    assert await messages(**{"from": "2026-01-02", "to": "2026-01-03"}) == ["beta"]
    assert await messages(**{"from": "2026-01-02", "to": "2026-01-02"}) == []


async def test_an_offsets_unescaped_plus_is_understood(daemon: Daemon) -> None:
    await ingest(daemon, daemon.entry(timestamp="2026-01-01T00:00:00Z"))
    path = f"/v1/projects/{daemon.project}/logs"
    for offset in ("+02:00", "%2B02:00", "+0200", "%2B0200"):
        response = await daemon.call("GET", f"{path}?from=2026-01-01T02:00:00{offset}", daemon.key)
        assert response.json()["total"] == 1, offset
    response = await daemon.call("GET", f"{path}?to=2026-01-01T02:00:00+02:00", daemon.key)
    assert response.json()["total"] == 0


async def test_a_long_text_that_is_no_time_is_refused_without_ado(daemon: Daemon) -> None:
    """Whoever searched it for an offset everywhere would take minutes for these."""
    long = "0" * 30_000
    with trio.fail_after(60):
        for text in (long, f"{long} 00:00", f"2026-01-01T00:00:00.{long} 02:00"):
            for name in ("from", "to", "from", "to"):
                assert (await refused(daemon, **{name: text}))["code"] == "invalid_timestamp"


@pytest.mark.parametrize(
    ("query", "code", "parameter"),
    [
        ({"limit": "0"}, "invalid_limit", "limit"),
        ({"limit": "1001"}, "invalid_limit", "limit"),
        ({"limit": "-1"}, "invalid_limit", "limit"),
        ({"limit": "ten"}, "invalid_limit", "limit"),
        ({"limit": "\u0664"}, "invalid_limit", "limit"),
        ({"limit": ""}, "invalid_limit", "limit"),
        ({"level": "info"}, "invalid_level", "level"),
        ({"from": "yesterday"}, "invalid_timestamp", "from"),
        ({"to": "2026-13-01"}, "invalid_timestamp", "to"),
        ({"from": "2026-01-02", "to": "2026-01-01"}, "from_after_to", "from"),
    ],
)
async def test_a_bad_filter_names_its_parameter(
    daemon: Daemon, query: dict[str, str], code: str, parameter: str
) -> None:
    problem = await refused(daemon, **query)
    assert problem["code"] == code
    assert problem["errors"][0]["parameter"] == parameter


async def test_a_bad_search_says_where(daemon: Daemon) -> None:
    problem = await refused(daemon, search='abc "open')
    (error,) = problem["errors"]
    assert error["parameter"] == "search"
    assert error["position"] == 4


async def test_a_cursor_is_bound_to_its_filters(daemon: Daemon) -> None:
    await ingest(daemon, [daemon.entry()] * 3)
    cursor = (await listed(daemon, limit=1))["nextCursor"]
    problem = await refused(daemon, limit=1, cursor=cursor, level="INFO")
    assert problem["code"] == "cursor_mismatch"
    assert (await refused(daemon, cursor="nonsense"))["errors"][0]["parameter"] == "cursor"


async def test_unknown_and_repeated_parameters_are_named(daemon: Daemon) -> None:
    problem = await refused(daemon, levle="INFO", page="2")
    assert problem["code"] == "invalid_request"
    assert {error["parameter"] for error in problem["errors"]} == {"levle", "page"}
    problem = await refused(daemon, level=["INFO", "WARN"])
    assert problem["errors"][0]["code"] == "repeated"


async def test_stats_count_by_level(daemon: Daemon) -> None:
    levels = ["DEBUG", "INFO", "INFO", "WARN", "ERROR", "ERROR", "ERROR"]
    await ingest(daemon, [daemon.entry(level=level) for level in levels])
    path = f"/v1/projects/{daemon.project}/logs/stats"
    response = await daemon.call("GET", path, daemon.key)
    assert response.json() == {"DEBUG": 1, "INFO": 2, "WARN": 1, "ERROR": 3}
    assert (await daemon.call("GET", path + "?level=INFO", daemon.key)).status_code == 400


@pytest.mark.parametrize(
    "log_id",
    ["log_5d0f1b64-9a53-4c1e-8f6e-2f7d1c0a9b38", "nonsense", "log_", "%00", "a%2Fb"],
)
async def test_an_entry_that_is_not_there_is_404(daemon: Daemon, log_id: str) -> None:
    path = f"/v1/projects/{daemon.project}/logs/{log_id}"
    response = await daemon.call("GET", path, daemon.key)
    assert (response.status_code, response.json()["code"]) == (404, "no_such_entry")


async def test_an_id_may_be_written_in_upper_case(daemon: Daemon) -> None:
    await ingest(daemon, daemon.entry())
    path = f"/v1/projects/{daemon.project.upper()}/logs"
    assert (await daemon.call("GET", path, daemon.key)).json()["total"] == 1


# ---------------------------------------------------------------- life


async def test_what_was_acknowledged_is_there_after_a_restart(make_daemon: DaemonFactory) -> None:
    async with make_daemon() as daemon:
        body = [daemon.entry(message=str(n)) for n in range(5)]
        first = await ingest(daemon, body, headers={"Idempotency-Key": "k"})
        page = await listed(daemon, limit=2)
        project, key, data = daemon.project, daemon.key, daemon.data
    async with make_daemon(data=data) as daemon:
        assert daemon.project == project
        daemon.key = key
        rest = await listed(daemon, limit=10, cursor=page["nextCursor"])
        assert [entry["message"] for entry in rest["logs"]] == ["2", "1", "0"]
        again = await ingest(daemon, body, headers={"Idempotency-Key": "k"})
        assert again.json() == first.json()
        assert (await listed(daemon))["total"] == 5


async def test_a_deleted_project_leaves_no_files_and_its_key_no_access(daemon: Daemon) -> None:
    await ingest(daemon, [daemon.entry()])
    directory = daemon.data / "projects"
    assert [path.name for path in directory.iterdir()] == [daemon.project]
    path = f"/v1/orgs/{daemon.org}/projects/{daemon.project}"
    response = await daemon.call("DELETE", path, daemon.admin)
    assert (response.status_code, response.content) == (204, b"")
    assert list(directory.iterdir()) == []
    assert (await ingest(daemon, [daemon.entry()])).status_code == 401
    logs = f"/v1/projects/{daemon.project}/logs"
    assert (await daemon.call("GET", logs, daemon.admin)).status_code == 404


async def test_a_project_deleted_at_work_leaves_no_files(daemon: Daemon) -> None:
    """Neither do those who work on it see anything but that it is gone."""
    project = f"/v1/orgs/{daemon.org}/projects/{daemon.project}"
    logs = f"/v1/projects/{daemon.project}/logs"
    seen: set[int] = set()
    at_work = [trio.Event() for _ in range(6)]

    async def repeat(method: str, path: str, secret: str, began: trio.Event, **more: Any) -> None:
        status = 200
        while status == 200:
            status = (await daemon.call(method, path, secret, **more)).status_code
            seen.add(status)
            began.set()

    async with trio.open_nursery() as nursery:
        for began in at_work[:3]:
            entry = [daemon.entry()] * 50
            ingesting = partial(repeat, "POST", "/v1/ingest", daemon.key, began, json=entry)
            nursery.start_soon(ingesting)
        for began in at_work[3:]:
            nursery.start_soon(repeat, "GET", logs, daemon.admin, began)
        for began in at_work:
            await began.wait()
        for _ in range(2):
            nursery.start_soon(daemon.call, "DELETE", project, daemon.admin)
    # where all were in the queue when the project went, none has come back with the dead key
    later = await daemon.call("POST", "/v1/ingest", daemon.key, json=[daemon.entry()])
    assert later.status_code == 401
    assert seen | {401} == {200, 401, 404}
    assert list((daemon.data / "projects").iterdir()) == []


async def test_a_deleted_organisation_takes_its_projects_along(daemon: Daemon) -> None:
    await ingest(daemon, [daemon.entry()])
    response = await daemon.call("DELETE", f"/v1/orgs/{daemon.org}", daemon.admin)
    assert response.status_code == 204
    assert list((daemon.data / "projects").iterdir()) == []
    assert (await daemon.call("GET", "/v1/orgs/mine", daemon.admin)).json() == []
