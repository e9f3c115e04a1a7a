"""Organisations, projects, members, keys and people over HTTP."""

import threading
from typing import Any
from uuid import UUID, uuid4

import pytest
from live_daemon import Daemon

from logd.control.store import Control


async def ok(daemon: Daemon, method: str, path: str, body: Any = None, secret: str = "") -> Any:
    """The JSON of a success, None where it has no body."""
    response = await daemon.call(method, path, secret or daemon.admin, json=body)
    assert response.is_success, response.text
    return response.json() if response.content else None


async def problem(
    daemon: Daemon, method: str, path: str, body: Any = None, secret: str = ""
) -> tuple[int, str]:
    """(status, code)."""
    response = await daemon.call(method, path, secret or daemon.admin, json=body)
    assert response.headers["content-type"] == "application/problem+json", response.text
    return response.status_code, response.json()["code"]


def members_of(daemon: Daemon) -> str:
    return f"/v1/orgs/{daemon.org}/members"


def projects_of(daemon: Daemon) -> str:
    return f"/v1/orgs/{daemon.org}/projects"


def keys_of(daemon: Daemon) -> str:
    return f"/v1/projects/{daemon.project}/keys"


async def test_null_is_as_absent_for_some_fields_and_refused_for_the_others(
    daemon: Daemon,
) -> None:
    key = (await ok(daemon, "GET", keys_of(daemon)))[0]["id"]
    optional: list[tuple[str, dict[str, Any], str, bool]] = [
        (projects_of(daemon), {"name": "a"}, "color", True),
        (keys_of(daemon), {"name": "a"}, "expiresAt", True),
        ("/v1/me/tokens", {"name": "a"}, "expiresAt", True),
        ("/v1/users", {"email": "a@example.com"}, "name", True),
        (keys_of(daemon), {"name": "a"}, "scopes", False),
        ("/v1/users", {"email": "b@example.com"}, "serverAdmin", False),
        (f"{keys_of(daemon)}/{key}/rotate", {}, "overlapSeconds", False),
    ]
    for path, body, field, allowed in optional:
        response = await daemon.call("POST", path, daemon.admin, json=body | {field: None})
        assert response.is_success is allowed, field
        if not allowed:
            assert response.json()["errors"][0]["pointer"] == f"/{field}"


LISTS = {
    "keys_of": "/v1/projects/{project}/keys",
    "orgs_of": "/v1/orgs/mine",
    "members": "/v1/orgs/{org}/members",
    "projects_of": "/v1/orgs/{org}/projects",
    "assignees": "/v1/orgs/{org}/projects/{project}/members",
    "tokens_of": "/v1/me/tokens",
    "users": "/v1/users",
}


@pytest.mark.parametrize("method", list(LISTS))
async def test_a_list_is_made_in_a_thread(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """It may be long: nobody bounds how many keys there are."""
    made_by: list[int] = []
    make = getattr(Control, method)

    def noted(*args: Any, **more: Any) -> Any:
        made_by.append(threading.get_ident())
        return make(*args, **more)

    monkeypatch.setattr(Control, method, noted)
    path = LISTS[method].format(project=daemon.project, org=daemon.org)
    assert isinstance(await ok(daemon, "GET", path), list)
    assert len(made_by) == 1
    assert made_by != [threading.get_ident()]


# ---------------------------------------------------------------- organisations


async def test_an_organisation_lives_its_life(daemon: Daemon) -> None:
    response = await daemon.call(
        "POST", "/v1/orgs", daemon.admin, json={"name": "Beta", "slug": "beta"}
    )
    assert response.status_code == 201
    org = response.json()
    assert org == {"id": org["id"], "name": "Beta", "slug": "beta"}
    assert str(UUID(org["id"])) == org["id"]
    path = f"/v1/orgs/{org['id']}"
    assert await ok(daemon, "GET", path) == org
    mine = await ok(daemon, "GET", "/v1/orgs/mine")
    assert org | {"role": "admin"} in mine
    changed = await ok(daemon, "PUT", path, {"slug": "beta-2"})
    assert changed == org | {"slug": "beta-2"}
    assert await ok(daemon, "PUT", path, {}) == changed
    assert await ok(daemon, "DELETE", path) is None
    assert await problem(daemon, "GET", path) == (404, "no_such_organisation")


async def test_a_slug_is_taken_once_on_the_whole_server(daemon: Daemon) -> None:
    _, stranger = await daemon.user("stranger@example.com")
    taken = {"name": "Mine", "slug": "acme"}
    assert await problem(daemon, "POST", "/v1/orgs", taken, stranger) == (409, "slug_taken")
    other = await ok(daemon, "POST", "/v1/orgs", {"name": "B", "slug": "b"}, stranger)
    path = f"/v1/orgs/{other['id']}"
    assert await problem(daemon, "PUT", path, {"slug": "acme"}, stranger) == (409, "slug_taken")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "A"}, "/slug"),
        ({"slug": "a"}, "/name"),
        ({"name": 7, "slug": "a"}, "/name"),
        ({"name": None, "slug": "a"}, "/name"),
        ({"name": "A", "slug": "a", "nmae": "A"}, "/nmae"),
        ({"name": "A", "slug": "a", "a/b~": 1}, "/a~1b~0"),
        ({"name": "A", "slug": "a", "a`b`": 1}, "/a`b`"),
        ({"name": "", "slug": "a"}, "/name"),
        ({"name": "A", "slug": "not a slug"}, "/slug"),
        ([], ""),
        ("text", ""),
    ],
)
async def test_a_bad_body_names_the_field(daemon: Daemon, body: Any, pointer: str) -> None:
    response = await daemon.call("POST", "/v1/orgs", daemon.admin, json=body)
    assert response.status_code == 400
    said = response.json()
    assert said["code"] == "invalid_request"
    assert [error.get("pointer", "") for error in said["errors"]] == [pointer]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "malformed_json"),
        (b"{", "malformed_json"),
        (b'{"name": "\xff"}', "not_utf8"),
        (b'{"name": "\\ud800"}', "malformed_json"),
        (b"[" * 60_000, "invalid_request"),
    ],
)
async def test_a_body_that_is_no_json_is_400(daemon: Daemon, content: bytes, code: str) -> None:
    response = await daemon.call("POST", "/v1/orgs", daemon.admin, content=content)
    assert response.status_code == 400
    assert response.json()["code"] == code


