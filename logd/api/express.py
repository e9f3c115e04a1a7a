"""Ingest requests of the common kind, from head to response without a task of their own.

A body that is all there, plain, of few entries, without an Idempotency-Key: `Express.take` does at
once what `Api.answer` does up to the project's queue, and the response is made when the entries are
durable. Whatever is not beyond doubt it leaves to `Api.answer`, and has done nothing then.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from logd.api import content, problems
from logd.api.errors import InvalidRequest, Unauthenticated, UnsupportedMedia
from logd.api.exchange import HeadText, Response, with_common
from logd.api.operations.ingest import receipt
from logd.api.reading import bearer_secret, idempotency_key
from logd.api.service import Services
from logd.control.model import KeyPrincipal
from logd.daemon.logs import Ingested
from logd.errors import LogdError

MAX_BODY_BYTES: Final = 65_536


class Ticket(msgspec.Struct, frozen=True):
    """What the head of such a request says; it holds as long as the head is the same. Whether the
    secret is good is asked for every request."""

    secret: str
    ndjson: bool
    request_id: str | None


def ticket_of(text: HeadText) -> Ticket | None:
    """None where the request is not of this kind."""
    if (text.method, text.path, text.query) != ("POST", "/v1/ingest", ""):
        return None
    head = text.head(bytes)
    try:
        if content.encoding_of(head) != "identity" or idempotency_key(head) is not None:
            return None
        return Ticket(bearer_secret(head), content.is_ndjson(head), text.request_id)
    except (InvalidRequest, Unauthenticated, UnsupportedMedia):
        return None


class Express:
    def __init__(self, services: Services) -> None:
        self._control = services.control
        self._logs = services.logs
        self._max_body_bytes = min(services.max_body_bytes, MAX_BODY_BYTES)

    def take(
        self, ticket: Ticket, body: bytes, request_id: str, answer: Callable[[Response], None]
    ) -> bool:
        """Whether the request is under way: then `answer` is called once, later. If not, nothing
        was done."""
        if len(body) > self._max_body_bytes:
            return False
        try:
            principal = self._control.authenticate(ticket.secret)
            if not isinstance(principal, KeyPrincipal):
                return False
            project = principal.project_id
            self._control.may_ingest(principal, project)

            def done(result: Ingested | LogdError) -> None:
                if isinstance(result, Ingested):
                    response = receipt(result)
                else:
                    response = problems.to_response(result, request_id)
                answer(with_common(response, request_id))

            return self._logs.ingest_soon(project, body, ticket.ndjson, done)
        except LogdError:
            return False

    def commit(self) -> None:
        """To be called soon after `take`, when all that is there has been taken."""
        self._logs.commit_now()
