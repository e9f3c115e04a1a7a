"""What the operations work with."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from logd.api.errors import Unauthenticated
from logd.api.exchange import Call, Response, json_response
from logd.api.log_pages import LogPages
from logd.control.model import UserId
from logd.control.store import Control
from logd.daemon.deputy import Deputy
from logd.daemon.identity import Identity
from logd.daemon.ingest import Ingest
from logd.daemon.queries import Queries
from logd.entry import RandomBytes


@dataclass(frozen=True)
class Services:
    """`max_body_bytes` bounds an ingest body, as sent and decompressed. `serving`: whether the
    daemon wants new requests; when it is stopping it does not. `openapi`: makes the document.
    `deputy`: of the event loop, for the commits of `ingest`."""

    identity: Identity
    ingest: Ingest
    queries: Queries
    pages: LogPages
    deputy: Deputy
    random_bytes: RandomBytes
    max_body_bytes: int
    serving: Callable[[], bool]
    openapi: Callable[[], bytes]

    @property
    def control(self) -> Control:
        """For what answers from memory."""
        return self.identity.control

    def user_of(self, call: Call) -> UserId:
        """The person who asks. Raises Unauthenticated, and Forbidden for an API key."""
        if call.principal is None:
            raise Unauthenticated("credential_missing", "this needs a user's token")
        return self.control.user_of(call.principal)

    async def listed(self, make: Callable[[], Iterable[object]]) -> Response:
        """A list of what `make()` gives. Long ones must not hold up the others: called in a
        thread."""
        return await self.identity.read(lambda: json_response(list(make())))
