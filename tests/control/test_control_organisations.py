from pathlib import Path

import pytest
from control_world import Office, World

from logd.control.errors import (
    AlreadyMember,
    Forbidden,
    InvalidField,
    LastAdmin,
    NotFound,
    SlugTaken,
)
from logd.control.mirror import read_contents
from logd.control.model import Role

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_any_user_may_create_an_organisation_and_becomes_its_admin(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        org = control.create_org(office.stranger.id, " Their Own ", "their-own")
        assert (org.name, org.slug) == ("Their Own", "their-own")
        assert control.orgs_of(office.stranger.id) == ((org, Role.ADMIN),)
        assert control.org(office.stranger.id, org.id) == org


def test_a_listing_holds_ones_own_organisations_oldest_first_with_the_role(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        world.pass_seconds(1)
        own = control.create_org(office.member.id, "Own", "own")
        mine = [(org.id, role) for org, role in control.orgs_of(office.member.id)]
        assert mine == [(office.org.id, Role.MEMBER), (own.id, Role.ADMIN)]
        assert control.orgs_of(office.root.id) == ()
        assert control.orgs_of(NOBODY) == ()


def test_a_slug_is_unique_on_the_server(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        with pytest.raises(SlugTaken):
            control.create_org(office.stranger.id, "Other", "acme")
        other = control.create_org(office.stranger.id, "Other", "other")
        with pytest.raises(SlugTaken):
            control.update_org(office.stranger.id, other.id, slug="acme")
        assert control.update_org(office.stranger.id, other.id, slug="other").slug == "other"
        control.update_org(office.stranger.id, other.id, slug="moved")
        control.update_org(office.admin.id, office.org.id, slug="other")


def test_a_slug_is_free_again_when_its_organisation_is_gone(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        control.delete_org(office.admin.id, office.org.id)
        assert control.create_org(office.stranger.id, "New", "acme").slug == "acme"


def test_an_update_changes_only_what_is_given(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        renamed = control.update_org(office.admin.id, office.org.id, name="Acme Inc")
        assert (renamed.name, renamed.slug) == ("Acme Inc", "acme")
        assert control.org(office.member.id, office.org.id) == renamed
        with pytest.raises(InvalidField):
            control.update_org(office.admin.id, office.org.id, slug="Not A Slug")


def test_who_may_see_and_change_an_organisation(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        org = office.org.id
        for user in (office.admin, office.member, office.root):
            assert control.org(user.id, org) == office.org
        with pytest.raises(NotFound):
            control.org(office.stranger.id, org)
        for user in (office.member, office.root):
            with pytest.raises(Forbidden):
                control.update_org(user.id, org, name="x")
            with pytest.raises(Forbidden):
                control.delete_org(user.id, org)
        with pytest.raises(NotFound):
            control.update_org(office.stranger.id, org, name="x")
        with pytest.raises(NotFound):
            control.delete_org(office.stranger.id, org)


@pytest.mark.parametrize("org_id", [NOBODY, "", "/", "a/b", "\udc80", "x" * 1000])
def test_what_is_no_organisation_is_not_found(world: World, org_id: str) -> None:
    with world.open() as control:
        office = Office(control)
        with pytest.raises(NotFound) as caught:
            control.org(office.root.id, org_id)
        assert caught.value.kind == "organisation"
        with pytest.raises(NotFound):
            control.members(office.root.id, org_id)
        with pytest.raises(NotFound):
            control.remove_member(office.admin.id, office.org.id, org_id)


def test_a_deleted_organisation_takes_everything_with_it(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        _, secret = office.key(control)
        assert set(control.delete_org(office.admin.id, office.org.id)) == {
            office.project.id,
            office.other.id,
        }
        assert control.authenticate(secret) is None
        assert control.orgs_of(office.admin.id) == control.orgs_of(office.member.id) == ()
        assert not control.project_exists(office.project.id)
        assert set(control.doomed_projects()) == {office.project.id, office.other.id}
        with pytest.raises(NotFound):
            control.org(office.root.id, office.org.id)
    with world.open() as control:
        assert control.project_ids() == ()
        assert len(control.doomed_projects()) == 2
    kinds = {key.partition("/")[0] for key in read_contents(world.mirror).records}
    assert kinds == {"user", "doomed"}


# ---- members


def test_members_are_listed_by_address_for_admins(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        expected = [("admin@example.org", Role.ADMIN), ("member@example.org", Role.MEMBER)]
        for user in (office.admin, office.root):
            listed = control.members(user.id, office.org.id)
            assert [(user.email, role) for user, role in listed] == expected
        with pytest.raises(Forbidden):
            control.members(office.member.id, office.org.id)
        with pytest.raises(NotFound):
            control.members(office.stranger.id, office.org.id)


def test_a_member_is_added_by_address(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        add = (office.admin.id, office.org.id)
        added = control.add_member(*add, "STRANGER@example.org", Role.MEMBER)
        assert added == (office.stranger, Role.MEMBER)
        assert control.org(office.stranger.id, office.org.id) == office.org
        with pytest.raises(AlreadyMember):
            control.add_member(*add, "stranger@example.org", Role.ADMIN)
        with pytest.raises(InvalidField) as caught:
            control.add_member(*add, "nobody@example.org", Role.MEMBER)
        assert (caught.value.field, caught.value.code) == ("email", "unknown")


def test_only_admins_and_server_admins_change_members(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        org = office.org.id
        with pytest.raises(Forbidden):
            control.add_member(office.member.id, org, "stranger@example.org", Role.ADMIN)
        with pytest.raises(Forbidden):
            control.update_member(office.member.id, org, office.member.id, Role.ADMIN)
        with pytest.raises(Forbidden):
            control.remove_member(office.member.id, org, office.admin.id)
        with pytest.raises(NotFound):
            control.add_member(office.stranger.id, org, "stranger@example.org", Role.ADMIN)
        with pytest.raises(NotFound):
            control.remove_member(office.stranger.id, org, office.stranger.id)
        control.add_member(office.root.id, org, "stranger@example.org", Role.ADMIN)
        assert control.orgs_of(office.stranger.id) == ((office.org, Role.ADMIN),)


def test_the_last_admin_can_neither_leave_nor_be_demoted(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        org, admin, member = office.org.id, office.admin.id, office.member.id
        for caller in (admin, office.root.id):
            with pytest.raises(LastAdmin):
                control.update_member(caller, org, admin, Role.MEMBER)
            with pytest.raises(LastAdmin):
                control.remove_member(caller, org, admin)
        control.update_member(admin, org, member, Role.ADMIN)
        control.update_member(member, org, admin, Role.MEMBER)
        with pytest.raises(LastAdmin):
            control.remove_member(member, org, member)
        assert control.orgs_of(admin) == ((office.org, Role.MEMBER),)


def test_members_may_leave_where_the_only_admin_is_disabled(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        org, member = office.org.id, office.member.id
        control.update_user(office.root.id, office.admin.id, disabled=True)
        control.update_member(office.root.id, org, member, Role.MEMBER)
        control.remove_member(member, org, member)
        assert control.orgs_of(member) == ()
        with pytest.raises(LastAdmin):
            control.remove_member(office.root.id, org, office.admin.id)
        with pytest.raises(LastAdmin):
            control.update_member(office.root.id, org, office.admin.id, Role.MEMBER)


def test_a_disabled_admin_does_not_count(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        control.update_member(office.admin.id, office.org.id, office.member.id, Role.ADMIN)
        control.update_user(office.root.id, office.member.id, disabled=True)
        with pytest.raises(LastAdmin):
            control.remove_member(office.admin.id, office.org.id, office.admin.id)


def test_a_member_may_leave_and_his_assignments_go_with_him(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        org, member = office.org.id, office.member.id
        control.remove_member(member, org, member)
        assert control.orgs_of(member) == ()
        with pytest.raises(NotFound):
            control.project(member, office.project.id)
        control.add_member(office.admin.id, org, "member@example.org", Role.MEMBER)
        assert control.projects_of(member, org) == ()


def test_leaving_one_organisation_keeps_the_assignments_of_another(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        member, stranger = office.member.id, office.stranger.id
        org = control.create_org(stranger, "Second", "second")
        project = control.create_project(stranger, org.id, "p")
        control.add_member(stranger, org.id, "member@example.org", Role.MEMBER)
        control.assign(stranger, project.id, member)
        control.remove_member(office.admin.id, office.org.id, member)
        assert control.projects_of(member, org.id) == (project,)


def test_a_role_can_be_given_again_and_a_stranger_has_none(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        org, admin = office.org.id, office.admin.id
        again = control.update_member(admin, org, office.member.id, Role.MEMBER)
        assert again == (office.member, Role.MEMBER)
        for user_id in (office.stranger.id, NOBODY):
            with pytest.raises(NotFound) as caught:
                control.update_member(admin, org, user_id, Role.MEMBER)
            assert caught.value.kind == "member"
            with pytest.raises(NotFound):
                control.remove_member(admin, org, user_id)
