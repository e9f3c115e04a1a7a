"""The JSON of the /v1 interface, as far as this client speaks it."""

import datetime
from collections.abc import Mapping

import msgspec

from logd.entry import LevelName


class NewEntry(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True):
    """An entry to be stored. `project_id` None: the client's project.

    `timestamp`: RFC 3339 text or an aware datetime; None is the time of receipt.
    """

    level: LevelName
    message: str
    source: str
    timestamp: str | datetime.datetime | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, object] = {}
    project_id: str | None = None


class LogEntry(msgspec.Struct, frozen=True, rename="camel"):
    """A stored entry. `ts`: RFC 3339 in UTC, with as many fraction digits as it needs."""

    id: str
    project_id: str
    level: LevelName
    message: str
    source: str
    ts: str
    tags: tuple[str, ...]
    meta: dict[str, object]


class Page(msgspec.Struct, frozen=True):
    """Entries, newest first. `total` counts those of all pages. `partial`: stored data is
    damaged, and entries that belong here may be missing."""

    logs: tuple[LogEntry, ...]
    next_cursor: str | None
    total: int
    partial: bool = False


class RawPage(msgspec.Struct, frozen=True, rename="camel"):
    """A page whose entries are JSON texts, just as the daemon sent them."""

    logs: tuple[msgspec.Raw, ...]
    next_cursor: str | None
    total: int
    partial: bool = False


class Stats(msgspec.Struct, frozen=True):
    """How many entries the project holds, by level."""

    DEBUG: int
    INFO: int
    WARN: int
    ERROR: int

    @property
    def total(self) -> int:
        return self.DEBUG + self.INFO + self.WARN + self.ERROR


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong with a request: in the field at `pointer`, of entry `index` of the body where
    that is not None, or in a query parameter, at `position` of its text."""

    code: str = ""
    detail: str = ""
    pointer: str | None = None
    index: int | None = None
    parameter: str | None = None
    position: int | None = None

    def __str__(self) -> str:
        place = (self.pointer or "").lstrip("/") or self.parameter or ""
        return self.detail if self.detail.startswith(place) else f"{place}: {self.detail}"


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """RFC 9457, with the daemon's additions."""

    title: str = ""
    detail: str = ""
    code: str = ""
    request_id: str = ""
    errors: tuple[Fault, ...] = ()


class IngestAnswer(msgspec.Struct, frozen=True):
    """`ids` in request order, None where the entry was refused."""

    ingested: int
    ids: tuple[str | None, ...]
    errors: tuple[Fault, ...] = ()
