"""The one table from errors to RFC 9457 problems. No other file gives an error a status.

A row says the status, the code (None: the error carries its own), and either that the error's
text is meant for callers or what to say instead of it: texts of the storage name files.
"""

import logging
from collections.abc import Iterable
from typing import Final

import msgspec

from logd.api import errors as wire
from logd.api.errors import Fault
from logd.api.exchange import Header, Response
from logd.control import errors as control
from logd.daemon.ingest import IdempotencyConflict
from logd.errors import (
    BadQuery,
    Cancelled,
    NoSuchEntry,
    NoSuchProject,
    Overloaded,
    StorageFailed,
    StorageFull,
)
from logd.format.body import EntryError, ForeignProject, InvalidBody, InvalidEntries

log = logging.getLogger("logd.api")

CONTENT_TYPE: Final = "application/problem+json"


class Problem(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """An RFC 9457 problem. `code` is flat and machine-readable, `type` the same as a URI path."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    errors: tuple[Fault, ...] = ()


class _Row(msgspec.Struct, frozen=True):
    status: int
    code: str | None = None
    instead: str | None = None
    retry_after_seconds: int | None = None
    is_logged: bool = False


TABLE: Final[dict[type[Exception], _Row]] = {
    # what the wire refuses
    wire.InvalidRequest: _Row(400, "invalid_request"),
    wire.MalformedBody: _Row(400),
    wire.Unauthenticated: _Row(401),
    wire.NoSuchRoute: _Row(404, "no_such_resource"),
    wire.MethodNotAllowed: _Row(405, "method_not_allowed"),
    wire.BodyTooSlow: _Row(408, "body_too_slow"),
    wire.BodyTooLarge: _Row(413, "body_too_large"),
    wire.UnsupportedMedia: _Row(415),
    wire.NotReady: _Row(503, "not_ready", retry_after_seconds=5),
    # identity
    control.InvalidField: _Row(400, "invalid_request"),
    control.Forbidden: _Row(403),
    control.NotFound: _Row(404),
    control.SlugTaken: _Row(409, "slug_taken"),
    control.EmailTaken: _Row(409, "email_taken"),
    control.AlreadyMember: _Row(409, "already_member"),
    control.LastAdmin: _Row(409, "last_admin"),
    # logs
    BadQuery: _Row(400),
    InvalidBody: _Row(400),
    InvalidEntries: _Row(400, "invalid_entries"),
    ForeignProject: _Row(403, "foreign_project"),
    NoSuchProject: _Row(404, "no_such_project", "no such project"),
    NoSuchEntry: _Row(404, "no_such_entry", "no such entry"),
    IdempotencyConflict: _Row(
        422, "idempotency_conflict", "this Idempotency-Key was used with another body"
    ),
    # faults of ours that pass: shippers retry a 503 and drop anything else
    Overloaded: _Row(503, "overloaded"),
    MemoryError: _Row(503, "overloaded", "memory is short", 1, is_logged=True),
    Cancelled: _Row(503, "cancelled", "the request was stopped", 1),
    StorageFull: _Row(503, "storage_full", "the disk is nearly full", 10),
    StorageFailed: _Row(503, "storage_failed", "the storage failed and is being reopened", 5),
}

_INTERNAL: Final = _Row(
    500, "internal_error", "an internal error, logged under the request id", is_logged=True
)


def to_response(error: Exception, request_id: str) -> Response:
    """The answer to a request that ended with `error`. One that the table does not have is a
    defect of ours: logged here, with its traceback, as is short memory, and told to nobody."""
    row = _row(error)
    if row.is_logged:
        log.error("request %s failed", request_id, exc_info=error)
    return problem_response(
        status=row.status,
        code=row.code or _code(error),
        detail=row.instead or _detail(error),
        request_id=request_id,
        errors=_faults(error),
        headers=_headers(error, row),
    )


def problem_response(
    *,
    status: int,
    code: str,
    detail: str,
    request_id: str,
    errors: tuple[Fault, ...] = (),
    headers: Iterable[Header] = (),
) -> Response:
    """A problem from its parts: for the doors, which refuse what never becomes a request."""
    problem = Problem(
        type=type_of(code),
        title=title_of(code),
        status=status,
        detail=detail,
        code=code,
        request_id=request_id,
        errors=errors,
    )
    return Response(
        status, (("content-type", CONTENT_TYPE), *headers), msgspec.json.encode(problem)
    )


def type_of(code: str) -> str:
    return "/problems/" + code.replace("_", "-")


def title_of(code: str) -> str:
    return code.replace("_", " ").capitalize()


def entry_faults(errors: Iterable[EntryError]) -> tuple[Fault, ...]:
    return tuple(
        Fault(code=e.code, detail=e.detail, index=e.index, pointer=e.pointer) for e in errors
    )


def _row(error: Exception) -> _Row:
    for kind in type(error).__mro__:
        if kind in TABLE:
            return TABLE[kind]
    return _INTERNAL


def _code(error: Exception) -> str:
    match error:
        case control.NotFound(kind=kind):
            return f"no_such_{kind}"
        case control.Forbidden(reason=reason):
            return reason
        case (
            wire.MalformedBody(code=code)
            | wire.Unauthenticated(code=code)
            | wire.UnsupportedMedia(code=code)
            | BadQuery(code=code)
            | InvalidBody(code=code)
        ):
            return code
    raise AssertionError(f"BUG: {type(error).__name__} has no code")


def _detail(error: Exception) -> str:
    match error:
        case control.InvalidField(field=field, detail=detail):
            return f"{camel(field)}: {detail}"
    return str(error)


def _faults(error: Exception) -> tuple[Fault, ...]:
    match error:
        case wire.InvalidRequest(faults=faults):
            return faults
        case control.InvalidField(field=field, code=code, detail=detail):
            return (Fault(code=code, detail=detail, pointer="/" + camel(field)),)
        case BadQuery(field=field, code=code, detail=detail, position=position):
            return (Fault(code=code, detail=detail, parameter=field, position=position),)
        case InvalidEntries(errors=errors) | ForeignProject(errors=errors):
            return entry_faults(errors)
    return ()


def camel(name: str) -> str:
    """`expires_at` -> `expiresAt`: a field's name on the wire."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _headers(error: Exception, row: _Row) -> list[Header]:
    headers: list[Header] = []
    retry_after = row.retry_after_seconds
    if isinstance(error, Overloaded):
        retry_after = error.retry_after_seconds
    if retry_after is not None:
        headers.append(("retry-after", str(retry_after)))
    if isinstance(error, wire.Unauthenticated):
        headers.append(("www-authenticate", "Bearer"))
    if isinstance(error, wire.MethodNotAllowed):
        headers.append(("allow", ", ".join(error.allow)))
    return headers
