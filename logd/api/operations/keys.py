"""API keys of a project."""

from msgspec import UNSET

from logd.api import schema
from logd.api.exchange import NO_CONTENT, Call, Response, json_response
from logd.api.reading import read_instant, read_json
from logd.api.service import Services


async def list_all(services: Services, call: Call) -> Response:
    caller, control = services.user_of(call), services.control
    project_id = call.params["projectId"]
    return await services.listed(lambda: map(schema.key, control.keys_of(caller, project_id)))


async def create(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    sent = read_json(call.body, schema.NewKey)
    identity = services.identity
    key, secret = await identity.change(
        identity.control.create_key,
        caller,
        call.params["projectId"],
        sent.name,
        sent.scopes,
        read_instant(sent.expires_at, "/expiresAt"),
    )
    return json_response(schema.key_with_secret(key, secret), 201)


async def update(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    sent = read_json(call.body, schema.KeyChange)
    identity = services.identity
    key = await identity.change(
        identity.control.update_key,
        caller,
        call.params["projectId"],
        call.params["keyId"],
        name=None if sent.name is UNSET else sent.name,
        scopes=None if sent.scopes is UNSET else sent.scopes,
        expires_at_ns=(
            UNSET if sent.expires_at is UNSET else read_instant(sent.expires_at, "/expiresAt")
        ),
    )
    return json_response(schema.key(key))


async def revoke(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    identity = services.identity
    await identity.change(
        identity.control.revoke_key, caller, call.params["projectId"], call.params["keyId"]
    )
    return NO_CONTENT


async def rotate(services: Services, call: Call) -> Response:
    """A body is optional here: without one the old secret ends at once."""
    caller = services.user_of(call)
    sent = read_json(call.body or b"{}", schema.Rotation)
    identity = services.identity
    key, secret = await identity.change(
        identity.control.rotate_key,
        caller,
        call.params["projectId"],
        call.params["keyId"],
        sent.overlap_seconds,
    )
    return json_response(schema.key_with_secret(key, secret))
