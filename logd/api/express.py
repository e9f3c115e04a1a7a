"""Ingest requests of the common kind, from head to response without a task of their own.

A body that is all there, plain, of few entries, without an Idempotency-Key: what comes of them at
the same time is taken together. Secrets are looked at once, bodies of one entry are decoded, framed
and shown as one batch, and each response is made when the entries are durable. What is not beyond
doubt, and what is to be refused, is handed back for `Api.answer`; nothing was done with it then.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from logd.api import content, problems
from logd.api.errors import InvalidRequest, Unauthenticated, UnsupportedMedia
from logd.api.exchange import HeadText, RequestIds, Response, with_common
from logd.api.operations.ingest import receipt
from logd.api.reading import bearer_secret, idempotency_key
from logd.api.service import Services
from logd.control.model import KeyPrincipal
from logd.daemon.bodies import Ingested
from logd.daemon.deputy import Commit
from logd.entry import ProjectId
from logd.errors import LogdError

_log = logging.getLogger("logd.api")

MAX_BODY_BYTES: Final = 65_536
_MAX_GROUP_BYTES: Final = 262_144
_MUCH_BYTES: Final = 131_072  # a millisecond or two


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


Told = Callable[[Response | None], None]
"""Called once, on the event loop or by its deputy, with the response to a request; None: it is for
`Api.answer`. Must not raise."""


class _Taken(NamedTuple):
    ticket: Ticket
    body: bytes
    told: Told


class Express:
    def __init__(self, services: Services) -> None:
        self._control = services.control
        self._ingest = services.ingest
        self.deputy = services.deputy
        self._request_ids = RequestIds(services.random_bytes)
        self._max_body_bytes = min(services.max_body_bytes, MAX_BODY_BYTES)
        self._taken: list[_Taken] = []
        self._taken_bytes = 0

    @property
    def has_much(self) -> bool:
        """What was taken is to be begun before more is."""
        return self._taken_bytes >= _MUCH_BYTES

    def take(self, ticket: Ticket, body: bytes, told: Told) -> bool:
        """Whether the request is one of these: then `told` is called, in or after `take_commit` or
        `commit_soon`."""
        if len(body) > self._max_body_bytes:
            return False
        self._taken.append(_Taken(ticket, body, told))
        self._taken_bytes += len(body)
        return True

    def take_commit(self) -> Commit | None:
        """What was taken, for the deputy; None where there is none, or it is committed soon."""
        self._begin_all()
        return self._ingest.take_commit()

    def commit_soon(self) -> None:
        """What was taken is committed when the disk has time."""
        self._begin_all()
        self._ingest.commit_soon()

    def _begin_all(self) -> None:
        taken, self._taken = self._taken, []
        self._taken_bytes = 0
        by_secret: dict[str, list[_Taken]] = {}
        for request in taken:
            by_secret.setdefault(request.ticket.secret, []).append(request)
        for secret, requests in by_secret.items():
            project = self._project_of(secret)
            for group in _groups(requests):
                self._begin(project, group)

    def _project_of(self, secret: str) -> ProjectId | None:
        """Where the owner of this secret may send entries to."""
        principal = self._control.authenticate(secret)
        if not isinstance(principal, KeyPrincipal):
            return None
        try:
            self._control.may_ingest(principal, principal.project_id)
        except LogdError:
            return None
        return principal.project_id

    def _begin(self, project: ProjectId | None, group: Sequence[_Taken]) -> None:
        if project is not None and self._is_begun(project, group):
            return
        if len(group) == 1:
            group[0].told(None)
            return
        for request in group:  # one of them is at fault
            self._begin(project, (request,))

    def _is_begun(self, project: ProjectId, group: Sequence[_Taken]) -> bool:
        bodies = [request.body for request in group]
        try:
            answer = partial(self._answer, group)
            return self._ingest.store_soon(project, bodies, group[0].ticket.ndjson, answer)
        except LogdError:  # `Api.answer` meets it again, and tells the client
            return False
        except Exception:  # noqa: BLE001  # the root of a group: nothing of it was done
            _log.exception("BUG: requests that came together cannot be taken together")
            return False

    def _answer(self, group: Sequence[_Taken], result: Sequence[Ingested] | LogdError) -> None:
        """Each as soon as its response is made: its client is at work then."""
        for number, request in enumerate(group):
            request_id = request.ticket.request_id or self._request_ids.next()
            if isinstance(result, LogdError):
                response = problems.to_response(result, request_id)
            else:
                response = receipt(result[number])
            request.told(with_common(response, request_id))


def _groups(requests: Sequence[_Taken]) -> Iterator[Sequence[_Taken]]:
    """JSON objects together, up to a size; what else there is, each by itself."""
    group: list[_Taken] = []
    size = 0
    for request in requests:
        if request.ticket.ndjson or not request.body.startswith(b"{"):
            yield (request,)
            continue
        if size + len(request.body) > _MAX_GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append(request)
        size += len(request.body)
    if group:
        yield group