async def test_a_control_body_is_small_json(daemon: Daemon) -> None:
    large = {"name": "x" * 70_000, "slug": "a"}
    assert await problem(daemon, "POST", "/v1/orgs", large) == (413, "body_too_large")
    response = await daemon.call(
        "POST",
        "/v1/orgs",
        daemon.admin,
        content=b'{"name":"A","slug":"a"}',
        headers={"Content-Type": "text/plain"},
    )
    assert response.status_code == 415


# ---------------------------------------------------------------- projects


async def test_a_project_lives_its_life(daemon: Daemon) -> None:
    response = await daemon.call("POST", projects_of(daemon), daemon.admin, json={"name": "Api"})
    assert response.status_code == 201
    created = response.json()
    assert set(created) == {"id", "orgId", "name", "color", "createdAt"}
    assert created["orgId"] == daemon.org
    assert len(created["color"]) == 7
    listed = await ok(daemon, "GET", projects_of(daemon))
    assert [project["name"] for project in listed] == ["Web shop", "Api"]
    assert listed[1] == created | {"updatedAt": listed[1]["updatedAt"]}
    assert listed[1]["updatedAt"].endswith("Z")
    path = f"{projects_of(daemon)}/{created['id']}"
    changed = await ok(daemon, "PUT", path, {"name": "API", "color": "#123456"})
    assert (changed["name"], changed["color"]) == ("API", "#123456")
    assert changed["updatedAt"] > created["createdAt"]
    assert await ok(daemon, "DELETE", path) is None
    assert len(await ok(daemon, "GET", projects_of(daemon))) == 1


async def test_a_colour_has_six_hexadecimal_digits(daemon: Daemon) -> None:
    for color in ("red", "#12345", "#1234567", "123456", "#12345g"):
        body = {"name": "A", "color": color}
        assert await problem(daemon, "POST", projects_of(daemon), body) == (400, "invalid_request")
    assert (await ok(daemon, "POST", projects_of(daemon), {"name": "A", "color": None}))["color"]


async def test_creating_where_there_is_no_organisation_is_404(daemon: Daemon) -> None:
    path = f"/v1/orgs/{uuid4()}/projects"
    assert await problem(daemon, "POST", path, {"name": "A"}) == (404, "no_such_organisation")


async def test_a_project_is_not_found_through_another_organisation(daemon: Daemon) -> None:
    other = await ok(daemon, "POST", "/v1/orgs", {"name": "B", "slug": "b"})
    path = f"/v1/orgs/{other['id']}/projects/{daemon.project}"
    for method, body in (("PUT", {"name": "stolen"}), ("DELETE", None)):
        assert await problem(daemon, method, path, body) == (404, "no_such_project")


