"""The values of the control data: people, organisations, projects and their credentials.

All values are frozen and safe to hand from thread to thread. An id is a random UUID as canonical
lower-case text, an instant is in nanoseconds since the Unix epoch.
"""

import enum
from typing import NewType

import msgspec

from logd.entry import ProjectId

UserId = NewType("UserId", str)
TokenId = NewType("TokenId", str)
OrgId = NewType("OrgId", str)
KeyId = NewType("KeyId", str)


class Role(enum.StrEnum):
    """What a user is in an organisation."""

    ADMIN = "admin"
    MEMBER = "member"


class Scope(enum.StrEnum):
    """What an API key may be used for."""

    INGEST = "ingest"
    READ = "read"


ALL_SCOPES = (Scope.INGEST, Scope.READ)


class User(msgspec.Struct, frozen=True):
    """A person. `email` is stored as given and is unique whatever its case."""

    id: UserId
    email: str
    name: str
    server_admin: bool
    disabled: bool
    password_hash: str | None
    """An argon2id hash in its text form, or None where no password was ever set."""
    created_at_ns: int

    def __repr__(self) -> str:  # the hash must not reach a log line
        return f"User(id={self.id!r}, email={self.email!r})"


class Token(msgspec.Struct, frozen=True):
    """A personal access token: acts as its user. `prefix`: the secret's first 12 characters."""

    id: TokenId
    user_id: UserId
    name: str
    prefix: str
    created_at_ns: int
    last_used_at_ns: int | None = None
    expires_at_ns: int | None = None


class Org(msgspec.Struct, frozen=True):
    """An organisation. `slug` is unique on the whole server."""

    id: OrgId
    name: str
    slug: str
    created_at_ns: int


class Membership(msgspec.Struct, frozen=True):
    """That a user belongs to an organisation, and as what."""

    org_id: OrgId
    user_id: UserId
    role: Role


class Project(msgspec.Struct, frozen=True):
    """One isolated log stream. `color`: `#RRGGBB`, as given or from the palette."""

    id: ProjectId
    org_id: OrgId
    name: str
    color: str
    created_at_ns: int
    updated_at_ns: int


class Assignment(msgspec.Struct, frozen=True):
    """That a member of the organisation may read the project."""

    project_id: ProjectId
    user_id: UserId


class ApiKey(msgspec.Struct, frozen=True):
    """A project's credential for machines. `prefix`: the newest secret's first 12 characters."""

    id: KeyId
    project_id: ProjectId
    name: str
    scopes: tuple[Scope, ...]
    """Without repetition, in the order of `Scope`; never empty."""
    prefix: str
    created_at_ns: int
    expires_at_ns: int | None = None
    last_used_at_ns: int | None = None


class UserPrincipal(msgspec.Struct, frozen=True):
    """The caller is a person (by token; later also by session)."""

    user_id: UserId
    server_admin: bool


class KeyPrincipal(msgspec.Struct, frozen=True):
    """The caller is a machine with one project's API key."""

    key_id: KeyId
    project_id: ProjectId
    scopes: tuple[Scope, ...]


Principal = UserPrincipal | KeyPrincipal
