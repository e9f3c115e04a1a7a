"""One request from head to response, the same behind every door.

    head -> route -> credential -> ids -> access -> query -> media -> body -> operation -> response

The head decides alone whether the body is read at all.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from logd.api import content, problems
from logd.api.errors import Unauthenticated
from logd.api.exchange import Body, Call, Head, Response, with_common
from logd.api.express import Express
from logd.api.operations import ingest
from logd.api.reading import bearer_secret, canonical_uuid, query_parameters
from logd.api.routes import ROUTES
from logd.api.routing import Access, Payload, Route, Router
from logd.api.service import Services
from logd.control.errors import Kind, NotFound
from logd.control.model import KeyPrincipal, Principal

MAX_CONTROL_BODY_BYTES: Final = 65_536

_KINDS: Final[dict[str, Kind]] = {
    "orgId": "organisation",
    "projectId": "project",
    "userId": "user",
    "keyId": "key",
    "tokenId": "token",
}
"""Path parameters that are UUIDs, and what a text that is none fails to be the id of."""


class Api:
    """The operations behind the routes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.express = Express(services)
        self._router = Router(ROUTES)
        self._parameters = {
            route.name: frozenset(
                field.encode_name for field in msgspec.structs.fields(route.query)
            )
            for route in ROUTES
            if route.query is not None
        }

    async def answer(self, head: Head, body: Body) -> Response:
        """The response, an error's problem included. Only a cancellation gets out."""
        try:
            response = await self._answer(head, body)
        except Exception as error:  # noqa: BLE001  # the root of a request: it is answered, logged
            response = problems.to_response(error, head.request_id)
        return with_common(response, head.request_id)

    def answer_at_once(self, head: Head) -> Response | None:
        """The same to a request without a body, if no wait is needed; None: it is for `answer`, and
        nothing was done."""
        try:
            response = self._answer_at_once(head)
        except Exception as error:  # noqa: BLE001  # the root of a request: it is answered, logged
            response = problems.to_response(error, head.request_id)
        return None if response is None else with_common(response, head.request_id)

    def _answer_at_once(self, head: Head) -> Response | None:
        route, raw_params = self._router.find(head.method, head.path)
        if route.at_once is None:
            return None
        principal = self._authenticate(route, head)
        params = _canonical(raw_params)
        self._check_access(route, principal, params)
        call = Call(head, params, self._query(route, head), principal, b"", _hold_nothing)
        return route.at_once(self._services, call)

    async def _answer(self, head: Head, body: Body) -> Response:
        route, raw_params = self._router.find(head.method, head.path)
        principal = self._authenticate(route, head)
        params = _canonical(raw_params)
        self._check_access(route, principal, params)
        query = self._query(route, head)
        if route.payload is Payload.ENTRIES:
            ingest.check_head(head, query)
        plain = await self._read(route, head, body)
        # The body may have taken its time, and the project gone meanwhile: work for a project that
        # is deleted must not begin.
        self._check_access(route, principal, params)
        call = Call(head, params, query, principal, plain, body.hold_answer)
        response = await route.operation(self._services, call)
        if head.method == "GET":  # what changed something must not be refused any more
            body.hold_answer(len(response.body))
        return response

    def _authenticate(self, route: Route, head: Head) -> Principal | None:
        if route.access is Access.OPEN:
            return None
        principal = self._services.control.authenticate(bearer_secret(head))
        if principal is None:
            raise Unauthenticated("credential_unknown", "nobody has this credential (any more)")
        return principal

    def _check_access(
        self, route: Route, principal: Principal | None, params: dict[str, str]
    ) -> None:
        """Raises Forbidden, NotFound. What depends on more than the path is the operation's."""
        if principal is None:
            return
        control = self._services.control
        if route.access is Access.READ:
            control.may_read_logs(principal, params["projectId"])
        elif route.access is Access.INGEST:
            own = principal.project_id if isinstance(principal, KeyPrincipal) else ""
            control.may_ingest(principal, own)
        else:
            control.user_of(principal)

    def _query(self, route: Route, head: Head) -> Mapping[str, str]:
        known = self._parameters.get(route.name)
        if known is None or not head.query:
            return {}
        return query_parameters(head.query, known)

    async def _read(self, route: Route, head: Head, body: Body) -> bytes:
        if route.payload is Payload.ENTRIES:
            return await ingest.read_body(head, body, self._services.max_body_bytes)
        if route.payload is Payload.NONE:
            await body.read(MAX_CONTROL_BODY_BYTES)  # of no meaning here, but not yet received
            return b""
        encoding = content.encoding_of(head)
        sent = await body.read(MAX_CONTROL_BODY_BYTES)
        if sent or route.payload is Payload.JSON:
            content.check_json(head)
        if not sent:
            return b""
        return await content.decompress(sent, encoding, MAX_CONTROL_BODY_BYTES, body)


def _hold_nothing(count: int) -> None:
    """What is large is not answered at once."""


def _canonical(raw: Mapping[str, str]) -> dict[str, str]:
    """Ids in canonical form. Raises NotFound for what cannot be an id."""
    params = {}
    for name, text in raw.items():
        uuid = canonical_uuid(text) if name in _KINDS else text
        if uuid is None:
            raise NotFound(_KINDS[name])
        params[name] = uuid
    return params
