"""The data plane's rules: every kind of caller on every kind of path."""

from pathlib import Path

import pytest
from control_world import Office, World

from logd.control.errors import Forbidden, NotFound
from logd.control.model import KeyPrincipal, Principal, Scope, UserPrincipal
from logd.control.store import Control

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def outcome(control: Control, operation: str, principal: Principal, project_id: str) -> str:
    try:
        project = getattr(control, operation)(principal, project_id)
    except Forbidden as forbidden:
        return forbidden.reason
    except NotFound as not_found:
        return f"no {not_found.kind}"
    assert project.id == project_id
    return "ok"


CALLERS = ["ingest key", "read key", "other key", "admin", "member", "root", "stranger", "disabled"]

EXPECTED = {
    "may_ingest": {
        "ingest key": "ok",
        "read key": "scope_missing",
        "other key": "wrong_project",
        "admin": "key_required",
        "member": "key_required",
        "root": "key_required",
        "stranger": "key_required",
        "disabled": "key_required",
    },
    "may_read_logs": {
        "ingest key": "scope_missing",
        "read key": "ok",
        "other key": "wrong_project",
        "admin": "ok",
        "member": "ok",
        "root": "ok",
        "stranger": "no project",
        "disabled": "user_disabled",
    },
    "may_read_project": {
        "ingest key": "user_required",
        "read key": "user_required",
        "other key": "user_required",
        "admin": "ok",
        "member": "ok",
        "root": "ok",
        "stranger": "no project",
        "disabled": "user_disabled",
    },
    "may_manage_project": {
        "ingest key": "user_required",
        "read key": "user_required",
        "other key": "user_required",
        "admin": "ok",
        "member": "admin_required",
        "root": "admin_required",
        "stranger": "no project",
        "disabled": "user_disabled",
    },
}


def callers(control: Control, office: Office) -> dict[str, Principal]:
    project, other = office.project.id, office.other.id
    disabled = control.ensure_user("disabled@example.org")
    control.update_user(office.root.id, disabled.id, disabled=True)

    def with_key(project_id: str, scopes: list[Scope]) -> Principal:
        _, secret = control.create_key(office.admin.id, project_id, "key", scopes)
        principal = control.authenticate(secret)
        assert isinstance(principal, KeyPrincipal)
        return principal

    return {
        "ingest key": with_key(project, [Scope.INGEST]),
        "read key": with_key(project, [Scope.READ]),
        "other key": with_key(other, [Scope.INGEST, Scope.READ]),
        "admin": UserPrincipal(office.admin.id, False),
        "member": UserPrincipal(office.member.id, False),
        "root": UserPrincipal(office.root.id, True),
        "stranger": UserPrincipal(office.stranger.id, False),
        "disabled": UserPrincipal(disabled.id, False),
    }


@pytest.mark.parametrize("operation", EXPECTED)
def test_who_may_do_what_with_a_project(world: World, operation: str) -> None:
    with world.open() as control:
        office = Office(control)
        found = {
            name: outcome(control, operation, principal, office.project.id)
            for name, principal in callers(control, office).items()
        }
    assert found == EXPECTED[operation]


@pytest.mark.parametrize("project_id", [NOBODY, "", "x/y", "\udc80"])
def test_a_project_that_is_not_there(world: World, project_id: str) -> None:
    """A key learns nothing about other projects: it is refused whether they exist or not."""
    with world.open() as control:
        office = Office(control)
        who = callers(control, office)
        for name, expected in (
            ("read key", "wrong_project"),
            ("root", "no project"),
            ("member", "no project"),
        ):
            assert outcome(control, "may_read_logs", who[name], project_id) == expected
        assert outcome(control, "may_ingest", who["ingest key"], project_id) == "wrong_project"
        assert not control.project_exists(project_id)
        assert control.find_project(project_id) is None


def test_an_unassigned_member_does_not_see_the_logs(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        member = UserPrincipal(office.member.id, False)
        assert outcome(control, "may_read_logs", member, office.other.id) == "no project"
        assert outcome(control, "may_manage_project", member, office.other.id) == "no project"


def test_a_key_of_a_project_deleted_since_finds_no_project(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        _, secret = office.key(control)
        principal = control.authenticate(secret)
        assert principal is not None
        control.delete_project(office.admin.id, office.project.id)
        assert outcome(control, "may_ingest", principal, office.project.id) == "no project"
        assert outcome(control, "may_read_logs", principal, office.project.id) == "no project"


def test_rights_come_from_the_state_and_not_from_the_credential(world: World) -> None:
    """A principal may be older than the loss of the rights it was given with."""
    with world.open() as control:
        office = Office(control)
        stale = UserPrincipal(office.stranger.id, server_admin=True)
        assert outcome(control, "may_read_logs", stale, office.project.id) == "no project"


def test_a_person_is_told_from_a_machine(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        who = callers(control, office)
        assert control.user_of(who["member"]) == office.member.id
        with pytest.raises(Forbidden) as caught:
            control.user_of(who["read key"])
        assert caught.value.reason == "user_required"