@pytest.mark.parametrize("bad", ["nonsense", "..", "%00", "1" * 36, "x" * 5000])
async def test_an_id_that_is_none_is_404(daemon: Daemon, bad: str) -> None:
    assert (await problem(daemon, "GET", f"/v1/orgs/{bad}/projects"))[0] == 404
    assert (await problem(daemon, "GET", f"/v1/projects/{bad}/logs"))[0] == 404


# ---------------------------------------------------------------- members


async def test_members_come_change_and_go(daemon: Daemon) -> None:
    member_id, member = await daemon.user("grace@example.com")
    invitation = {"email": "GRACE@example.com", "role": "member"}
    response = await daemon.call("POST", members_of(daemon), daemon.admin, json=invitation)
    assert response.status_code == 201
    assert response.json()["userId"] == member_id
    assert await problem(daemon, "POST", members_of(daemon), invitation) == (409, "already_member")
    path = f"{members_of(daemon)}/{member_id}"
    assert (await ok(daemon, "PUT", path, {"role": "admin"}))["role"] == "admin"
    roles = {m["email"]: m["role"] for m in await ok(daemon, "GET", members_of(daemon))}
    assert roles == {"admin@example.com": "admin", "grace@example.com": "admin"}
    assert await ok(daemon, "DELETE", path) is None
    assert (await ok(daemon, "GET", "/v1/orgs/mine", secret=member)) == []


async def test_the_last_admin_stays(daemon: Daemon) -> None:
    path = f"{members_of(daemon)}/{daemon.admin_id}"
    assert await problem(daemon, "DELETE", path) == (409, "last_admin")
    assert await problem(daemon, "PUT", path, {"role": "member"}) == (409, "last_admin")


async def test_an_unknown_address_or_role_is_named(daemon: Daemon) -> None:
    for body, pointer in (
        ({"email": "nobody@example.com", "role": "member"}, "/email"),
        ({"email": "admin@example.com", "role": "owner"}, "/role"),
    ):
        response = await daemon.call("POST", members_of(daemon), daemon.admin, json=body)
        assert response.status_code == 400
        assert response.json()["errors"][0]["pointer"] == pointer


async def test_a_member_reads_what_is_assigned_to_him(daemon: Daemon) -> None:
    member_id, member = await daemon.user("grace@example.com")
    await ok(daemon, "POST", members_of(daemon), {"email": "grace@example.com", "role": "member"})
    logs = f"/v1/projects/{daemon.project}/logs"
    assert await ok(daemon, "GET", projects_of(daemon), secret=member) == []
    assert await problem(daemon, "GET", logs, secret=member) == (404, "no_such_project")
    assignees = f"{projects_of(daemon)}/{daemon.project}/members"
    assigned = await ok(daemon, "PUT", f"{assignees}/{member_id}")
    assert assigned == {"userId": member_id, "email": "grace@example.com", "name": "grace"}
    assert await ok(daemon, "GET", assignees) == [assigned]
    assert (await ok(daemon, "GET", logs, secret=member))["total"] == 0
    assert len(await ok(daemon, "GET", projects_of(daemon), secret=member)) == 1
    assert await problem(daemon, "GET", keys_of(daemon), secret=member) == (403, "admin_required")
    await ok(daemon, "DELETE", f"{assignees}/{member_id}")
    assert await problem(daemon, "GET", logs, secret=member) == (404, "no_such_project")


# ---------------------------------------------------------------- keys


async def test_a_keys_secret_is_shown_once(daemon: Daemon) -> None:
    response = await daemon.call("POST", keys_of(daemon), daemon.admin, json={"name": "shipper"})
    assert response.status_code == 201
    created = response.json()
    secret = created.pop("key")
    assert secret.startswith("ldk_")
    assert created["scopes"] == ["ingest", "read"]
    assert secret.startswith(created["prefix"])
    listed = await ok(daemon, "GET", keys_of(daemon))
    assert created in listed
    assert all("key" not in key for key in listed)
    assert response.headers["cache-control"] == "no-store"


async def test_scopes_are_kept_to(daemon: Daemon) -> None:
    logs = f"/v1/projects/{daemon.project}/logs"
    body = {"name": "ingest only", "scopes": ["ingest"]}
    key = (await ok(daemon, "POST", keys_of(daemon), body))["key"]
    await ok(daemon, "POST", "/v1/ingest", [], key)
    assert await problem(daemon, "GET", logs, secret=key) == (403, "scope_missing")
    for scopes in ([], ["write"], "ingest"):
        refused = await problem(daemon, "POST", keys_of(daemon), {"name": "x", "scopes": scopes})
        assert refused == (400, "invalid_request")


