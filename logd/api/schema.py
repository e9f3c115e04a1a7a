"""The wire's structs, and the way from the domain's values to them.

The same structs validate requests, encode responses and make the OpenAPI document.
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from logd.control import model
from logd.timestamps import format_timestamp

Uuid = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Instant = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Color = Annotated[str, Meta(extra_json_schema={"pattern": "^#[0-9A-Fa-f]{6}$"})]


class Wire(msgspec.Struct, frozen=True, rename="camel"):
    """A response."""


class Sent(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A request body."""


class NoParameters(Sent, frozen=True):
    """The route has none."""


# ---------------------------------------------------------------- health


class Health(Wire, frozen=True):
    status: str


# ---------------------------------------------------------------- organisations


class Organisation(Wire, frozen=True):
    id: Uuid
    name: str
    slug: str


class OwnOrganisation(Organisation, frozen=True):
    """With the caller's role in it."""

    role: model.Role


class NewOrganisation(Sent, frozen=True):
    name: str
    slug: str


class OrganisationChange(Sent, frozen=True):
    name: str | UnsetType = UNSET
    slug: str | UnsetType = UNSET


class Member(Wire, frozen=True):
    user_id: Uuid
    email: str
    name: str
    role: model.Role


class NewMember(Sent, frozen=True):
    email: str
    role: model.Role


class MemberChange(Sent, frozen=True):
    role: model.Role


def organisation(org: model.Org) -> Organisation:
    return Organisation(org.id, org.name, org.slug)


def own_organisation(org: model.Org, role: model.Role) -> OwnOrganisation:
    return OwnOrganisation(org.id, org.name, org.slug, role)


def member(user: model.User, role: model.Role) -> Member:
    return Member(user.id, user.email, user.name, role)


# ---------------------------------------------------------------- projects


class CreatedProject(Wire, frozen=True):
    id: Uuid
    org_id: Uuid
    name: str
    color: Color
    created_at: Instant


class Project(CreatedProject, frozen=True):
    updated_at: Instant


class NewProject(Sent, frozen=True):
    name: str
    color: Color | None = None


class ProjectChange(Sent, frozen=True):
    name: str | UnsetType = UNSET
    color: Color | UnsetType = UNSET


class Assignee(Wire, frozen=True):
    user_id: Uuid
    email: str
    name: str


def created_project(project: model.Project) -> CreatedProject:
    return CreatedProject(
        project.id,
        project.org_id,
        project.name,
        project.color,
        format_timestamp(project.created_at_ns),
    )


def project(project: model.Project) -> Project:
    return Project(
        project.id,
        project.org_id,
        project.name,
        project.color,
        format_timestamp(project.created_at_ns),
        format_timestamp(project.updated_at_ns),
    )


def assignee(user: model.User) -> Assignee:
    return Assignee(user.id, user.email, user.name)


# ---------------------------------------------------------------- API keys


class Key(Wire, frozen=True):
    """`prefix`: the first characters of the secret, to tell keys apart."""

    id: Uuid
    name: str
    scopes: tuple[model.Scope, ...]
    prefix: str
    created_at: Instant
    expires_at: Instant | None
    last_used_at: Instant | None


class NewKeyWithSecret(Key, frozen=True):
    """`key`: the secret, shown this once."""

    key: str


class NewKey(Sent, frozen=True):
    name: str
    scopes: tuple[model.Scope, ...] = model.ALL_SCOPES
    expires_at: Instant | None = None


class KeyChange(Sent, frozen=True):
    """`expiresAt` null: never."""

    name: str | UnsetType = UNSET
    scopes: tuple[model.Scope, ...] | UnsetType = UNSET
    expires_at: Instant | UnsetType | None = UNSET


class Rotation(Sent, frozen=True):
    """`overlapSeconds`: how long the old secrets work on, at most."""

    overlap_seconds: int = 0


def key(key: model.ApiKey) -> Key:
    return Key(
        key.id,
        key.name,
        key.scopes,
        key.prefix,
        format_timestamp(key.created_at_ns),
        optional_instant(key.expires_at_ns),
        optional_instant(key.last_used_at_ns),
    )


def key_with_secret(key_: model.ApiKey, secret: str) -> NewKeyWithSecret:
    shown = key(key_)
    return NewKeyWithSecret(
        shown.id,
        shown.name,
        shown.scopes,
        shown.prefix,
        shown.created_at,
        shown.expires_at,
        shown.last_used_at,
        secret,
    )


def optional_instant(ts_ns: int | None) -> str | None:
    return None if ts_ns is None else format_timestamp(ts_ns)


# ---------------------------------------------------------------- people


class User(Wire, frozen=True):
    id: Uuid
    email: str
    name: str
    server_admin: bool
    disabled: bool
    created_at: Instant


class NewUser(Sent, frozen=True):
    email: str
    name: str | None = None
    server_admin: bool = False


class UserChange(Sent, frozen=True):
    email: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    server_admin: bool | UnsetType = UNSET


class OwnChange(Sent, frozen=True):
    name: str | UnsetType = UNSET


class Token(Wire, frozen=True):
    id: Uuid
    name: str
    prefix: str
    created_at: Instant
    expires_at: Instant | None
    last_used_at: Instant | None


class NewTokenWithSecret(Token, frozen=True):
    """`token`: the secret, shown this once."""

    token: str


class NewToken(Sent, frozen=True):
    name: str
    expires_at: Instant | None = None


def user(user: model.User) -> User:
    return User(
        user.id,
        user.email,
        user.name,
        user.server_admin,
        user.disabled,
        format_timestamp(user.created_at_ns),
    )


def token(token: model.Token) -> Token:
    return Token(
        token.id,
        token.name,
        token.prefix,
        format_timestamp(token.created_at_ns),
        optional_instant(token.expires_at_ns),
        optional_instant(token.last_used_at_ns),
    )


def token_with_secret(token_: model.Token, secret: str) -> NewTokenWithSecret:
    shown = token(token_)
    return NewTokenWithSecret(
        shown.id,
        shown.name,
        shown.prefix,
        shown.created_at,
        shown.expires_at,
        shown.last_used_at,
        secret,
    )
