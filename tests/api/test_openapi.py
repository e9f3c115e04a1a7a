"""The OpenAPI document says what the routes do."""

import json
import re
from pathlib import Path
from typing import Any

from live_daemon import Daemon

from logd.api.openapi import document
from logd.api.problems import TABLE
from logd.api.routes import ROUTES
from logd.api.routing import Access, Payload


def described() -> Any:
    return json.loads(document(ROUTES, "1.2.3"))


async def test_the_document_is_served_to_everybody(daemon: Daemon) -> None:
    response = await daemon.call("GET", "/v1/openapi.json")
    assert response.status_code == 200
    assert response.json()["openapi"] == "3.1.0"


def test_every_route_is_described() -> None:
    paths = described()["paths"]
    found = {f"{method.upper()} {path}" for path, item in paths.items() for method in item}
    assert found == {route.name for route in ROUTES}


def test_operation_ids_are_unique() -> None:
    ids = [op["operationId"] for item in described()["paths"].values() for op in item.values()]
    assert len(ids) == len(set(ids)) == len(ROUTES)


def test_every_reference_has_its_schema() -> None:
    text = document(ROUTES, "1").decode()
    schemas = described()["components"]["schemas"]
    references = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert references <= set(schemas)
    assert {"Problem", "LogPage", "IngestEntry", "PartialReceipt"} <= set(schemas)


def test_every_route_with_a_body_describes_it_with_an_example() -> None:
    paths = described()["paths"]
    for route in ROUTES:
        operation = paths[route.template][route.method.lower()]
        assert ("requestBody" in operation) == (route.payload is not Payload.NONE)
        if "requestBody" in operation:
            assert "example" in operation["requestBody"]["content"]["application/json"], route.name


def test_credentials_and_problems_are_said() -> None:
    paths = described()["paths"]
    for route in ROUTES:
        operation = paths[route.template][route.method.lower()]
        is_open = route.access is Access.OPEN
        assert operation["security"] == ([] if is_open else [{"bearer": []}])
        assert ("401" in operation["responses"]) != is_open
        assert str(route.status) in operation["responses"]
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                examples = response["content"]["application/problem+json"]["examples"]
                assert examples, (route.name, status)
                for code, example in examples.items():
                    assert example["value"]["code"] == code


def test_query_parameters_are_described_with_their_wire_names() -> None:
    listing = described()["paths"]["/v1/projects/{projectId}/logs"]["get"]["parameters"]
    assert [p["name"] for p in listing if p["in"] == "query"] == [
        "level",
        "search",
        "from",
        "to",
        "limit",
        "cursor",
    ]


def test_an_entry_as_listed_says_of_what_type_its_fields_are() -> None:
    fields = described()["components"]["schemas"]["LogEntry"]["properties"]
    assert fields["tags"] == {"type": "array", "items": {"type": "string"}}
    assert fields["meta"] == {"type": "object"}


def test_every_route_and_code_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    assert [route.name for route in ROUTES if f"`{route.name}`" not in page] == []
    codes = {row.code for row in TABLE.values() if row.code}
    codes |= {code for route in ROUTES for listed in route.codes.values() for code in listed}
    assert [code for code in sorted(codes) if f"`{code}`" not in page] == []


async def test_a_described_body_refuses_what_is_not_described(daemon: Daemon) -> None:
    """The structs that describe are those that validate."""
    ids = dict.fromkeys(("orgId", "userId", "tokenId", "keyId", "logId"), daemon.org)
    for route in ROUTES:
        if route.payload in (Payload.JSON, Payload.OPTIONAL_JSON):
            path = route.template.format(projectId=daemon.project, **ids)
            body = {"surely-unknown": 1}
            response = await daemon.call(route.method, path, daemon.admin, json=body)
            assert response.status_code == 400, route.name
