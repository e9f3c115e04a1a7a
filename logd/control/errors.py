"""What the control data refuse, and why. No status codes here: the API has the one table.

Codes are flat and machine-readable; details are for people and hold no secret and no path.
"""

from typing import Literal

from logd.errors import LogdError

Kind = Literal["user", "token", "organisation", "member", "project", "assignment", "key"]


class NotFound(LogdError):
    """There is no such thing, or the caller may not know that there is. `kind` names it."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(f"no such {kind}")
        self.kind = kind


class Forbidden(LogdError):
    """The caller is known but may not do this. `reason` is one of the codes below.

    `admin_required` (an organisation's admin), `server_admin_required`, `user_disabled`,
    `user_required` (an API key where a person is needed), `key_required` (a person where an API
    key is needed), `wrong_project` (an API key on another project), `scope_missing`.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class SlugTaken(LogdError):
    """Another organisation of this server has the slug."""

    def __init__(self, slug: str) -> None:
        super().__init__(f"the slug {slug!r} is taken")
        self.slug = slug


class EmailTaken(LogdError):
    """Another user has the email address."""

    def __init__(self, email: str) -> None:
        super().__init__(f"there is a user with the address {email!r}")
        self.email = email


class AlreadyMember(LogdError):
    """The user belongs to the organisation already."""

    def __init__(self) -> None:
        super().__init__("the user is a member of the organisation already")


class LastAdmin(LogdError):
    """The change would leave the organisation, or the server, without an enabled admin."""

    def __init__(self, of: Literal["organisation", "server"]) -> None:
        super().__init__(f"the {of} must keep at least one admin")
        self.of = of


class InvalidField(LogdError):
    """A value that breaks its field's rules.

    `field` is the parameter's name (`name`, `slug`, `expires_at`, ...), `code` one of `too_short`,
    `too_long`, `control_character`, `bad_format`, `in_past`, `out_of_range`, `empty`, `unknown`.
    """

    def __init__(self, field: str, code: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.code = code
        self.detail = detail
