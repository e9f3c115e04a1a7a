from pathlib import Path

import pytest
from control_world import SECOND_NS, START_NS, Office, World

from logd.control.errors import Forbidden, InvalidField, NotFound
from logd.control.mirror import read_contents
from logd.control.model import KeyPrincipal, Scope
from logd.control.records import MAX_RETIRED

NOBODY = "00000000-0000-4000-8000-000000000000"
BOTH = (Scope.INGEST, Scope.READ)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_key_acts_for_its_project_with_its_scopes(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        key, secret = office.key(control)
        assert secret.startswith("ldk_")
        assert (key.prefix, key.scopes, key.expires_at_ns) == (secret[:12], BOTH, None)
        assert control.authenticate(secret) == KeyPrincipal(key.id, office.project.id, BOTH)
        reader, secret = control.create_key(
            office.admin.id, office.project.id, "reader", [Scope.READ]
        )
        assert reader.scopes == (Scope.READ,)
        principal = control.authenticate(secret)
        assert principal == KeyPrincipal(reader.id, office.project.id, (Scope.READ,))


def test_unknown_and_malformed_secrets_are_nobodys(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        _, secret = office.key(control)
        unknown = "ldk_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1abELp"
        for text in ("", secret[:-1], secret + " ", secret.swapcase(), unknown, "\udc80", "ä" * 53):
            assert control.authenticate(text) is None


def test_keys_are_listed_oldest_first_with_their_last_use(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        first, _ = office.key(control, "first")
        world.pass_seconds(1)
        second, secret = office.key(control, "second")
        world.pass_seconds(1)
        control.authenticate(secret)
        listed = control.keys_of(office.admin.id, office.project.id)
        assert [key.id for key in listed] == [first.id, second.id]
        assert [key.last_used_at_ns for key in listed] == [None, START_NS + 2 * SECOND_NS]
        found = control.key(office.admin.id, office.project.id, second.id)
        assert found == listed[1]
        assert control.keys_of(office.admin.id, office.other.id) == ()


def test_who_may_handle_keys(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        key, _ = office.key(control)
        project = office.project.id
        assert control.keys_of(office.root.id, project) == (key,)
        for user, expected in (
            (office.member, Forbidden),
            (office.root, Forbidden),
            (office.stranger, NotFound),
        ):
            for attempt in (
                lambda user=user: control.create_key(user.id, project, "x"),
                lambda user=user: control.update_key(user.id, project, key.id, name="x"),
                lambda user=user: control.revoke_key(user.id, project, key.id),
                lambda user=user: control.rotate_key(user.id, project, key.id),
            ):
                with pytest.raises(expected):
                    attempt()
        with pytest.raises(Forbidden):
            control.keys_of(office.member.id, project)
        with pytest.raises(Forbidden):
            control.key(office.member.id, project, key.id)
        with pytest.raises(NotFound):
            control.keys_of(office.stranger.id, project)


def test_a_key_is_found_only_in_its_own_project(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        key, secret = office.key(control)
        for project, key_id in ((office.other.id, key.id), (office.project.id, NOBODY)):
            for attempt in (
                lambda p=project, k=key_id: control.key(office.admin.id, p, k),
                lambda p=project, k=key_id: control.update_key(office.admin.id, p, k, name="x"),
                lambda p=project, k=key_id: control.revoke_key(office.admin.id, p, k),
                lambda p=project, k=key_id: control.rotate_key(office.admin.id, p, k),
            ):
                with pytest.raises(NotFound) as caught:
                    attempt()
                assert caught.value.kind == "key"
        assert control.authenticate(secret) is not None


def test_an_update_changes_what_is_given_and_acts_at_once(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        admin, project = office.admin.id, office.project.id
        key, secret = office.key(control)
        changed = control.update_key(admin, project, key.id, scopes=[Scope.READ])
        assert (changed.name, changed.scopes) == ("shipper", (Scope.READ,))
        assert control.authenticate(secret) == KeyPrincipal(key.id, project, (Scope.READ,))
        expiry = START_NS + SECOND_NS
        assert control.update_key(admin, project, key.id, expires_at_ns=expiry).expires_at_ns == (
            expiry
        )
        assert control.update_key(admin, project, key.id, name="new").expires_at_ns == expiry
        world.pass_seconds(1)
        assert control.authenticate(secret) is None
        control.update_key(admin, project, key.id, expires_at_ns=None)
        assert control.authenticate(secret) is not None
        for arguments in ({"name": ""}, {"scopes": ()}, {"expires_at_ns": world.now_ns}):
            with pytest.raises(InvalidField):
                control.update_key(admin, project, key.id, **arguments)


def test_a_revoked_key_is_refused_at_once_and_for_good(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        key, secret = office.key(control)
        _, newer = control.rotate_key(office.admin.id, office.project.id, key.id, 3600)
        assert control.authenticate(secret) is not None
        control.revoke_key(office.admin.id, office.project.id, key.id)
        assert control.authenticate(secret) is control.authenticate(newer) is None
        assert control.keys_of(office.admin.id, office.project.id) == ()
    with world.open() as control:
        assert control.authenticate(secret) is control.authenticate(newer) is None


def test_a_rotated_key_is_the_same_key_with_another_secret(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        key, old = office.key(control)
        rotated, new = control.rotate_key(office.admin.id, office.project.id, key.id)
        assert new != old
        assert (rotated.id, rotated.name, rotated.prefix) == (key.id, key.name, new[:12])
        assert control.authenticate(old) is None
        assert control.authenticate(new) == KeyPrincipal(key.id, office.project.id, BOTH)


def test_within_the_overlap_both_secrets_work(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        key, old = office.key(control)
        _, new = control.rotate_key(office.admin.id, office.project.id, key.id, 60)
        world.pass_seconds(59)
        assert control.authenticate(old) == control.authenticate(new)
    with world.open() as control:
        assert control.authenticate(old) is not None
        world.pass_seconds(1)
        assert control.authenticate(old) is None
        assert control.authenticate(new) is not None


def test_a_retired_secret_works_as_long_as_every_overlap_since_allows(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        target = (office.admin.id, office.project.id)
        key, first = office.key(control)
        _, second = control.rotate_key(*target, key.id, 50)
        _, third = control.rotate_key(*target, key.id, 100)
        _, fourth = control.rotate_key(*target, key.id, 70)
        works = []
        for seconds in (49, 1, 19, 1):
            world.pass_seconds(seconds)
            secrets = (first, second, third, fourth)
            works.append([control.authenticate(secret) is not None for secret in secrets])
        assert works == [
            [True, True, True, True],
            [False, True, True, True],
            [False, True, True, True],
            [False, False, False, True],
        ]


def test_without_an_overlap_all_secrets_so_far_end(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        target = (office.admin.id, office.project.id)
        key, first = office.key(control)
        _, second = control.rotate_key(*target, key.id, 3600)
        _, third = control.rotate_key(*target, key.id)
        assert control.authenticate(first) is control.authenticate(second) is None
        assert control.authenticate(third) is not None
    with world.open() as control:
        assert control.authenticate(first) is control.authenticate(second) is None
        assert control.authenticate(third) is not None


def test_a_key_has_a_bounded_number_of_secrets(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        key, secret = office.key(control)
        secrets = [secret]
        for _ in range(MAX_RETIRED + 3):
            _, secret = control.rotate_key(office.admin.id, office.project.id, key.id, 3600)
            secrets.append(secret)
        works = [control.authenticate(secret) is not None for secret in secrets]
        assert works == [False] * 3 + [True] * (MAX_RETIRED + 1)


def test_an_overlap_beyond_30_days_is_refused(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        key, _ = office.key(control)
        for seconds in (-1, 2_592_001):
            with pytest.raises(InvalidField):
                control.rotate_key(office.admin.id, office.project.id, key.id, seconds)


def test_expiry_ends_retired_secrets_too(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        target = (office.admin.id, office.project.id)
        key, old = control.create_key(*target, "k", BOTH, START_NS + 10 * SECOND_NS)
        _, new = control.rotate_key(*target, key.id, 3600)
        world.pass_seconds(10)
        assert control.authenticate(old) is control.authenticate(new) is None


# ---- the last use


def test_last_uses_are_written_at_most_once_a_minute(world: World) -> None:
    control = world.open()
    office = Office(control)
    key, secret = office.key(control)
    control.authenticate(secret)
    assert control.flush_last_used()
    first_use = world.now_ns
    world.pass_seconds(59)
    control.authenticate(secret)
    assert not control.flush_last_used()
    world.crash(control)
    with world.open() as control:
        found = control.key(office.admin.id, office.project.id, key.id)
        assert found.last_used_at_ns == first_use


def test_without_new_uses_nothing_is_written(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        _, secret = office.key(control)
        assert not control.flush_last_used()
        world.pass_seconds(60)
        control.authenticate(secret)
        assert control.flush_last_used()
        world.pass_seconds(60)
        assert not control.flush_last_used()


def test_a_clock_that_was_set_back_does_not_stop_the_writing(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        _, secret = office.key(control)
        control.flush_last_used()
        world.pass_seconds(-86_400)
        control.authenticate(secret)
        assert control.flush_last_used()


def test_a_clean_stop_writes_the_last_uses(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        key, secret = office.key(control)
        token, token_secret = control.issue_token(office.root.id, "cli")
        world.pass_seconds(7)
        control.authenticate(secret)
        control.authenticate(token_secret)
    with world.open() as control:
        found = control.key(office.admin.id, office.project.id, key.id)
        assert found.last_used_at_ns == START_NS + 7 * SECOND_NS
        assert control.tokens_of(office.root.id)[0].last_used_at_ns == START_NS + 7 * SECOND_NS
        control.revoke_key(office.admin.id, office.project.id, key.id)
        control.revoke_token(office.root.id, token.id)
    stored = read_contents(world.mirror).records
    assert not [key for key in stored if key.startswith("use/")]
