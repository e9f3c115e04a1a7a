"""The one table of routes: the router, the Quart app, the OpenAPI document and the tenant matrix
of the tests are all made from it."""

from typing import Any, Final

from logd.api import log_schema, schema
from logd.api.operations import health, ingest, keys, logs, orgs, people, projects
from logd.api.routing import Access, Operation, Payload, Route


def _route(method: str, defaults: dict[str, Any], more: dict[str, Any]) -> Route:
    return Route(method=method, **(defaults | more))


def _read(template: str, operation: Operation, summary: str, **more: Any) -> Route:
    named = {"template": template, "operation": operation, "summary": summary}
    return _route("GET", named, more)


def _create(template: str, operation: Operation, summary: str, **more: Any) -> Route:
    named = {"template": template, "operation": operation, "summary": summary}
    return _route("POST", {"payload": Payload.JSON, "status": 201, **named}, more)


def _change(method: str, template: str, operation: Operation, summary: str, **more: Any) -> Route:
    named = {"template": template, "operation": operation, "summary": summary}
    return _route(method, {"payload": Payload.JSON, **named}, more)


def _delete(template: str, operation: Operation, summary: str, **more: Any) -> Route:
    named = {"template": template, "operation": operation, "summary": summary}
    return _route("DELETE", {"status": 204, **named}, more)


_ORG: Final = "/v1/orgs/{orgId}"
_ORG_MEMBERS: Final = _ORG + "/members"
_ORG_MEMBER: Final = _ORG_MEMBERS + "/{userId}"
_PROJECTS: Final = _ORG + "/projects"
_PROJECT: Final = _PROJECTS + "/{projectId}"
_ASSIGNEES: Final = _PROJECT + "/members"
_ASSIGNEE: Final = _ASSIGNEES + "/{userId}"
_KEYS: Final = "/v1/projects/{projectId}/keys"
_KEY: Final = _KEYS + "/{keyId}"
_LOGS: Final = "/v1/projects/{projectId}/logs"

