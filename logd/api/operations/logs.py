"""Reading a project's log."""

import re
from collections.abc import Mapping
from typing import Final

from logd.api import log_schema
from logd.api.exchange import Call, Response, json_response
from logd.api.service import Services
from logd.entry import LEVEL_CODE, LEVELS, ProjectId
from logd.errors import BadQuery
from logd.query.ast import Filter
from logd.query.syntax import parse_search
from logd.timestamps import parse_timestamp

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
_LOST_PLUS: Final = re.compile(r"(.*\d\d:\d\d(?:\.\d+)?) (\d\d:?\d\d)")
_LONGEST_INSTANT_CHARS: Final = 64  # no timestamp has as many; the pattern takes its time for more


async def list_page(services: Services, call: Call) -> Response:
    project = ProjectId(call.params["projectId"])
    page = await services.queries.list_page(project, *_question(call.query))
    return await services.pages.response(project, page, call)


def list_page_at_once(services: Services, call: Call) -> Response | None:
    project = ProjectId(call.params["projectId"])
    page = services.queries.page_at_hand(project, *_question(call.query))
    return None if page is None else services.pages.response_at_once(project, page)


async def stats(services: Services, call: Call) -> Response:
    counts = await services.queries.stats(ProjectId(call.params["projectId"]))
    return json_response(log_schema.Stats(*counts))


def stats_at_once(services: Services, call: Call) -> Response | None:
    counts = services.queries.stats_at_hand(ProjectId(call.params["projectId"]))
    return None if counts is None else json_response(log_schema.Stats(*counts))


async def show(services: Services, call: Call) -> Response:
    project = ProjectId(call.params["projectId"])
    entry = await services.queries.entry(project, call.params["logId"])
    return json_response(log_schema.log_entry(project, entry))


def _question(query: Mapping[str, str]) -> tuple[Filter, int, str | None]:
    """Raises BadQuery."""
    return read_filter(query), _limit(query), query.get("cursor")


def read_filter(query: Mapping[str, str]) -> Filter:
    """The filters that listing and its relatives share. Raises BadQuery."""
    from_ns = _instant(query, "from")
    to_ns = _instant(query, "to")
    if from_ns is not None and to_ns is not None and from_ns > to_ns:
        raise BadQuery("from", "from_after_to", "from must not be later than to")
    return Filter(
        level=_level(query.get("level")),
        from_ns=from_ns,
        to_ns=to_ns,
        search=parse_search(query.get("search", "")),
    )


def _level(text: str | None) -> int | None:
    if text is None:
        return None
    if text not in LEVEL_CODE:
        raise BadQuery("level", "invalid_level", f"level must be one of {', '.join(LEVELS)}")
    return LEVEL_CODE[text]


def _instant(query: Mapping[str, str], name: str) -> int | None:
    if name not in query:
        return None
    try:
        return parse_timestamp(_with_plus(query[name]))
    except ValueError as error:
        raise BadQuery(name, "invalid_timestamp", f"{name}: {error}") from None


def _with_plus(text: str) -> str:
    """In a query string an offset's unescaped + has become a space."""
    lost = _LOST_PLUS.fullmatch(text) if len(text) <= _LONGEST_INSTANT_CHARS else None
    return text if lost is None else f"{lost[1]}+{lost[2]}"


def _limit(query: Mapping[str, str]) -> int:
    text = query.get("limit", str(DEFAULT_LIMIT))
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MAX_LIMIT):
        raise BadQuery("limit", "invalid_limit", f"limit must be a number from 1 to {MAX_LIMIT}")
    return int(text)
