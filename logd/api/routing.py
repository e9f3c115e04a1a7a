"""What a route is, and finding the one that a path names."""

import enum
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from logd.api.errors import MethodNotAllowed, NoSuchRoute
from logd.api.exchange import Call, Response
from logd.api.schema import NoParameters
from logd.api.service import Services

Operation = Callable[[Services, Call], Awaitable[Response]]
OperationAtOnce = Callable[[Services, Call], Response | None]

_USUAL_PATH_CHARS: Final = 256  # a longer one is of no resource, and would be kept for anybody


class Access(enum.Enum):
    """What credential a route needs. Who may do what with it is `control/permissions.py`."""

    OPEN = "none"
    USER = "a user's token"
    READ = "an API key of the project with the scope read, or the token of a user who sees it"
    INGEST = "an API key with the scope ingest"


class Payload(enum.Enum):
    """What body a route reads."""

    NONE = "none"
    JSON = "JSON"
    OPTIONAL_JSON = "JSON or nothing"
    ENTRIES = "log entries"


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One operation on one resource. `template`: literal segments and `{parameters}`;
    `at_once`: the same for a request without a body, without a wait, None where that cannot be;
    `codes`: those of the problems that are its own, by status."""

    method: str
    template: str
    operation: Operation
    at_once: OperationAtOnce | None = None
    summary: str
    tag: str
    access: Access = Access.USER
    query: type[msgspec.Struct] | None = NoParameters
    request: Any = None
    payload: Payload = Payload.NONE
    response: Any = None
    status: int = 200
    codes: Mapping[int, tuple[str, ...]] = {}

    @property
    def name(self) -> str:
        return f"{self.method} {self.template}"


class Router:
    """Paths to routes. A literal segment wins over a parameter."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._by_length: dict[int, list[tuple[tuple[str, ...], dict[str, Route]]]] = {}
        by_template: dict[str, dict[str, Route]] = {}
        for route in routes:
            by_template.setdefault(route.template, {})[route.method] = route
        for template, methods in by_template.items():
            segments = tuple(template.split("/"))
            self._by_length.setdefault(len(segments), []).append((segments, methods))
        for templates in self._by_length.values():
            templates.sort(key=lambda entry: [segment[:1] == "{" for segment in entry[0]])
        self._find_usual = lru_cache(maxsize=1024)(self._find)

    def find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        """The route and the path's parameters. `path`: percent-encoded. HEAD is served as GET.
        Raises NoSuchRoute, MethodNotAllowed."""
        find = self._find_usual if len(path) <= _USUAL_PATH_CHARS else self._find
        return find(method, path)

    def _find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        segments = path.split("/")
        for template, methods in self._by_length.get(len(segments), ()):
            params = _match(template, segments)
            if params is not None:
                route = methods.get("GET" if method == "HEAD" else method)
                if route is None:
                    raise MethodNotAllowed(_allowed(methods))
                return route, params
        raise NoSuchRoute("there is nothing at this path")


def _match(template: tuple[str, ...], segments: list[str]) -> dict[str, str] | None:
    params = {}
    for expected, segment in zip(template, segments, strict=True):
        if expected[:1] == "{" and segment:
            params[expected[1:-1]] = urllib.parse.unquote(segment)
        elif expected != segment:
            return None
    return params


def _allowed(methods: Mapping[str, Route]) -> tuple[str, ...]:
    return tuple(sorted({*methods, *(("HEAD",) if "GET" in methods else ())}))
