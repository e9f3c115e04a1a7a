"""Every route x every kind of caller. A route that is missing here fails."""

from dataclasses import dataclass
from typing import Any, Final

import pytest
from live_daemon import Daemon

from logd.api.routes import ROUTES
from logd.api.routing import Access, Route

pytestmark = pytest.mark.both_doors

GARBAGE: Final = "ldk_" + "A" * 49


@dataclass(frozen=True)
class Case:
    """What each caller gets. `body`: a valid one."""

    stranger: int
    unassigned: int
    admin: int
    body: Any = None
    own_key: int = 403
    other_key: int = 403
    narrow_key: int = 403


ORG_READ: Final = Case(stranger=404, unassigned=200, admin=200)
ORG_ADMIN: Final = Case(stranger=404, unassigned=403, admin=200)
PROJECT_READ: Final = Case(
    stranger=404, unassigned=404, admin=200, own_key=200, other_key=403, narrow_key=403
)
PROJECT_ADMIN: Final = Case(stranger=404, unassigned=404, admin=200)
OWN: Final = Case(stranger=200, unassigned=200, admin=200)
SERVER: Final = Case(stranger=403, unassigned=403, admin=200)


def case(like: Case, admin: int | None = None, body: Any = None, **other: int) -> Case:
    values = {name: getattr(like, name) for name in Case.__dataclass_fields__}
    return Case(**(values | {"admin": admin or like.admin, "body": body} | other))


MATRIX: Final[dict[str, Case | None]] = {
    # open to everybody: no credential is looked at
    "GET /livez": None,
    "GET /readyz": None,
    "GET /v1/openapi.json": None,
    # organisations
    "GET /v1/orgs/mine": OWN,
    "POST /v1/orgs": case(
        OWN, 201, {"name": "New", "slug": "{fresh}"}, stranger=201, unassigned=201
    ),
    "GET /v1/orgs/{orgId}": ORG_READ,
    "PUT /v1/orgs/{orgId}": case(ORG_ADMIN, body={"name": "Renamed"}),
    "DELETE /v1/orgs/{orgId}": case(ORG_ADMIN, 204),
    "GET /v1/orgs/{orgId}/members": ORG_ADMIN,
    "POST /v1/orgs/{orgId}/members": case(
        ORG_ADMIN, 201, {"email": "stranger@example.com", "role": "member"}
    ),
    "PUT /v1/orgs/{orgId}/members/{userId}": case(ORG_ADMIN, body={"role": "admin"}),
    "DELETE /v1/orgs/{orgId}/members/{userId}": case(ORG_ADMIN, 204, unassigned=204),  # leaves
    # projects
    "GET /v1/orgs/{orgId}/projects": ORG_READ,
    "POST /v1/orgs/{orgId}/projects": case(ORG_ADMIN, 201, {"name": "Another"}, stranger=403),
    "PUT /v1/orgs/{orgId}/projects/{projectId}": case(PROJECT_ADMIN, body={"name": "Renamed"}),
    "DELETE /v1/orgs/{orgId}/projects/{projectId}": case(PROJECT_ADMIN, 204),
    "GET /v1/orgs/{orgId}/projects/{projectId}/members": PROJECT_ADMIN,
    "PUT /v1/orgs/{orgId}/projects/{projectId}/members/{userId}": PROJECT_ADMIN,
    "DELETE /v1/orgs/{orgId}/projects/{projectId}/members/{userId}": case(PROJECT_ADMIN, 204),
    # API keys
    "GET /v1/projects/{projectId}/keys": PROJECT_ADMIN,
    "POST /v1/projects/{projectId}/keys": case(PROJECT_ADMIN, 201, {"name": "new"}),
    "PATCH /v1/projects/{projectId}/keys/{keyId}": case(PROJECT_ADMIN, body={"name": "renamed"}),
    "DELETE /v1/projects/{projectId}/keys/{keyId}": case(PROJECT_ADMIN, 204),
    "POST /v1/projects/{projectId}/keys/{keyId}/rotate": case(PROJECT_ADMIN, body={}),
    # people
    "GET /v1/me": OWN,
    "PUT /v1/me": case(OWN, body={"name": "Renamed"}),
    "GET /v1/me/tokens": OWN,
    "POST /v1/me/tokens": case(OWN, 201, {"name": "new"}, stranger=201, unassigned=201),
    "DELETE /v1/me/tokens/{tokenId}": case(OWN, 204, stranger=404, unassigned=404),
    "GET /v1/users": SERVER,
    "POST /v1/users": case(SERVER, 201, {"email": "new@example.com"}),
    "PUT /v1/users/{userId}": case(SERVER, body={"disabled": True}, stranger=404),
    # logs
    "POST /v1/ingest": Case(
        stranger=403,
        unassigned=403,
        admin=403,
        body="{entry}",
        own_key=200,
        other_key=403,  # the entry names a project that is not the key's
        narrow_key=403,
    ),
    "GET /v1/projects/{projectId}/logs": PROJECT_READ,
    "GET /v1/projects/{projectId}/logs/stats": PROJECT_READ,
    "GET /v1/projects/{projectId}/logs/{logId}": PROJECT_READ,
}


