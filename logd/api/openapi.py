"""The OpenAPI 3.1 document, made from the route table and the structs that validate."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from logd.api import log_schema
from logd.api.examples import EXAMPLES
from logd.api.problems import CONTENT_TYPE, Problem, title_of, type_of
from logd.api.routing import Access, Payload, Route

Json = dict[str, Any]
"""A piece of the document: its form is OpenAPI's."""

_TEMPLATE: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_LISTED: Final = 207


def document(routes: Sequence[Route], version: str) -> bytes:
    """The document as JSON."""
    schemas, components = _schemas(routes)
    paths: dict[str, Json] = {}
    for route in routes:
        paths.setdefault(route.template, {})[route.method.lower()] = _operation(route, schemas)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "logd",
                "version": version,
                "description": "A log store: durable ingest, exact search. "
                "Every error is an RFC 9457 problem.",
            },
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {
                    "bearer": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "an API key (ldk_...) or a personal access token (ldu_...)",
                    }
                },
            },
        }
    )


class _Schemas:
    """The JSON schema of each type that the routes name."""

    def __init__(self, by_type: Mapping[Any, Json]) -> None:
        self._by_type = by_type

    def of(self, kind: Any) -> Json:
        return self._by_type[kind]


def _schemas(routes: Sequence[Route]) -> tuple[_Schemas, Json]:
    kinds = [Problem, log_schema.PartialReceipt]
    for route in routes:
        kinds += [kind for kind in (route.request, route.response) if kind is not None]
        if route.query is not None:
            kinds += [field.type for field in msgspec.structs.fields(route.query)]
    found, components = msgspec.json.schema_components(kinds, ref_template=_TEMPLATE)
    return _Schemas(dict(zip(kinds, found, strict=True))), components


def _operation(route: Route, schemas: _Schemas) -> Json:
    operation: Json = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": [*_path_parameters(route), *_query_parameters(route, schemas)],
        "responses": _responses(route, schemas),
    }
    if route.payload is Payload.ENTRIES:
        operation["parameters"].append(_IDEMPOTENCY_KEY)
    if route.request is not None:
        operation["requestBody"] = _request(route, schemas)
    if route.access is Access.OPEN:
        operation["security"] = []
    else:
        operation["security"] = [{"bearer": []}]
        operation["description"] = f"Takes {route.access.value}."
    return operation


def _operation_id(route: Route) -> str:
    """`ingest.ingest`: the module and the name of the operation."""
    operation: Any = route.operation
    return f"{operation.__module__.rpartition('.')[2]}.{operation.__name__}"


_IDEMPOTENCY_KEY: Final[Json] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "the same key and body within 24 h get the first response again",
    "schema": {"type": "string", "pattern": "^[!-~]{1,128}$"},
}


def _path_parameters(route: Route) -> list[Json]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string"}
            if name == "logId"
            else {"type": "string", "format": "uuid"},
        }
        for name in _PARAMETER.findall(route.template)
    ]


def _query_parameters(route: Route, schemas: _Schemas) -> list[Json]:
    if route.query is None:
        return []
    return [
        {
            "name": field.encode_name,
            "in": "query",
            "required": False,
            "schema": schemas.of(field.type)
            | ({} if field.default in (msgspec.UNSET, "") else {"default": field.default}),
        }
        for field in msgspec.structs.fields(route.query)
    ]


def _request(route: Route, schemas: _Schemas) -> Json:
    json = _media(schemas.of(route.request), route.request)
    content: Json = {"application/json": json}
    if route.payload is Payload.ENTRIES:
        content["application/x-ndjson"] = {
            "schema": {"type": "string", "description": "one entry a line"}
        }
    return {"required": route.payload is not Payload.OPTIONAL_JSON, "content": content}


def _media(form: Json, kind: Any) -> Json:
    media: Json = {"schema": form}
    if kind in EXAMPLES:
        media["example"] = msgspec.Raw(msgspec.json.encode(EXAMPLES[kind]))
    return media


def _responses(route: Route, schemas: _Schemas) -> Json:
    responses: Json = {str(route.status): _success(route, schemas)}
    if route.payload is Payload.ENTRIES:
        partial = log_schema.PartialReceipt
        responses[str(_LISTED)] = {
            "description": "The good entries are stored, the bad ones are listed",
            "content": {"application/json": _media(schemas.of(partial), partial)},
        }
    for status, codes in sorted(_problems(route).items()):
        responses[str(status)] = _problem(status, codes, schemas)
    return responses


def _success(route: Route, schemas: _Schemas) -> Json:
    response: Json = {"description": HTTPStatus(route.status).phrase}
    if route.response is not None:
        response["content"] = {
            "application/json": _media(schemas.of(route.response), route.response)
        }
    return response


def _problems(route: Route) -> dict[int, tuple[str, ...]]:
    """The codes of the problems that a route can end with, by status."""
    found: dict[int, tuple[str, ...]] = {500: ("internal_error",), 503: ("overloaded",)}
    if route.query is not None:
        found[400] = ("invalid_request",)
    if route.access is not Access.OPEN:
        found[401] = ("credential_missing", "credential_unknown")
        found[403] = _FORBIDDEN[route.access]
        found[503] = ("overloaded", "storage_failed", "storage_full")
    if "{" in route.template:
        found[404] = tuple(
            f"no_such_{_NAMES[name]}"
            for name in _PARAMETER.findall(route.template)
            if name in _NAMES
        )
    if route.payload is not Payload.NONE:
        found[400] = ("invalid_request", "malformed_json")
        found[408] = ("body_too_slow",)
        found[413] = ("body_too_large",)
        found[415] = ("unsupported_content_encoding", "unsupported_content_type")
    for status, codes in route.codes.items():
        found[status] = (*found.get(status, ()), *codes)
    return found


_FORBIDDEN: Final = {
    Access.USER: ("admin_required", "server_admin_required", "user_required"),
    Access.READ: ("scope_missing", "wrong_project"),
    Access.INGEST: ("key_required", "scope_missing"),
}
_NAMES: Final = {
    "orgId": "organisation",
    "projectId": "project",
    "userId": "user",
    "keyId": "key",
    "tokenId": "token",
}


def _problem(status: int, codes: tuple[str, ...], schemas: _Schemas) -> Json:
    return {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(f'`{code}`' for code in codes)}",
        "headers": {"X-Request-Id": {"schema": {"type": "string"}}},
        "content": {
            CONTENT_TYPE: {
                "schema": schemas.of(Problem),
                "examples": {code: {"value": _example(status, code)} for code in codes},
            }
        },
    }


def _example(status: int, code: str) -> Json:
    return {
        "type": type_of(code),
        "title": title_of(code),
        "status": status,
        "detail": title_of(code),
        "code": code,
        "requestId": "5d3c1f0e8a6b4c2d9e7f1a3b5c7d9e0f",
    }
