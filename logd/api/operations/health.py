"""Whether the process lives, whether it takes requests, and what it offers."""

from logd.api import schema
from logd.api.errors import NotReady
from logd.api.exchange import Call, Response, json_response, raw_json_response
from logd.api.service import Services


async def livez(services: Services, call: Call) -> Response:
    return json_response(schema.Health("alive"))


async def readyz(services: Services, call: Call) -> Response:
    if not services.serving():
        raise NotReady("the daemon is stopping")
    return json_response(schema.Health("ready"))


async def describe(services: Services, call: Call) -> Response:
    return raw_json_response(services.openapi())
