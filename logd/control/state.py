"""All control data in memory: one immutable state, replaced whole after each transaction."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from logd.control import fields
from logd.control.model import (
    Assignment,
    Membership,
    Org,
    OrgId,
    Project,
    Role,
    User,
)
from logd.control.permissions import Standing
from logd.control.records import (
    Doomed,
    KeyRecord,
    LastUse,
    Record,
    TokenRecord,
    pair_key,
    split_key,
)
from logd.control.table import Table


def _users() -> Table[User]:
    return Table(email=lambda user: (fields.email_key(user.email),))


def _tokens() -> Table[TokenRecord]:
    return Table(user=lambda record: (record.token.user_id,), digest=lambda r: (r.digest,))


def _orgs() -> Table[Org]:
    return Table(slug=lambda org: (org.slug,))


def _memberships() -> Table[Membership]:
    return Table(org=lambda m: (m.org_id,), user=lambda m: (m.user_id,))


def _projects() -> Table[Project]:
    return Table(org=lambda project: (project.org_id,))


def _assignments() -> Table[Assignment]:
    return Table(project=lambda a: (a.project_id,), user=lambda a: (a.user_id,))


def _keys() -> Table[KeyRecord]:
    return Table(
        project=lambda record: (record.key.project_id,),
        digest=lambda r: (r.digest, *(old.digest for old in r.retired)),
    )


TABLE_OF_KIND: Final = {
    "user": "users",
    "token": "tokens",
    "org": "orgs",
    "member": "memberships",
    "project": "projects",
    "assignment": "assignments",
    "key": "keys",
    "use": "uses",
    "doomed": "doomed",
}


@dataclass(frozen=True, slots=True)
class State:
    """Every record, by its id and by what it is looked up with.

    After damage a record may refer to one that was lost; readers skip such records.
    """

    users: Table[User]
    tokens: Table[TokenRecord]
    orgs: Table[Org]
    memberships: Table[Membership]
    projects: Table[Project]
    assignments: Table[Assignment]
    keys: Table[KeyRecord]
    uses: Table[LastUse]
    doomed: Table[Doomed]

    @classmethod
    def empty(cls) -> "State":
        return cls(
            _users(), _tokens(), _orgs(), _memberships(), _projects(), _assignments(), _keys(),
            Table(), Table(),
        )  # fmt: skip

    def changed(self, changes: Mapping[str, Record | None]) -> "State":
        """The state in which each of these keys has the given record, or none."""
        by_table: dict[str, dict[str, Record | None]] = {}
        for key, record in changes.items():
            kind, row_key = split_key(key)
            by_table.setdefault(TABLE_OF_KIND[kind], {})[row_key] = record
        return replace(
            self, **{name: getattr(self, name).changed(rows) for name, rows in by_table.items()}
        )

    def user_by_email(self, email: str) -> User | None:
        return self.users.one("email", fields.email_key(email))

    def role(self, user_id: str, org_id: str) -> Role | None:
        membership = self.memberships.get(pair_key(org_id, user_id))
        return membership.role if membership is not None else None

    def standing_in_org(self, user: User, org_id: str) -> Standing:
        return Standing(user.server_admin, self.role(user.id, org_id))

    def standing_in_project(self, user: User, project: Project) -> Standing:
        assigned = self.assignments.get(pair_key(project.id, user.id)) is not None
        return Standing(user.server_admin, self.role(user.id, project.org_id), assigned)

    def has_enabled_admin(self, org_id: OrgId) -> bool:
        return any(
            member.role is Role.ADMIN and self.is_enabled(member.user_id)
            for member in self.memberships.where("org", org_id)
        )

    def has_enabled_server_admin(self) -> bool:
        return any(user.server_admin and not user.disabled for user in self.users)

    def is_enabled(self, user_id: str) -> bool:
        user = self.users.get(user_id)
        return user is not None and not user.disabled

    def has_credential(self, credential_id: str) -> bool:
        return credential_id in self.tokens or credential_id in self.keys
