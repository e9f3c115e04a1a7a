"""Organisations and their members."""

import itertools

from msgspec import UNSET

from logd.api import schema
from logd.api.exchange import NO_CONTENT, Call, Response, json_response
from logd.api.reading import read_json
from logd.api.service import Services


async def list_own(services: Services, call: Call) -> Response:
    caller, control = services.user_of(call), services.control
    return await services.listed(
        lambda: itertools.starmap(schema.own_organisation, control.orgs_of(caller))
    )


async def show(services: Services, call: Call) -> Response:
    org = services.control.org(services.user_of(call), call.params["orgId"])
    return json_response(schema.organisation(org))


async def create(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    sent = read_json(call.body, schema.NewOrganisation)
    identity = services.identity
    org = await identity.change(identity.control.create_org, caller, sent.name, sent.slug)
    return json_response(schema.organisation(org), 201)


async def update(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    sent = read_json(call.body, schema.OrganisationChange)
    identity = services.identity
    org = await identity.change(
        identity.control.update_org,
        caller,
        call.params["orgId"],
        name=None if sent.name is UNSET else sent.name,
        slug=None if sent.slug is UNSET else sent.slug,
    )
    return json_response(schema.organisation(org))


async def delete(services: Services, call: Call) -> Response:
    await services.identity.delete_org(services.user_of(call), call.params["orgId"])
    return NO_CONTENT


async def list_members(services: Services, call: Call) -> Response:
    caller, control = services.user_of(call), services.control
    org_id = call.params["orgId"]
    return await services.listed(
        lambda: itertools.starmap(schema.member, control.members(caller, org_id))
    )


async def add_member(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    sent = read_json(call.body, schema.NewMember)
    identity = services.identity
    user, role = await identity.change(
        identity.control.add_member, caller, call.params["orgId"], sent.email, sent.role
    )
    return json_response(schema.member(user, role), 201)


async def update_member(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    sent = read_json(call.body, schema.MemberChange)
    identity = services.identity
    user, role = await identity.change(
        identity.control.update_member,
        caller,
        call.params["orgId"],
        call.params["userId"],
        sent.role,
    )
    return json_response(schema.member(user, role))


async def remove_member(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    identity = services.identity
    await identity.change(
        identity.control.remove_member, caller, call.params["orgId"], call.params["userId"]
    )
    return NO_CONTENT
