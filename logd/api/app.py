"""The Quart app: `Api` behind ASGI. Nothing is decided here.

The door puts what it knows of a request into the scope's extensions: its body, which Quart never
sees, and its head.
"""

from typing import Any, Final, Protocol, cast

from quart import Response as QuartResponse
from quart import request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, InternalServerError, MethodNotAllowed, NotFound

from logd.api.dispatch import Api
from logd.api.errors import Fault, InvalidRequest
from logd.api.exchange import Body, Head, Response
from logd.api.problems import to_response

EXTENSION: Final = "logd"
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""Those of others are answered as requests of no route are: by `Api` all the same."""


class Exchange(Protocol):
    """What the door puts into a scope's extensions, under EXTENSION."""

    head: Head
    body: Body


def make_app(api: Api) -> QuartTrio:
    """An app that answers every path: those of no route with a problem."""
    app = QuartTrio("logd", static_folder=None)
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    app.config["MAX_CONTENT_LENGTH"] = None  # the door counts
    app.config["BODY_TIMEOUT"] = None  # the door has deadlines
    app.config["RESPONSE_TIMEOUT"] = None

    async def view(**_params: str) -> QuartResponse:
        exchange = _exchange()
        return _quart(await api.answer(exchange.head, exchange.body))

    async def unrouted(_error: HTTPException) -> QuartResponse:
        return await view()

    async def refused(error: HTTPException) -> QuartResponse:
        """What Quart itself finds wrong with a request before it looks for a route."""
        head = _exchange().head
        bad = InvalidRequest(Fault("bad_request", error.name))
        return _quart(to_response(bad, head.request_id))

    async def unhandled(error: Exception) -> QuartResponse:
        """A defect in the app around the view; `Api.answer` lets nothing out."""
        cause = getattr(error, "original_exception", None) or error
        return _quart(to_response(cause, _exchange().head.request_id))

    # The routes are those of `api`, which both doors ask: a rule for each would only take longer.
    app.add_url_rule(
        "/<path:_path>", view_func=view, methods=_METHODS, provide_automatic_options=False
    )
    app.register_error_handler(NotFound, unrouted)
    app.register_error_handler(MethodNotAllowed, unrouted)
    app.register_error_handler(HTTPException, refused)
    app.register_error_handler(InternalServerError, unhandled)
    app.register_error_handler(Exception, unhandled)
    return app


def _exchange() -> Exchange:
    scope = cast(dict[str, Any], request.scope)
    return cast(Exchange, scope["extensions"][EXTENSION])


def _quart(response: Response) -> QuartResponse:
    answer = QuartResponse(response.body, response.status)
    answer.headers.clear()
    for name, value in response.headers:
        answer.headers.add(name, value)
    if response.status != 204:
        answer.headers["content-length"] = str(len(response.body))
    return answer
