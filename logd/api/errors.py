"""What the wire itself refuses, before any layer below is asked. `problems.py` gives the status."""

import msgspec

from logd.errors import LogdError


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing wrong with a request.

    `pointer`: a JSON pointer into the body, or into entry `index` of it; `parameter`: the name of
    a query parameter or header, `position` an offset in characters within its text.
    """

    code: str
    detail: str
    index: int | None = None
    pointer: str | None = None
    parameter: str | None = None
    position: int | None = None


class InvalidRequest(LogdError):
    """The request breaks a rule that it could have known. `faults`: at least one."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(faults[0].detail)
        self.faults = faults


class MalformedBody(LogdError):
    """A body that is not JSON, or that its Content-Encoding cannot decode."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Unauthenticated(LogdError):
    """No credential, or one that nobody has. `code`: `credential_missing`, `credential_unknown`."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class NoSuchRoute(LogdError):
    """No resource has that path."""


class MethodNotAllowed(LogdError):
    """The resource has other methods. `allow`: which."""

    def __init__(self, allow: tuple[str, ...]) -> None:
        super().__init__(f"this resource has {', '.join(allow)}")
        self.allow = allow


class UnsupportedMedia(LogdError):
    """A Content-Type or Content-Encoding that the resource does not read."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class BodyTooLarge(LogdError):
    """More body than the resource takes, as sent or decompressed."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the body must not exceed {max_bytes} bytes, also when decompressed")
        self.max_bytes = max_bytes


class BodyTooSlow(LogdError):
    """The body stalled, or trickled in."""


class BadHead(LogdError):
    """A request head that is refused as it stands. `status`: 400, 408, 431, 501 or 505."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail


class NotReady(LogdError):
    """The daemon is stopping: send new requests elsewhere, or later."""
