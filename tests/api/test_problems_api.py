"""What every answer has, and what errors look like."""

import logging
from pathlib import Path

import pytest
from live_daemon import Daemon

import logd.errors
from logd.api import errors as wire
from logd.api.problems import TABLE, to_response, type_of
from logd.control import errors as control
from logd.daemon import bodies
from logd.errors import LogdError, Overloaded, StorageFailed, StorageFull

pytestmark = pytest.mark.both_doors


async def test_a_problem_has_all_members_of_rfc_9457(daemon: Daemon) -> None:
    response = await daemon.call("GET", "/v1/orgs/mine")
    assert response.status_code == 401
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["www-authenticate"] == "Bearer"
    problem = response.json()
    assert problem == {
        "type": "/problems/credential-missing",
        "title": "Credential missing",
        "status": 401,
        "detail": problem["detail"],
        "code": "credential_missing",
        "requestId": response.headers["x-request-id"],
    }


async def test_a_detail_names_the_field_as_it_is_on_the_wire(daemon: Daemon) -> None:
    body = {"name": "late", "expiresAt": "2001-01-01"}
    response = await daemon.call("POST", "/v1/me/tokens", daemon.admin, json=body)
    assert response.status_code == 400
    assert response.json()["detail"] == "expiresAt: must be in the future"
    assert response.json()["errors"][0]["pointer"] == "/expiresAt"


@pytest.mark.parametrize("sane", ["a", "A.b_c-9", "x" * 128])
async def test_a_sane_request_id_is_echoed(daemon: Daemon, sane: str) -> None:
    response = await daemon.call("GET", "/nowhere", headers={"X-Request-Id": sane})
    assert response.headers["x-request-id"] == sane
    assert response.json()["requestId"] == sane


@pytest.mark.parametrize("odd", ["", "a b", "x" * 129, "<script>", "a/b"])
async def test_an_odd_request_id_is_replaced(daemon: Daemon, odd: str) -> None:
    response = await daemon.call("GET", "/livez", headers={"X-Request-Id": odd})
    assert len(response.headers["x-request-id"]) == 32


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("Basic YTpi", "credential_missing"),
        ("Bearer", "credential_missing"),
        ("Bearer nonsense", "credential_unknown"),
        ("Bearer ldu_" + "A" * 49, "credential_unknown"),
        ("Bearer \xe9", "credential_unknown"),
        ("bearer " + "x" * 5000, "credential_unknown"),
    ],
)
async def test_a_bad_credential_is_401(daemon: Daemon, value: str, code: str) -> None:
    response = await daemon.http.get(
        "/v1/orgs/mine", headers=[(b"Authorization", value.encode("latin-1"))]
    )
    assert (response.status_code, response.json()["code"]) == (401, code)


async def test_the_scheme_is_case_insensitive(daemon: Daemon) -> None:
    headers = {"Authorization": f"bEaReR {daemon.admin}"}
    assert (await daemon.http.get("/v1/orgs/mine", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/livez", "GET, HEAD"),
        ("GET", "/v1/ingest", "POST"),
        ("PATCH", "/v1/orgs/mine", "GET, HEAD"),
        ("OPTIONS", "/v1/orgs", "POST"),
        ("POST", "/v1/orgs/0/projects/1", "DELETE, PUT"),
        ("BREW", "/v1/me", "GET, HEAD, PUT"),
    ],
)
async def test_another_method_is_405_with_allow(
    daemon: Daemon, method: str, path: str, allow: str
) -> None:
    response = await daemon.call(method, path, daemon.admin)
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
    assert response.headers["allow"] == allow


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/", "/v1/orgs/", "/v2/orgs/mine", "/metrics", "/v1/auth/login"]
)
async def test_an_unknown_path_is_404(daemon: Daemon, path: str) -> None:
    response = await daemon.call("GET", path, daemon.admin)
    assert (response.status_code, response.json()["code"]) == (404, "no_such_resource")


async def test_unknown_parameters_are_refused_on_any_route(daemon: Daemon) -> None:
    response = await daemon.call("GET", "/v1/orgs/mine?page=2", daemon.admin)
    assert response.status_code == 400
    assert response.json()["errors"][0]["parameter"] == "page"
    assert (await daemon.call("GET", "/livez?probe=1")).status_code == 200


async def test_head_is_served_as_get(daemon: Daemon) -> None:
    got = await daemon.call("GET", "/v1/orgs/mine", daemon.admin)
    headed = await daemon.call("HEAD", "/v1/orgs/mine", daemon.admin)
    assert headed.status_code == 200
    assert headed.headers["content-length"] == got.headers["content-length"]
    assert headed.content == b""


# ---------------------------------------------------------------- the table


NEVER_AN_ANSWER = {
    LogdError,
    wire.BadHead,  # is answered before there is a request
    logd.errors.Corruption,  # is a 500 like any defect: its text names a file
    logd.errors.DirectoryLocked,
    logd.errors.Unreadable,  # as Corruption, of which it is a kind
    logd.errors.UnsupportedFormat,
}


def test_every_error_has_its_row() -> None:
    kinds = {
        value
        for module in (wire, control, logd.errors)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, LogdError)
    }
    assert kinds - NEVER_AN_ANSWER <= set(TABLE)


@pytest.mark.parametrize(
    "error", [Overloaded("full", 7), StorageFull("/secret"), StorageFailed("/secret")]
)
def test_transient_faults_are_503_with_retry_after(error: LogdError) -> None:
    response = to_response(error, "id")
    assert response.status == 503
    assert int(dict(response.headers)["retry-after"]) > 0
    assert b"/secret" not in response.body


async def test_where_memory_is_short_the_client_is_to_come_again(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_args: object, **_more: object) -> None:
        raise MemoryError

    with monkeypatch.context() as short:
        short.setattr(bodies, "decode_fast", failing)
        refused = await daemon.call("POST", "/v1/ingest", daemon.key, json=[daemon.entry()])
    assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
    assert int(refused.headers["retry-after"]) > 0
    assert refused.json()["requestId"] in caplog.text
    stored = await daemon.call("POST", "/v1/ingest", daemon.key, json=[daemon.entry()])
    assert stored.status_code == 200


def test_an_overload_says_itself_when_to_come_back() -> None:
    assert dict(to_response(Overloaded("full", 7), "id").headers)["retry-after"] == "7"


def test_a_defect_is_logged_with_its_request_and_told_to_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        response = to_response(KeyError("/etc/secret"), "id-17")
    assert response.status == 500
    assert b"secret" not in response.body
    assert "id-17" in caplog.text
    assert "/etc/secret" in caplog.text


def test_damage_does_not_name_its_file() -> None:
    response = to_response(logd.errors.Corruption(Path("/data/x"), 7, "bad checksum"), "id")
    assert response.status == 500
    assert b"/data" not in response.body


def test_a_type_is_the_code_as_a_path() -> None:
    assert type_of("slug_taken") == "/problems/slug-taken"
