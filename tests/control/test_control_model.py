"""The control data against plain dictionaries, with stops, crashes and damage in between."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field

from control_world import World, memory_directory
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from logd.control.errors import (
    AlreadyMember,
    Forbidden,
    InvalidField,
    LastAdmin,
    NotFound,
    SlugTaken,
)
from logd.control.model import KeyPrincipal, Role, Scope
from logd.control.records import MAX_RETIRED
from logd.errors import LogdError

PEOPLE = ["root", "ann", "bob", "cyn"]
people = st.sampled_from(PEOPLE)
slugs = st.sampled_from(["a", "b", "c"])
roles = st.sampled_from(Role)


@dataclass
class OrgModel:
    slug: str
    roles: dict[str, Role]
    projects: dict[str, "ProjectModel"] = field(default_factory=dict)


@dataclass
class ProjectModel:
    assigned: set[str] = field(default_factory=set)
    keys: dict[str, tuple[list[str], tuple[Scope, ...]]] = field(default_factory=dict)
    """Of each key: the secrets that work, the newest last, and the scopes."""


class ControlMachine(RuleBasedStateMachine):
    """Every rule says beforehand, from the model, what the store must answer."""

    orgs = Bundle("orgs")
    projects = Bundle("projects")
    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.root = memory_directory()
        self.world = World(self.root)
        self.control = self.world.open()
        self.ids = {name: self.control.ensure_user(f"{name}@x.org").id for name in PEOPLE}
        self.model: dict[str, OrgModel] = {}
        self.dead_secrets: set[str] = set()
        self.doomed: set[str] = set()

    def teardown(self) -> None:
        self.control.close()
        shutil.rmtree(self.root)

    # ---- organisations

    @rule(target=orgs, who=people, slug=slugs)
    def create_org(self, who: str, slug: str) -> str:
        if any(org.slug == slug for org in self.model.values()):
            self.refused(SlugTaken, lambda: self.control.create_org(self.ids[who], "n", slug))
            return "no such organisation"
        org = self.control.create_org(self.ids[who], "n", slug)
        self.model[org.id] = OrgModel(slug, {who: Role.ADMIN})
        return org.id

    @rule(org=orgs, who=people, slug=slugs)
    def change_slug(self, org: str, who: str, slug: str) -> None:
        def attempt() -> object:
            return self.control.update_org(self.ids[who], org, slug=slug)

        error = self.org_error(org, who)
        if error is None and any(o.slug == slug for i, o in self.model.items() if i != org):
            error = SlugTaken
        if error is not None:
            self.refused(error, attempt)
            return
        attempt()
        self.model[org].slug = slug

    @rule(org=orgs, who=people)
    def delete_org(self, org: str, who: str) -> None:
        error = self.org_error(org, who)
        if error is not None:
            self.refused(error, lambda: self.control.delete_org(self.ids[who], org))
            return
        projects = self.model.pop(org).projects
        assert set(self.control.delete_org(self.ids[who], org)) == set(projects)
        for project, model in projects.items():
            self.bury(project, model)

    @rule(org=orgs, who=people, whom=people, role=roles)
    def add_member(self, org: str, who: str, whom: str, role: Role) -> None:
        def attempt() -> object:
            return self.control.add_member(self.ids[who], org, f"{whom}@x.org", role)

        error = self.org_error(org, who, root_may=True)
        if error is None and whom in self.model[org].roles:
            error = AlreadyMember
        if error is not None:
            self.refused(error, attempt)
            return
        attempt()
        self.model[org].roles[whom] = role

    @rule(org=orgs, who=people, whom=people, role=st.none() | roles)
    def change_or_remove_member(self, org: str, who: str, whom: str, role: Role | None) -> None:
        def attempt() -> object:
            if role is None:
                self.control.remove_member(self.ids[who], org, self.ids[whom])
                return None
            return self.control.update_member(self.ids[who], org, self.ids[whom], role)

        error = self.org_error(org, who, root_may=True)
        if error is Forbidden and role is None and who == whom:
            error = None
        if error is None and whom not in self.model[org].roles:
            error = NotFound
        if error is None:
            others = {**self.model[org].roles, whom: role}
            if Role.ADMIN not in others.values():
                error = LastAdmin
        if error is not None:
            self.refused(error, attempt)
            return
        attempt()
        if role is not None:
            self.model[org].roles[whom] = role
            return
        del self.model[org].roles[whom]
        for project in self.model[org].projects.values():
            project.assigned.discard(whom)

    # ---- projects

    @rule(target=projects, org=orgs, who=people)
    def create_project(self, org: str, who: str) -> str:
        if org not in self.model or self.model[org].roles.get(who) is not Role.ADMIN:
            error = Forbidden if org in self.model else NotFound
            self.refused(error, lambda: self.control.create_project(self.ids[who], org, "p"))
            return "no such project"
        project = self.control.create_project(self.ids[who], org, "p")
        self.model[org].projects[project.id] = ProjectModel()
        return project.id

    @rule(project=projects, who=people)
    def delete_project(self, project: str, who: str) -> None:
        error = self.project_error(project, who)
        if error is not None:
            self.refused(error, lambda: self.control.delete_project(self.ids[who], project))
            return
        self.control.delete_project(self.ids[who], project)
        for org in self.model.values():
            if project in org.projects:
                self.bury(project, org.projects.pop(project))

    @rule(project=projects, who=people, whom=people)
    def assign(self, project: str, who: str, whom: str) -> None:
        def attempt() -> object:
            return self.control.assign(self.ids[who], project, self.ids[whom])

        error = self.project_error(project, who)
        if error is None and whom not in self.org_with(project).roles:
            error = NotFound
        if error is not None:
            self.refused(error, attempt)
            return
        attempt()
        self.org_with(project).projects[project].assigned.add(whom)

    @rule(project=projects)
    def purge(self, project: str) -> None:
        if project not in self.doomed:
            self.refused(NotFound, lambda: self.control.project_purged(project))
            return
        self.control.project_purged(project)
        self.doomed.discard(project)

    # ---- keys

    @rule(
        target=keys,
        project=projects,
        who=people,
        scopes=st.lists(st.sampled_from(Scope), max_size=3),
    )
    def create_key(self, project: str, who: str, scopes: list[Scope]) -> tuple[str, str]:
        def attempt() -> object:
            return self.control.create_key(self.ids[who], project, "k", scopes)

        error = InvalidField if not scopes else self.project_error(project, who)
        if error is not None:
            self.refused(error, attempt)
            return project, "no such key"
        key, secret = self.control.create_key(self.ids[who], project, "k", scopes)
        granted = tuple(scope for scope in Scope if scope in scopes)
        self.org_with(project).projects[project].keys[key.id] = ([secret], granted)
        return project, key.id

    @rule(key=keys, who=people, overlap=st.booleans())
    def rotate_key(self, key: tuple[str, str], who: str, overlap: bool) -> None:
        project, key_id = key
        seconds = 3600 if overlap else 0  # the clock stands still: an overlap lasts for ever
        error = self.key_error(project, key_id, who)
        if error is not None:
            target = (self.ids[who], project, key_id)
            self.refused(error, lambda: self.control.rotate_key(*target, seconds))
            return
        _, secret = self.control.rotate_key(self.ids[who], project, key_id, seconds)
        working, _ = self.org_with(project).projects[project].keys[key_id]
        if not overlap:
            self.dead_secrets.update(working)
            working.clear()
        working.append(secret)
        while len(working) > MAX_RETIRED + 1:
            self.dead_secrets.add(working.pop(0))

    @rule(key=consumes(keys), who=people)
    def revoke_key(self, key: tuple[str, str], who: str) -> None:
        project, key_id = key
        error = self.key_error(project, key_id, who)
        if error is not None:
            target = (self.ids[who], project, key_id)
            self.refused(error, lambda: self.control.revoke_key(*target))
            return
        self.control.revoke_key(self.ids[who], project, key_id)
        working, _ = self.org_with(project).projects[project].keys.pop(key_id)
        self.dead_secrets.update(working)

    # ---- stops

    @rule()
    def stop_and_start(self) -> None:
        assert self.control.close()
        self.control = self.world.open()
        assert self.control.damage == ()

    @rule()
    def crash_and_start(self) -> None:
        self.world.crash(self.control)
        self.control = self.world.open()
        assert self.control.damage == ()

    @rule(position=st.integers(0, 1_000_000))
    def flip_a_byte_of_the_journal_while_stopped(self, position: int) -> None:
        self.control.close()
        data = bytearray(self.world.journal.read_bytes())
        data[position % len(data)] ^= 0x10
        self.world.journal.write_bytes(data)
        self.control = self.world.open()
        assert self.control.damage != ()

    @rule()
    def lose_the_copy_while_stopped(self) -> None:
        self.control.close()
        self.world.mirror.unlink()
        self.control = self.world.open()
        assert len(self.control.damage) == 1

    # ---- what must hold after each rule

    @invariant()
    def listings_agree(self) -> None:
        for name, user_id in self.ids.items():
            mine = {org.id: role for org, role in self.control.orgs_of(user_id)}
            assert mine == {
                org: model.roles[name] for org, model in self.model.items() if name in model.roles
            }
            for org in mine:
                seen = {project.id for project in self.control.projects_of(user_id, org)}
                assert seen == self.visible(org, name)
        assert set(self.control.doomed_projects()) == self.doomed

    @invariant()
    def secrets_agree(self) -> None:
        for org in self.model.values():
            for project, model in org.projects.items():
                assert self.control.project_exists(project)
                for key_id, (working, scopes) in model.keys.items():
                    for secret in working:
                        principal = self.control.authenticate(secret)
                        assert principal == KeyPrincipal(key_id, project, scopes)  # type: ignore[arg-type]
        for secret in self.dead_secrets:
            assert self.control.authenticate(secret) is None

    # ---- the model's own words

    def visible(self, org: str, name: str) -> set[str]:
        projects = self.model[org].projects
        if name == "root" or self.model[org].roles.get(name) is Role.ADMIN:
            return set(projects)
        return {project for project, model in projects.items() if name in model.assigned}

    def org_error(self, org: str, who: str, root_may: bool = False) -> type[LogdError] | None:
        if org not in self.model:
            return NotFound
        role = self.model[org].roles.get(who)
        if role is Role.ADMIN or (root_may and who == "root"):
            return None
        return NotFound if role is None and who != "root" else Forbidden

    def project_error(self, project: str, who: str) -> type[LogdError] | None:
        for org, model in self.model.items():
            if project in model.projects:
                if model.roles.get(who) is Role.ADMIN:
                    return None
                return Forbidden if project in self.visible(org, who) else NotFound
        return NotFound

    def key_error(self, project: str, key_id: str, who: str) -> type[LogdError] | None:
        error = self.project_error(project, who)
        if error is None and key_id not in self.org_with(project).projects[project].keys:
            return NotFound
        return error

    def org_with(self, project: str) -> OrgModel:
        return next(org for org in self.model.values() if project in org.projects)

    def bury(self, project: str, model: ProjectModel) -> None:
        self.doomed.add(project)
        for working, _ in model.keys.values():
            self.dead_secrets.update(working)

    def refused(self, error: type[LogdError], attempt: Callable[[], object]) -> None:
        try:
            attempt()
        except error:
            return
        raise AssertionError(f"{error.__name__} was expected")


ControlMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestControlAgainstTheModel = ControlMachine.TestCase
