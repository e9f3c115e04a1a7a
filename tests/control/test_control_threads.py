"""Many threads at once: one winner, and readers that never see half a change."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from control_world import Office, World

from logd.control.errors import EmailTaken, LastAdmin, SlugTaken
from logd.control.model import Org, Role, User
from logd.control.store import Control
from logd.errors import LogdError, StorageFailed

THREADS = 8


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def race(attempt: Callable[[int], object]) -> list[object]:
    """What each of the threads got, that all start together: a result or a LogdError."""
    outcomes: list[object] = [None] * THREADS
    barrier = threading.Barrier(THREADS)

    def run(number: int) -> None:
        barrier.wait()
        try:
            outcomes[number] = attempt(number)
        except LogdError as error:
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def create_org(control: Control, user: User, slug: str, number: int) -> Org:
    return control.create_org(user.id, f"{number}", slug)


def test_of_threads_racing_for_one_slug_exactly_one_wins(world: World) -> None:
    with world.open() as control:
        user = control.ensure_user("ann@example.org")
        for round_ in range(5):
            slug = f"slug-{round_}"
            outcomes = race(partial(create_org, control, user, slug))
            assert sum(isinstance(outcome, SlugTaken) for outcome in outcomes) == THREADS - 1
        assert len(control.orgs_of(user.id)) == 5
    with world.open() as control:
        assert len(control.orgs_of(user.id)) == 5


def test_of_threads_racing_for_one_address_exactly_one_wins(world: World) -> None:
    with world.open() as control:
        root = control.ensure_user("root@example.org")
        outcomes = race(lambda n: control.create_user(root.id, "new@example.org", f"{n}"))
        assert sum(isinstance(outcome, EmailTaken) for outcome in outcomes) == THREADS - 1


def test_of_threads_racing_to_be_first_exactly_one_is_server_admin(world: World) -> None:
    with world.open() as control:
        race(lambda n: control.ensure_user(f"user{n}@example.org"))
        users = [control.user_by_email(f"user{n}@example.org") for n in range(THREADS)]
        assert [user is not None and user.server_admin for user in users].count(True) == 1


def test_of_admins_racing_to_leave_one_stays(world: World) -> None:
    with world.open() as control:
        first = control.ensure_user("root@example.org")
        org = control.create_org(first.id, "Acme", "acme")
        admins = [control.ensure_user(f"user{n}@example.org") for n in range(THREADS)]
        for admin in admins:
            control.add_member(first.id, org.id, admin.email, Role.ADMIN)
        control.remove_member(first.id, org.id, first.id)
        outcomes = race(lambda n: control.remove_member(admins[n].id, org.id, admins[n].id))
        assert sum(isinstance(outcome, LastAdmin) for outcome in outcomes) == 1
        assert len(control.members(first.id, org.id)) == 1


def test_readers_see_whole_states_while_others_write(world: World) -> None:
    with world.open() as control:
        office = Office(control)
        stop = threading.Event()
        seen: set[str] = set()

        def read() -> None:
            while not stop.is_set():
                for org, _ in control.orgs_of(office.admin.id):
                    for project in control.projects_of(office.admin.id, org.id):
                        assert project.org_id == org.id
                        seen.add(project.name)

        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(20):
            project = control.create_project(office.admin.id, office.org.id, "a")
            control.update_project(office.admin.id, project.id, name="b")
            control.delete_project(office.admin.id, project.id)
        stop.set()
        reader.join()
        assert {"web", "billing"} <= seen <= {"web", "billing", "a", "b"}


def test_after_closing_writes_are_refused(world: World) -> None:
    control = world.open()
    user = control.ensure_user("ann@example.org")
    assert control.close()
    assert control.close()
    with pytest.raises(StorageFailed):
        control.create_org(user.id, "x", "x")
