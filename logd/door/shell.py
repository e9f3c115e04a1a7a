"""The ASGI layer around the app: it sees to bodies and disconnects, the app to requests.

The app's `receive` brings nothing. Where the client goes away before it is answered the app is
cancelled here: told of it, one version of Quart cancels and the next raises.
"""

from typing import Any, cast

import trio
from hypercorn.typing import (
    ASGIFramework,
    ASGIReceiveCallable,
    ASGISendCallable,
    HTTPScope,
    Scope,
)

from logd.api.app import EXTENSION
from logd.api.exchange import Head, make_head
from logd.api.problems import to_response
from logd.door.body import IncomingBody, Message
from logd.door.limits import LINGER_SECONDS
from logd.door.memory import BodyMemory
from logd.entry import RandomBytes


class Shell:
    """An ASGI app of HTTP requests. Lifespan is not spoken: the storage is open before."""

    def __init__(
        self,
        app: ASGIFramework,
        memory: BodyMemory,
        stall_seconds: float,
        random_bytes: RandomBytes,
    ) -> None:
        self._app = app
        self._memory = memory
        self._stall_seconds = stall_seconds
        self._random_bytes = random_bytes

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        if scope["type"] != "http":
            raise AssertionError(f"BUG: the door lets no {scope['type']} through")
        head = make_head(
            scope["method"],
            f"{scope['raw_path'].decode('ascii')}?{scope['query_string'].decode('ascii')}",
            scope["headers"],
            self._random_bytes,
        )
        body = IncomingBody(
            cast(Any, receive), _declared_bytes(scope), self._memory, self._stall_seconds
        )
        if not _has_body(scope):
            await body.skip(LINGER_SECONDS)  # its end is here already
        exchange = _Exchange(head, body, receive, send)
        cast(Message, scope)["extensions"][EXTENSION] = exchange
        await exchange.run(self._app, scope)


def _has_body(scope: HTTPScope) -> bool:
    names = {name for name, _ in scope["headers"]}
    return b"transfer-encoding" in names or bool(_declared_bytes(scope))


def _declared_bytes(scope: HTTPScope) -> int | None:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value)
    return None


class _Exchange:
    """One request and its answer."""

    def __init__(
        self, head: Head, body: IncomingBody, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        self.head = head
        self.body = body
        self._receive = receive
        self._send = cast(Any, send)
        self._began = False
        self._ended = False

    async def run(self, app: ASGIFramework, scope: Scope) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._cancel_at_disconnect, nursery.cancel_scope)
                await app(scope, cast(Any, trio.sleep_forever), cast(Any, self._answer))
                nursery.cancel_scope.cancel()
        except Exception as error:
            if self._began:
                raise
            await self._fail(error)
        finally:
            self.body.release()

    async def _cancel_at_disconnect(self, scope: trio.CancelScope) -> None:
        """When the client goes before its answer is complete. Afterwards the end of the exchange
        must not cancel the app, which may still be within the last send."""
        await self.body.settled.wait()
        while not self.body.client_gone:
            message = await self._receive()
            self.body.client_gone = message["type"] == "http.disconnect"
        if not self._ended:
            scope.cancel()

    async def _answer(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._began = True
            if not self.body.complete:
                await self.body.skip(LINGER_SECONDS)
                self.body.abandon()
            if not self.body.complete:
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        self._ended = message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)

    async def _fail(self, error: Exception) -> None:
        """A defect of ours outside the operations: answered and logged like one inside."""
        response = to_response(error, self.head.request_id)
        headers = [
            *response.headers,
            ("x-request-id", self.head.request_id),
            ("content-length", str(len(response.body))),
        ]
        encoded = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers]
        await self._answer(
            {"type": "http.response.start", "status": response.status, "headers": encoded}
        )
        await self._answer({"type": "http.response.body", "body": response.body})
