"""What the command line may ask of a data directory's owner, and doing it.

The daemon does it for whoever reaches its admin socket; without a daemon the command does it
itself, on a control store that it has opened.
"""

from typing import Final

import msgspec

from logd.control.errors import NotFound
from logd.control.model import Org, OrgId, Project, Role, User
from logd.control.store import Control
from logd.errors import LogdError

MAX_LINE_BYTES: Final = 65_536


class UserAdd(msgspec.Struct, frozen=True, tag_field="op", tag="user_add"):
    """Create the user if there is none, the first one as server admin. Replies a fresh token."""

    email: str
    token_name: str = "command line"


class UserSetPassword(msgspec.Struct, frozen=True, tag_field="op", tag="user_set_password"):
    email: str
    password: str

    def __repr__(self) -> str:  # the password must not reach a log line
        return f"UserSetPassword(email={self.email!r})"


class Quickstart(msgspec.Struct, frozen=True, tag_field="op", tag="quickstart"):
    """A user, an organisation and a project of these names, each created where it is missing.
    Replies a fresh token and a fresh API key."""

    email: str
    org_name: str
    slug: str
    project_name: str


AdminRequest = UserAdd | UserSetPassword | Quickstart


class AdminReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """`error`: why it was refused; all else is empty then."""

    error: str | None = None
    user_id: str | None = None
    token: str | None = None
    org_id: str | None = None
    project_id: str | None = None
    key: str | None = None

    def __repr__(self) -> str:  # the secrets must not reach a log line
        return f"AdminReply(error={self.error!r})"


def perform(control: Control, request: AdminRequest) -> AdminReply:
    """Writes: for a worker thread. What is refused is a reply with `error`."""
    try:
        match request:
            case UserAdd():
                return _user_add(control, request)
            case UserSetPassword():
                return _set_password(control, request)
            case Quickstart():
                return _quickstart(control, request)
    except LogdError as error:
        return AdminReply(error=str(error))


def _user_add(control: Control, request: UserAdd) -> AdminReply:
    user = control.ensure_user(request.email)
    _, token = control.issue_token(user.id, request.token_name)
    return AdminReply(user_id=user.id, token=token)


def _set_password(control: Control, request: UserSetPassword) -> AdminReply:
    user = control.user_by_email(request.email)
    if user is None:
        raise NotFound("user")
    control.set_password(user.id, user.id, request.password)
    return AdminReply(user_id=user.id)


def _quickstart(control: Control, request: Quickstart) -> AdminReply:
    user = control.ensure_user(request.email)
    org = _own_org(control, user, request)
    project = _own_project(control, user, org.id, request.project_name)
    _, key = control.create_key(user.id, project.id, "quickstart")
    _, token = control.issue_token(user.id, "quickstart")
    return AdminReply(user_id=user.id, token=token, org_id=org.id, project_id=project.id, key=key)


def _own_org(control: Control, user: User, request: Quickstart) -> Org:
    for org, role in control.orgs_of(user.id):
        if org.slug == request.slug and role is Role.ADMIN:
            return org
    return control.create_org(user.id, request.org_name, request.slug)


def _own_project(control: Control, user: User, org_id: OrgId, name: str) -> Project:
    for project in control.projects_of(user.id, org_id):
        if project.name == name:
            return project
    return control.create_project(user.id, org_id, name)
