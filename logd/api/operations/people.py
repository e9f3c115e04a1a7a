"""The caller himself, his tokens, and the server admin's view of all users."""

from msgspec import UNSET, UnsetType

from logd.api import schema
from logd.api.exchange import NO_CONTENT, Call, Response, json_response
from logd.api.reading import read_instant, read_json
from logd.api.service import Services


async def show_me(services: Services, call: Call) -> Response:
    return json_response(schema.user(services.control.user(services.user_of(call))))


async def update_me(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    sent = read_json(call.body, schema.OwnChange)
    identity = services.identity
    user = await identity.change(
        identity.control.update_user, caller, caller, name=_or_none(sent.name)
    )
    return json_response(schema.user(user))


async def list_tokens(services: Services, call: Call) -> Response:
    caller, control = services.user_of(call), services.control
    return await services.listed(lambda: map(schema.token, control.tokens_of(caller)))


async def create_token(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    sent = read_json(call.body, schema.NewToken)
    identity = services.identity
    token, secret = await identity.change(
        identity.control.issue_token,
        caller,
        sent.name,
        read_instant(sent.expires_at, "/expiresAt"),
    )
    return json_response(schema.token_with_secret(token, secret), 201)


async def revoke_token(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    identity = services.identity
    await identity.change(identity.control.revoke_token, caller, call.params["tokenId"])
    return NO_CONTENT


async def list_users(services: Services, call: Call) -> Response:
    caller, control = services.user_of(call), services.control
    return await services.listed(lambda: map(schema.user, control.users(caller)))


async def create_user(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    sent = read_json(call.body, schema.NewUser)
    identity = services.identity
    user = await identity.change(
        identity.control.create_user,
        caller,
        sent.email,
        sent.name,
        server_admin=sent.server_admin,
    )
    return json_response(schema.user(user), 201)


async def update_user(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    sent = read_json(call.body, schema.UserChange)
    identity = services.identity
    user = await identity.change(
        identity.control.update_user,
        caller,
        call.params["userId"],
        email=_or_none(sent.email),
        name=_or_none(sent.name),
        disabled=None if sent.disabled is UNSET else sent.disabled,
        server_admin=None if sent.server_admin is UNSET else sent.server_admin,
    )
    return json_response(schema.user(user))


def _or_none(text: str | UnsetType) -> str | None:
    return None if text is UNSET else text