ROUTES: Final[tuple[Route, ...]] = (
    _read(
        "/livez",
        health.livez,
        "The process lives",
        tag="health",
        access=Access.OPEN,
        query=None,
        response=schema.Health,
    ),
    _read(
        "/readyz",
        health.readyz,
        "The daemon takes requests",
        tag="health",
        access=Access.OPEN,
        query=None,
        response=schema.Health,
        codes={503: ("not_ready",)},
    ),
    _read(
        "/v1/openapi.json",
        health.describe,
        "This document",
        tag="health",
        access=Access.OPEN,
        response=dict[str, Any],
    ),
    # ---- organisations
    _read(
        "/v1/orgs/mine",
        orgs.list_own,
        "The caller's organisations, with his role in each",
        tag="organisations",
        response=list[schema.OwnOrganisation],
    ),
    _create(
        "/v1/orgs",
        orgs.create,
        "Create an organisation; the caller becomes its admin",
        tag="organisations",
        request=schema.NewOrganisation,
        response=schema.Organisation,
        codes={409: ("slug_taken",)},
    ),
    _read(_ORG, orgs.show, "One organisation", tag="organisations", response=schema.Organisation),
    _change(
        "PUT",
        _ORG,
        orgs.update,
        "Rename an organisation, or change its slug",
        tag="organisations",
        request=schema.OrganisationChange,
        response=schema.Organisation,
        codes={409: ("slug_taken",)},
    ),
    _delete(_ORG, orgs.delete, "Delete an organisation with all of its", tag="organisations"),
    _read(
        _ORG_MEMBERS,
        orgs.list_members,
        "Members of an organisation, for its admins",
        tag="members",
        response=list[schema.Member],
    ),
    _create(
        _ORG_MEMBERS,
        orgs.add_member,
        "Add a user of this server to an organisation",
        tag="members",
        request=schema.NewMember,
        response=schema.Member,
        codes={409: ("already_member",)},
    ),
    _change(
        "PUT",
        _ORG_MEMBER,
        orgs.update_member,
        "Change a member's role",
        tag="members",
        request=schema.MemberChange,
        response=schema.Member,
        codes={409: ("last_admin",)},
    ),
    _delete(
        _ORG_MEMBER,
        orgs.remove_member,
        "Remove a member, or leave",
        tag="members",
        codes={409: ("last_admin",)},
    ),
    # ---- projects
    _read(
        _PROJECTS,
        projects.list_all,
        "The projects of an organisation that the caller may see",
        tag="projects",
        response=list[schema.Project],
    ),
    _create(
        _PROJECTS,
        projects.create,
        "Create a project",
        tag="projects",
        request=schema.NewProject,
        response=schema.CreatedProject,
    ),
    _change(
        "PUT",
        _PROJECT,
        projects.update,
        "Change a project's name or colour",
        tag="projects",
        request=schema.ProjectChange,
        response=schema.Project,
    ),
    _delete(_PROJECT, projects.delete, "Delete a project with its logs, for good", tag="projects"),
    _read(
        _ASSIGNEES,
        projects.list_assignees,
        "Members that the project is assigned to",
        tag="projects",
        response=list[schema.Assignee],
    ),
    _change(
        "PUT",
        _ASSIGNEE,
        projects.assign,
        "Assign the project to a member",
        tag="projects",
        payload=Payload.NONE,
        response=schema.Assignee,
    ),
    _delete(_ASSIGNEE, projects.unassign, "Take the project from a member", tag="projects"),
    # ---- API keys
    _read(_KEYS, keys.list_all, "API keys of a project", tag="keys", response=list[schema.Key]),
    _create(
        _KEYS,
        keys.create,
        "Create an API key; its secret is shown this once",
        tag="keys",
        request=schema.NewKey,
        response=schema.NewKeyWithSecret,
    ),
    _change(
        "PATCH",
        _KEY,
        keys.update,
        "Change a key's name, scopes or expiry",
        tag="keys",
        request=schema.KeyChange,
        response=schema.Key,
    ),
    _delete(_KEY, keys.revoke, "Revoke a key, as of the next request", tag="keys"),
    _create(
        _KEY + "/rotate",
        keys.rotate,
        "Give a key a new secret, shown this once",
        tag="keys",
        payload=Payload.OPTIONAL_JSON,
        request=schema.Rotation,
        response=schema.NewKeyWithSecret,
        status=200,
    ),
    # ---- people
    _read("/v1/me", people.show_me, "The caller", tag="people", response=schema.User),
    _change(
        "PUT",
        "/v1/me",
        people.update_me,
        "Change the caller's name",
        tag="people",
        request=schema.OwnChange,
        response=schema.User,
    ),
    _read(
        "/v1/me/tokens",
        people.list_tokens,
        "The caller's personal access tokens",
        tag="people",
        response=list[schema.Token],
    ),
    _create(
        "/v1/me/tokens",
        people.create_token,
        "Create a personal access token; its secret is shown this once",
        tag="people",
        request=schema.NewToken,
        response=schema.NewTokenWithSecret,
    ),
    _delete("/v1/me/tokens/{tokenId}", people.revoke_token, "Revoke a token", tag="people"),
    _read(
        "/v1/users",
        people.list_users,
        "All users, for a server admin",
        tag="people",
        response=list[schema.User],
    ),
    _create(
        "/v1/users",
        people.create_user,
        "Create a user, by a server admin",
        tag="people",
        request=schema.NewUser,
        response=schema.User,
        codes={409: ("email_taken",)},
    ),
    _change(
        "PUT",
        "/v1/users/{userId}",
        people.update_user,
        "Rename, disable or promote a user, by a server admin",
        tag="people",
        request=schema.UserChange,
        response=schema.User,
        codes={409: ("email_taken", "last_admin")},
    ),
    # ---- logs
    Route(
        method="POST",
        template="/v1/ingest",
        operation=ingest.ingest,
        summary="Store log entries; they are durable when this answers",
        tag="logs",
        access=Access.INGEST,
        query=log_schema.IngestParameters,
        request=log_schema.Entries,
        payload=Payload.ENTRIES,
        response=log_schema.Receipt,
        codes={
            400: ("invalid_entries",),
            403: ("foreign_project",),
            422: ("idempotency_conflict",),
        },
    ),
    _read(
        _LOGS,
        logs.list_page,
        "Entries, newest first, with the exact total",
        at_once=logs.list_page_at_once,
        tag="logs",
        access=Access.READ,
        query=log_schema.ListParameters,
        response=log_schema.LogPage,
        codes={
            400: (
                "bad_cursor",
                "cursor_mismatch",
                "from_after_to",
                "invalid_level",
                "invalid_limit",
                "invalid_timestamp",
            )
        },
    ),
    _read(
        _LOGS + "/stats",
        logs.stats,
        "Entries by level",
        at_once=logs.stats_at_once,
        tag="logs",
        access=Access.READ,
        response=log_schema.Stats,
    ),
    _read(
        _LOGS + "/{logId}",
        logs.show,
        "One entry",
        tag="logs",
        access=Access.READ,
        response=log_schema.LogEntry,
        codes={404: ("no_such_entry",)},
    ),
)
