"""Projects of an organisation, and who is assigned to them."""

from msgspec import UNSET

from logd.api import schema
from logd.api.exchange import NO_CONTENT, Call, Response, json_response
from logd.api.reading import read_json
from logd.api.service import Services
from logd.entry import ProjectId


async def list_all(services: Services, call: Call) -> Response:
    caller, control = services.user_of(call), services.control
    org_id = call.params["orgId"]
    return await services.listed(lambda: map(schema.project, control.projects_of(caller, org_id)))


async def create(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    sent = read_json(call.body, schema.NewProject)
    identity = services.identity
    project = await identity.change(
        identity.control.create_project, caller, call.params["orgId"], sent.name, sent.color
    )
    return json_response(schema.created_project(project), 201)


async def update(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    sent = read_json(call.body, schema.ProjectChange)
    identity = services.identity
    project = await identity.change(
        identity.control.update_project,
        caller,
        call.params["projectId"],
        org_id=call.params["orgId"],
        name=None if sent.name is UNSET else sent.name,
        color=None if sent.color is UNSET else sent.color,
    )
    return json_response(schema.project(project))


async def delete(services: Services, call: Call) -> Response:
    project_id = ProjectId(call.params["projectId"])
    await services.identity.delete_project(services.user_of(call), project_id, call.params["orgId"])
    return NO_CONTENT


async def list_assignees(services: Services, call: Call) -> Response:
    caller, control = services.user_of(call), services.control
    project_id, org_id = call.params["projectId"], call.params["orgId"]
    return await services.listed(
        lambda: map(schema.assignee, control.assignees(caller, project_id, org_id=org_id))
    )


async def assign(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    identity = services.identity
    user = await identity.change(
        identity.control.assign,
        caller,
        call.params["projectId"],
        call.params["userId"],
        org_id=call.params["orgId"],
    )
    return json_response(schema.assignee(user))


async def unassign(services: Services, call: Call) -> Response:
    caller = services.user_of(call)
    identity = services.identity
    await identity.change(
        identity.control.unassign,
        caller,
        call.params["projectId"],
        call.params["userId"],
        org_id=call.params["orgId"],
    )
    return NO_CONTENT
