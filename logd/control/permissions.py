"""Who may do what: pure rules over what a caller is.

| | organisation: see | manage | its members: see | manage | project: read | manage |
|---|---|---|---|---|---|---|
| admin of the organisation | yes | yes | yes | yes | yes | yes |
| member, project assigned | yes | | | himself: leave | yes | |
| member, project not assigned | yes | | | himself: leave | | |
| server admin who is neither | yes | | yes | yes | yes | |
| stranger | | | | | | |

To manage a project is to change or delete it, to assign people and to handle its keys (a server
admin sees keys and assignments too). What a caller may not even see is NotFound; what he sees but
may not do is Forbidden. One exception, by the contract: creating a project is Forbidden for a
stranger too.
"""

import msgspec

from logd.control.errors import Forbidden, NotFound
from logd.control.model import KeyPrincipal, Principal, Role, Scope, User, UserId


class Standing(msgspec.Struct, frozen=True):
    """What a user is to one organisation, and to one project of it where that is asked about."""

    server_admin: bool
    role: Role | None
    assigned: bool = False


def sees_org(who: Standing) -> bool:
    return who.server_admin or who.role is not None


def sees_administration(who: Standing) -> bool:
    """Members, assignments, keys: what only admins need to know."""
    return who.server_admin or who.role is Role.ADMIN


def sees_project(who: Standing) -> bool:
    return sees_administration(who) or (who.role is Role.MEMBER and who.assigned)


def check_server_admin(user: User) -> None:
    if not user.server_admin:
        raise Forbidden("server_admin_required", "only a server admin may do this")


def check_sees_org(who: Standing) -> None:
    if not sees_org(who):
        raise NotFound("organisation")


def check_manages_org(who: Standing) -> None:
    check_sees_org(who)
    _check_admin(who.role is Role.ADMIN)


def check_sees_members(who: Standing) -> None:
    check_sees_org(who)
    _check_admin(sees_administration(who))


def check_manages_members(who: Standing) -> None:
    """A server admin may: else nobody could help an organisation whose admins have left."""
    check_sees_members(who)


def check_creates_project(who: Standing) -> None:
    _check_admin(who.role is Role.ADMIN)


def check_sees_project(who: Standing) -> None:
    if not sees_project(who):
        raise NotFound("project")


def check_manages_project(who: Standing) -> None:
    check_sees_project(who)
    _check_admin(who.role is Role.ADMIN)


def check_sees_project_administration(who: Standing) -> None:
    check_sees_project(who)
    _check_admin(sees_administration(who))


def check_key(key: KeyPrincipal, project_id: str, scope: Scope) -> None:
    """An API key on a project's path. Another project is Forbidden whether it exists or not."""
    if key.project_id != project_id:
        raise Forbidden("wrong_project", "this API key belongs to another project")
    if scope not in key.scopes:
        raise Forbidden("scope_missing", f"this API key lacks the scope {scope.value!r}")


def person(principal: Principal) -> UserId:
    """The user behind a credential, where only a person will do."""
    if isinstance(principal, KeyPrincipal):
        raise Forbidden("user_required", "this needs a user's token; an API key will not do")
    return principal.user_id


def machine(principal: Principal) -> KeyPrincipal:
    """The API key behind a credential, where only a key will do."""
    if not isinstance(principal, KeyPrincipal):
        raise Forbidden("key_required", "this needs an API key of the project")
    return principal


def _check_admin(allowed: bool) -> None:
    if not allowed:
        raise Forbidden("admin_required", "only an admin of the organisation may do this")