async def test_a_revoked_key_is_unknown_at_once(daemon: Daemon) -> None:
    key = await ok(daemon, "POST", keys_of(daemon), {"name": "short"})
    await ok(daemon, "POST", "/v1/ingest", [], key["key"])
    await ok(daemon, "DELETE", f"{keys_of(daemon)}/{key['id']}")
    refused = await problem(daemon, "POST", "/v1/ingest", [], key["key"])
    assert refused == (401, "credential_unknown")


async def test_a_rotated_key_has_a_new_secret(daemon: Daemon) -> None:
    key = await ok(daemon, "POST", keys_of(daemon), {"name": "rotating"})
    path = f"{keys_of(daemon)}/{key['id']}/rotate"
    second = await ok(daemon, "POST", path, {"overlapSeconds": 3600})
    assert second["id"] == key["id"]
    await ok(daemon, "POST", "/v1/ingest", [], key["key"])
    await ok(daemon, "POST", "/v1/ingest", [], second["key"])
    response = await daemon.call("POST", path, daemon.admin)
    assert response.status_code == 200, "a rotation needs no body"
    third = response.json()["key"]
    assert (await problem(daemon, "POST", "/v1/ingest", [], second["key"]))[0] == 401
    await ok(daemon, "POST", "/v1/ingest", [], third)


async def test_a_key_is_renamed_and_given_an_expiry(daemon: Daemon) -> None:
    key = await ok(daemon, "POST", keys_of(daemon), {"name": "a"})
    path = f"{keys_of(daemon)}/{key['id']}"
    expiry = {"expiresAt": "2999-01-01T00:00:00Z"}
    refused = await problem(daemon, "PATCH", path, expiry)
    assert refused == (400, "invalid_request"), "beyond what a timestamp can hold"
    changed = await ok(daemon, "PATCH", path, {"name": "b", "expiresAt": "2100-01-01"})
    assert (changed["name"], changed["expiresAt"]) == ("b", "2100-01-01T00:00:00.000Z")
    assert (await ok(daemon, "PATCH", path, {"name": "c"}))["expiresAt"] is not None
    assert (await ok(daemon, "PATCH", path, {"expiresAt": None}))["expiresAt"] is None


# ---------------------------------------------------------------- people


async def test_the_caller_sees_and_renames_himself(daemon: Daemon) -> None:
    me = await ok(daemon, "GET", "/v1/me")
    assert (me["id"], me["email"], me["serverAdmin"]) == (
        daemon.admin_id,
        "admin@example.com",
        True,
    )
    assert "passwordHash" not in me
    assert (await ok(daemon, "PUT", "/v1/me", {"name": "Ada"}))["name"] == "Ada"
    assert await problem(daemon, "PUT", "/v1/me", {"serverAdmin": False}) == (
        400,
        "invalid_request",
    )


async def test_tokens_come_and_go(daemon: Daemon) -> None:
    created = await ok(daemon, "POST", "/v1/me/tokens", {"name": "laptop"})
    secret = created.pop("token")
    assert secret.startswith("ldu_")
    assert (await ok(daemon, "GET", "/v1/me", secret=secret))["id"] == daemon.admin_id
    listed = await ok(daemon, "GET", "/v1/me/tokens")
    assert created["id"] in [token["id"] for token in listed]
    assert all("token" not in token for token in listed)
    await ok(daemon, "DELETE", f"/v1/me/tokens/{created['id']}")
    assert (await problem(daemon, "GET", "/v1/me", secret=secret))[0] == 401


async def test_the_server_admin_manages_users(daemon: Daemon) -> None:
    response = await daemon.call(
        "POST", "/v1/users", daemon.admin, json={"email": "new@example.com", "name": "New"}
    )
    assert response.status_code == 201
    user = response.json()
    assert await problem(daemon, "POST", "/v1/users", {"email": "NEW@example.com"}) == (
        409,
        "email_taken",
    )
    _, token = await daemon.user("new@example.com")
    path = f"/v1/users/{user['id']}"
    changed = await ok(daemon, "PUT", path, {"name": "Newer", "disabled": True})
    assert (changed["name"], changed["disabled"]) == ("Newer", True)
    assert (await problem(daemon, "GET", "/v1/me", secret=token))[0] == 401
    await ok(daemon, "PUT", path, {"disabled": False})
    assert len(await ok(daemon, "GET", "/v1/users")) == 2
    own = f"/v1/users/{daemon.admin_id}"
    assert await problem(daemon, "PUT", own, {"disabled": True}) == (409, "last_admin")