@dataclass
class World:
    """`ids`: what the path parameters stand for, all of the admin's organisation; `secrets`: the
    callers' credentials."""

    daemon: Daemon
    ids: dict[str, str]
    secrets: dict[str, str | None]


@pytest.fixture
async def world(daemon: Daemon) -> World:
    """The member of no project is `userId`, and the admin's second token `tokenId`."""
    _, stranger = await daemon.user("stranger@example.com")
    member_id, member = await daemon.user("member@example.com")
    members = f"/v1/orgs/{daemon.org}/members"
    projects = f"/v1/orgs/{daemon.org}/projects"
    keys = f"/v1/projects/{daemon.project}/keys"
    disabled_id, disabled = await daemon.user("disabled@example.com")
    users = f"/v1/users/{disabled_id}"
    assert (await daemon.call("PUT", users, daemon.admin, json={"disabled": True})).is_success
    await _made(daemon, members, {"email": "member@example.com", "role": "member"})
    other = await _made(daemon, projects, {"name": "Other"})
    other_key = await _made(daemon, f"/v1/projects/{other['id']}/keys", {"name": "other"})
    victim = await _made(daemon, keys, {"name": "victim"})
    token = await _made(daemon, "/v1/me/tokens", {"name": "victim"})
    ingested = await daemon.call("POST", "/v1/ingest", daemon.key, json=daemon.entry())
    return World(
        daemon,
        {
            "orgId": daemon.org,
            "projectId": daemon.project,
            "userId": member_id,
            "keyId": victim["id"],
            "tokenId": token["id"],
            "logId": ingested.json()["ids"][0],
        },
        {
            "anonymous": None,
            "garbage": GARBAGE,
            "disabled": disabled,
            "own_key": daemon.key,
            "other_key": other_key["key"],
            "stranger": stranger,
            "unassigned": member,
            "admin": daemon.admin,
        },
    )


async def _made(daemon: Daemon, path: str, body: dict[str, Any]) -> Any:
    response = await daemon.call("POST", path, daemon.admin, json=body)
    assert response.status_code == 201, response.text
    return response.json()


async def _status(world: World, route: Route, caller: str, body: Any) -> tuple[int, str]:
    path = route.template.format(**world.ids)
    more: dict[str, Any] = {}
    if body == "{entry}":
        more["json"] = world.daemon.entry()
    elif body is not None:
        more["json"] = {
            name: f"slug-{caller}" if value == "{fresh}" else value for name, value in body.items()
        }
    response = await world.daemon.call(route.method, path, world.secrets[caller], **more)
    return response.status_code, response.text


def test_every_route_is_in_the_matrix() -> None:
    assert sorted(MATRIX) == sorted(route.name for route in ROUTES)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
async def test_each_caller_gets_what_is_his(world: World, route: Route) -> None:
    expected = MATRIX[route.name]
    if expected is None:
        assert route.access is Access.OPEN
        for caller in world.secrets:
            assert (await _status(world, route, caller, None))[0] == 200
        return
    for caller in ("anonymous", "garbage", "disabled"):
        status, text = await _status(world, route, caller, expected.body)
        assert status == 401, text
    await _narrow_key(world, route, expected)
    # the admin comes last: he may delete what the others ask for
    for caller in ("own_key", "other_key", "stranger", "unassigned", "admin"):
        if caller == "admin":
            await _restore_member(world)
        status, text = await _status(world, route, caller, expected.body)
        assert status == getattr(expected, caller), f"{caller}: {text}"


async def _restore_member(world: World) -> None:
    """He may have left; and the project must be his to be taken from him."""
    daemon = world.daemon
    members = f"/v1/orgs/{daemon.org}/members"
    invitation = {"email": "member@example.com", "role": "member"}
    assert (await daemon.call("POST", members, daemon.admin, json=invitation)).status_code < 500
    project = f"/v1/orgs/{daemon.org}/projects/{daemon.project}"
    assignment = f"{project}/members/{world.ids['userId']}"
    assert (await daemon.call("PUT", assignment, daemon.admin)).status_code == 200


async def _narrow_key(world: World, route: Route, expected: Case) -> None:
    """A key of the project that has every scope but the one needed."""
    scope = "ingest" if route.access is Access.READ else "read"
    key = await _made(
        world.daemon,
        f"/v1/projects/{world.daemon.project}/keys",
        {"name": "narrow", "scopes": [scope]},
    )
    world.secrets["narrow_key"] = key["key"]
    status, text = await _status(world, route, "narrow_key", expected.body)
    assert status == expected.narrow_key, text
