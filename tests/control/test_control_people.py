from pathlib import Path

import pytest
from control_world import SECOND_NS, START_NS, Office, World

from logd.control import passwords
from logd.control.errors import EmailTaken, Forbidden, InvalidField, LastAdmin, NotFound
from logd.control.model import UserPrincipal

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_first_user_is_server_admin_and_no_other(world: World) -> None:
    with world.open() as control:
        first = control.ensure_user("first.person@example.org")
        assert first.server_admin
        assert first.name == "first.person"
        assert first.created_at_ns == START_NS
        assert not control.ensure_user("second@example.org").server_admin


def test_a_user_that_exists_is_not_made_twice(world: World) -> None:
    with world.open() as control:
        user = control.ensure_user("Ann@Example.org")
        assert control.ensure_user("ann@example.ORG ") == user
        assert control.user_by_email("ANN@example.org") == user
        assert control.users(user.id) == (user,)


def test_a_server_admin_creates_users(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        made = control.create_user(office.root.id, "new@example.org", " New ", server_admin=True)
        assert (made.name, made.server_admin, made.disabled) == ("New", True, False)
        assert control.user(made.id) == made
        with pytest.raises(EmailTaken):
            control.create_user(made.id, "NEW@example.org")
        with pytest.raises(InvalidField):
            control.create_user(made.id, "not an address")


def test_only_a_server_admin_manages_users(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        with pytest.raises(Forbidden, match="server admin"):
            control.create_user(office.admin.id, "new@example.org")
        with pytest.raises(Forbidden, match="server admin"):
            control.users(office.admin.id)
        with pytest.raises(NotFound):
            control.update_user(office.admin.id, office.member.id, name="x")
        with pytest.raises(NotFound):
            control.update_user(office.admin.id, NOBODY, name="x")


def test_a_user_changes_his_own_name_and_nothing_else_of_himself(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        member = office.member.id
        assert control.update_user(member, member, name="Mia").name == "Mia"
        with pytest.raises(Forbidden):
            control.update_user(member, member, email="other@example.org")
        with pytest.raises(Forbidden):
            control.update_user(member, member, server_admin=True)
        with pytest.raises(Forbidden):
            control.update_user(member, member, disabled=False)
        assert control.user(member).email == "member@example.org"


def test_an_address_can_be_changed_to_a_free_one(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        root, member = office.root.id, office.member.id
        with pytest.raises(EmailTaken):
            control.update_user(root, member, email="ADMIN@example.org")
        control.update_user(root, member, email="mia@example.org")
        assert control.user_by_email("member@example.org") is None
        assert control.user_by_email("mia@example.org") == control.user(member)
        assert control.update_user(root, member, email="Mia@example.org").email == "Mia@example.org"


def test_the_last_server_admin_cannot_give_up(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        root, admin = office.root.id, office.admin.id
        with pytest.raises(LastAdmin):
            control.update_user(root, root, disabled=True)
        with pytest.raises(LastAdmin):
            control.update_user(root, root, server_admin=False)
        control.update_user(root, admin, server_admin=True)
        control.update_user(root, root, server_admin=False)
        with pytest.raises(Forbidden):
            control.users(root)


def test_a_disabled_user_is_refused_everything(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        member = office.member.id
        _, secret = control.issue_token(member, "cli")
        control.set_password(member, member, "correct horse")
        control.update_user(office.root.id, member, disabled=True)
        assert control.authenticate(secret) is None
        assert control.verify_password("member@example.org", "correct horse") is None
        for attempt in (
            lambda: control.create_org(member, "x", "x"),
            lambda: control.org(member, office.org.id),
            lambda: control.issue_token(member, "again"),
            lambda: control.may_read_logs(UserPrincipal(member, False), office.project.id),
        ):
            with pytest.raises(Forbidden) as caught:
                attempt()
            assert caught.value.reason == "user_disabled"
        control.update_user(office.root.id, member, disabled=False)
        assert control.authenticate(secret) == UserPrincipal(member, False)


def test_passwords_are_kept_as_argon2id_with_19_mib(world: World) -> None:
    with world.open() as control:
        user = control.ensure_user("ann@example.org")
        assert control.verify_password("ann@example.org", "anything") is None
        user = control.set_password(user.id, user.id, "correct horse")
        assert user.password_hash is not None
        assert user.password_hash.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
        assert user.password_hash not in repr(user)
        assert control.verify_password("ANN@example.org", "correct horse") == user
        assert control.verify_password("ann@example.org", "correct hors") is None
        assert control.verify_password("nobody@example.org", "correct horse") is None
    with world.open() as control:
        assert control.verify_password("ann@example.org", "correct horse") == user


def test_a_password_may_be_set_by_a_server_admin_but_by_no_other(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        control.set_password(office.root.id, office.member.id, "given by root")
        assert control.verify_password("member@example.org", "given by root") is not None
        with pytest.raises(NotFound):
            control.set_password(office.admin.id, office.member.id, "given by admin")


@pytest.mark.parametrize(
    ("password", "code"),
    [("seven77", "too_short"), ("x" * 257, "too_long"), ("\ud800" * 8, "bad_format")],
)
def test_a_bad_password_is_refused(world: World, password: str, code: str) -> None:
    with world.open() as control:
        user = control.ensure_user("ann@example.org")
        with pytest.raises(InvalidField) as caught:
            control.set_password(user.id, user.id, password)
        assert (caught.value.field, caught.value.code) == ("password", code)
        assert control.verify_password("ann@example.org", password) is None


def test_the_same_password_typed_on_another_keyboard_is_the_same(world: World) -> None:
    with world.open() as control:
        user = control.ensure_user("ann@example.org")
        control.set_password(user.id, user.id, "pässword")
        assert control.verify_password("ann@example.org", "pa\u0308ssword") is not None


def test_nobodys_hash_costs_the_same_work_and_matches_nothing() -> None:
    parameters = passwords.NOBODYS_HASH.split("$")[:4]
    real = passwords.hash_password("correct horse", lambda size: bytes(size))
    assert parameters == real.split("$")[:4]
    assert [len(part) for part in real.split("$")] == [
        len(part) for part in passwords.NOBODYS_HASH.split("$")
    ]
    assert not passwords.matches(None, "correct horse")
    assert not passwords.matches(None, "")


# ---- personal access tokens


def test_a_token_acts_as_its_user(world: World) -> None:
    with world.open() as control:
        user = control.ensure_user("ann@example.org")
        token, secret = control.issue_token(user.id, "laptop")
        assert secret.startswith("ldu_")
        assert token.prefix == secret[:12]
        assert token.user_id == user.id
        assert control.authenticate(secret) == UserPrincipal(user.id, server_admin=True)


def test_tokens_are_listed_oldest_first_with_their_last_use(world: World) -> None:
    with world.open() as control:
        user = control.ensure_user("ann@example.org")
        first, _ = control.issue_token(user.id, "first")
        world.pass_seconds(5)
        second, secret = control.issue_token(user.id, "second")
        world.pass_seconds(5)
        control.authenticate(secret)
        listed = control.tokens_of(user.id)
        assert [token.id for token in listed] == [first.id, second.id]
        assert [token.last_used_at_ns for token in listed] == [None, START_NS + 10 * SECOND_NS]
        assert control.tokens_of(NOBODY) == ()


def test_a_revoked_token_is_refused_at_once_and_for_good(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        token, secret = control.issue_token(office.member.id, "laptop")
        with pytest.raises(NotFound):
            control.revoke_token(office.admin.id, token.id)
        assert control.authenticate(secret) is not None
        control.revoke_token(office.member.id, token.id)
        assert control.authenticate(secret) is None
        with pytest.raises(NotFound):
            control.revoke_token(office.member.id, token.id)
    with world.open() as control:
        assert control.authenticate(secret) is None


def test_a_token_expires_at_its_instant(world: World) -> None:
    with world.open() as control:
        user = control.ensure_user("ann@example.org")
        _, secret = control.issue_token(user.id, "short", START_NS + 10 * SECOND_NS)
        world.now_ns = START_NS + 10 * SECOND_NS - 1
        assert control.authenticate(secret) is not None
        world.now_ns += 1
        assert control.authenticate(secret) is None
        with pytest.raises(InvalidField):
            control.issue_token(user.id, "past", world.now_ns)
