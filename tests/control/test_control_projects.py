from pathlib import Path

import pytest
from control_world import START_NS, Office, World

from logd.control import fields
from logd.control.errors import Forbidden, InvalidField, NotFound
from logd.control.model import Role

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_project_is_created_with_what_was_given(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        project = control.create_project(office.admin.id, office.org.id, " api ", "#aBcDeF")
        assert (project.name, project.color, project.org_id) == ("api", "#aBcDeF", office.org.id)
        assert project.created_at_ns == project.updated_at_ns == START_NS
        assert control.find_project(project.id) == project
        assert project.id in control.project_ids()


def test_without_a_colour_the_organisation_gets_the_one_it_uses_least(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        admin, org = office.admin.id, office.org.id
        assert [office.project.color, office.other.color] == list(fields.PALETTE[:2])
        third = control.create_project(admin, org, "third", fields.PALETTE[2].lower())
        assert third.color == fields.PALETTE[2].lower()
        assert control.create_project(admin, org, "fourth").color == fields.PALETTE[3]
        control.delete_project(admin, office.project.id)
        assert control.create_project(admin, org, "fifth").color == fields.PALETTE[0]


def test_creating_without_permission_is_forbidden_also_to_a_stranger(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        for user in (office.member, office.stranger, office.root):
            with pytest.raises(Forbidden) as caught:
                control.create_project(user.id, office.org.id, "x")
            assert caught.value.reason == "admin_required"
            with pytest.raises(NotFound):
                control.create_project(user.id, NOBODY, "x")


def test_who_sees_which_projects(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        org = office.org.id
        for user in (office.admin, office.root):
            seen = control.projects_of(user.id, org)
            assert {project.id for project in seen} == {office.project.id, office.other.id}
        assert control.projects_of(office.member.id, org) == (office.project,)
        with pytest.raises(NotFound):
            control.projects_of(office.stranger.id, org)
        assert control.project(office.member.id, office.project.id) == office.project
        for user, project in (
            (office.member, office.other),
            (office.stranger, office.project),
        ):
            with pytest.raises(NotFound):
                control.project(user.id, project.id)


def test_who_may_change_a_project(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        for user in (office.member, office.root):
            with pytest.raises(Forbidden):
                control.update_project(user.id, office.project.id, name="x")
            with pytest.raises(Forbidden):
                control.delete_project(user.id, office.project.id)
            with pytest.raises(Forbidden):
                control.assign(user.id, office.project.id, office.member.id)
        for user, project in ((office.member, office.other), (office.stranger, office.project)):
            with pytest.raises(NotFound):
                control.update_project(user.id, project.id, name="x")
            with pytest.raises(NotFound):
                control.delete_project(user.id, project.id)


def test_an_update_changes_what_is_given_and_the_time_never_goes_back(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        admin, project = office.admin.id, office.project
        world.pass_seconds(60)
        renamed = control.update_project(admin, project.id, name="shop")
        assert (renamed.name, renamed.color) == ("shop", project.color)
        assert renamed.updated_at_ns == world.now_ns
        assert renamed.created_at_ns == project.created_at_ns
        world.pass_seconds(-3600)
        again = control.update_project(admin, project.id, color="#000000")
        assert (again.name, again.color) == ("shop", "#000000")
        assert again.updated_at_ns == renamed.updated_at_ns
        with pytest.raises(InvalidField):
            control.update_project(admin, project.id, color="red")


def test_a_project_is_found_only_in_its_own_organisation(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        admin, project = office.admin.id, office.project.id
        elsewhere = control.create_org(admin, "Second", "second").id
        assert control.project(admin, project, org_id=office.org.id) == office.project
        for attempt in (
            lambda: control.project(admin, project, org_id=elsewhere),
            lambda: control.update_project(admin, project, org_id=elsewhere, name="x"),
            lambda: control.delete_project(admin, project, org_id=elsewhere),
            lambda: control.assign(admin, project, admin, org_id=elsewhere),
            lambda: control.assignees(admin, project, org_id=elsewhere),
            lambda: control.unassign(admin, project, office.member.id, org_id=elsewhere),
        ):
            with pytest.raises(NotFound) as caught:
                attempt()
            assert caught.value.kind == "project"


def test_a_deleted_project_is_gone_at_once_and_its_logs_are_doomed(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        _, secret = office.key(control)
        control.delete_project(office.admin.id, office.project.id)
        assert not control.project_exists(office.project.id)
        assert control.authenticate(secret) is None
        assert control.projects_of(office.member.id, office.org.id) == ()
        assert control.doomed_projects() == (office.project.id,)
        with pytest.raises(NotFound):
            control.delete_project(office.admin.id, office.project.id)
    with world.open() as control:
        assert control.doomed_projects() == (office.project.id,)
        control.project_purged(office.project.id)
        assert control.doomed_projects() == ()
        with pytest.raises(NotFound):
            control.project_purged(office.project.id)
    with world.open() as control:
        assert control.doomed_projects() == ()


def test_members_are_assigned_and_unassigned(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        admin, member = office.admin.id, office.member.id
        assert control.assign(admin, office.other.id, member) == office.member
        assert control.assign(admin, office.other.id, member) == office.member
        assert control.assignees(admin, office.other.id) == (office.member,)
        assert control.assignees(office.root.id, office.other.id) == (office.member,)
        assert len(control.projects_of(member, office.org.id)) == 2
        with pytest.raises(Forbidden):
            control.assignees(member, office.other.id)
        control.unassign(admin, office.other.id, member)
        assert control.assignees(admin, office.other.id) == ()
        with pytest.raises(NotFound) as caught:
            control.unassign(admin, office.other.id, member)
        assert caught.value.kind == "assignment"


def test_only_members_can_be_assigned(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        for user_id in (office.stranger.id, office.root.id, NOBODY, "x/y"):
            with pytest.raises(NotFound) as caught:
                control.assign(office.admin.id, office.project.id, user_id)
            assert caught.value.kind == "member"


def test_an_admin_who_becomes_a_member_sees_what_he_is_assigned_to(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        org, admin, member = office.org.id, office.admin.id, office.member.id
        control.update_member(admin, org, member, Role.ADMIN)
        assert len(control.projects_of(member, org)) == 2
        control.update_member(admin, org, member, Role.MEMBER)
        assert control.projects_of(member, org) == (office.project,)
