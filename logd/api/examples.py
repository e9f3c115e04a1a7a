"""One example of each body, for the OpenAPI document and docs/api.md. Values of the structs, so a
change of a struct that an example does not follow fails at import."""

from typing import Any, Final

from msgspec import Raw

from logd.api import log_schema, schema
from logd.control.model import Role, Scope

_ORG: Final = "0a4c7f3e-52a1-4c8e-9d0b-6f1e2d3c4b5a"
_PROJECT: Final = "7b1d9c52-3f6e-4a80-b1c4-2e5f8a9d0c3b"
_USER: Final = "c2e8f1a7-9b4d-4e36-8a5c-1d7f0b2e6a94"
_OTHER: Final = "e51b0c9d-7a2f-4d83-96be-3c8f4a1d5e72"
_LOG: Final = "log_018f6e2a-6c1b-8d47-a3f5-9b2c4e7d1a60"
_THEN: Final = "2026-01-31T09:30:00.000Z"
_LATER: Final = "2026-02-03T17:05:12.250Z"

_organisation: Final = schema.Organisation(_ORG, "Acme", "acme")
_created: Final = schema.CreatedProject(_PROJECT, _ORG, "Web shop", "#3B82F6", _THEN)
_project: Final = schema.Project(_PROJECT, _ORG, "Web shop", "#3B82F6", _THEN, _LATER)
_member: Final = schema.Member(_USER, "ada@example.com", "Ada", Role.ADMIN)
_key: Final = schema.Key(_OTHER, "shipper", (Scope.INGEST,), "ldk_7Qm2xVb9", _THEN, None, _LATER)
_user: Final = schema.User(_USER, "ada@example.com", "Ada", True, False, _THEN)
_token: Final = schema.Token(_OTHER, "laptop", "ldu_1xK8pZt4", _THEN, None, None)
_entry: Final = log_schema.LogEntry(
    _LOG,
    _PROJECT,
    "ERROR",
    "payment 4711 failed after 3 attempts",
    "checkout",
    "2026-01-31T09:30:00.123Z",
    Raw(b'["payment","eu-1"]'),
    Raw(b'{"user":"u-17","amount":12.50}'),
)

EXAMPLES: Final[dict[Any, Any]] = {
    schema.Health: schema.Health("ready"),
    list[schema.OwnOrganisation]: [schema.OwnOrganisation(_ORG, "Acme", "acme", Role.ADMIN)],
    schema.Organisation: _organisation,
    schema.NewOrganisation: schema.NewOrganisation("Acme", "acme"),
    schema.OrganisationChange: schema.OrganisationChange(name="Acme Ltd"),
    schema.Member: _member,
    list[schema.Member]: [_member],
    schema.NewMember: schema.NewMember("grace@example.com", Role.MEMBER),
    schema.MemberChange: schema.MemberChange(Role.ADMIN),
    schema.CreatedProject: _created,
    schema.Project: _project,
    list[schema.Project]: [_project],
    schema.NewProject: schema.NewProject("Web shop", "#3B82F6"),
    schema.ProjectChange: schema.ProjectChange(color="#10B981"),
    schema.Assignee: schema.Assignee(_USER, "ada@example.com", "Ada"),
    list[schema.Assignee]: [schema.Assignee(_USER, "ada@example.com", "Ada")],
    schema.Key: _key,
    list[schema.Key]: [_key],
    schema.NewKey: schema.NewKey("shipper", (Scope.INGEST,)),
    schema.KeyChange: schema.KeyChange(name="old shipper", expires_at=_LATER),
    schema.Rotation: schema.Rotation(3600),
    schema.User: _user,
    list[schema.User]: [_user],
    schema.NewUser: schema.NewUser("grace@example.com", "Grace"),
    schema.UserChange: schema.UserChange(disabled=True),
    schema.OwnChange: schema.OwnChange("Ada L."),
    schema.Token: _token,
    list[schema.Token]: [_token],
    schema.NewToken: schema.NewToken("laptop"),
    log_schema.Entries: log_schema.IngestEntry(
        _PROJECT,
        "ERROR",
        "payment 4711 failed after 3 attempts",
        "checkout",
        "2026-01-31T09:30:00.123Z",
        ("payment", "eu-1"),
        {"user": Raw(b'"u-17"'), "amount": Raw(b"12.50")},
    ),
    log_schema.Receipt: log_schema.Receipt(1, (_LOG,)),
    log_schema.PartialReceipt: log_schema.PartialReceipt(
        1,
        (_LOG, None),
        (log_schema.EntryFault(1, "/message", "required", "message is required"),),
    ),
    log_schema.LogEntry: _entry,
    log_schema.LogPage: log_schema.LogPage((_entry,), None, 1),
    log_schema.Stats: log_schema.Stats(3, 120, 7, 2),
}
