"""The wire's structs of log entries, and the way from stored entries to them."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from logd import entry as limits
from logd.api.schema import Instant, Sent, Uuid, Wire
from logd.entry import Entry, LevelName, ProjectId
from logd.format.logid import log_id
from logd.timestamps import format_timestamp


class IngestEntry(Sent, frozen=True):  # to be described; `format/body.py` reads it
    """A log entry to be stored."""

    project_id: Uuid
    level: LevelName
    message: Annotated[str, Meta(description=f"up to {limits.MAX_MESSAGE_BYTES} bytes of UTF-8")]
    source: Annotated[str, Meta(min_length=1, max_length=limits.MAX_SOURCE_CHARS)]
    timestamp: Annotated[
        Instant | UnsetType, Meta(description="RFC 3339, up to nanoseconds; default: now")
    ] = UNSET
    tags: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=limits.MAX_TAG_CHARS)], ...],
        Meta(max_length=limits.MAX_TAGS),
    ] = ()
    meta: Annotated[
        dict[str, msgspec.Raw],
        Meta(description=f"any JSON object of up to {limits.MAX_META_BYTES} bytes"),
    ] = msgspec.field(default_factory=dict)


Entries = Annotated[
    IngestEntry | tuple[IngestEntry, ...], Meta(description="one entry, or an array of them")
]


class EntryFault(Wire, frozen=True):
    index: int
    pointer: str
    code: str
    detail: str


class Receipt(Wire, frozen=True):
    """`ids`: in request order."""

    ingested: int
    ids: tuple[str, ...]


class PartialReceipt(Wire, frozen=True):
    """`ids`: in request order, null where the entry was rejected; `errors`: the first 100."""

    ingested: int
    ids: tuple[str | None, ...]
    errors: tuple[EntryFault, ...]


_SENT_TAGS: Final = {"type": "array", "items": {"type": "string"}}
_SENT_META: Final = {"type": "object"}


class LogEntry(Wire, frozen=True, gc=False):  # raw: tags and meta leave as the JSON that came
    """A stored log entry, as it was sent; `ts` is its timestamp, in UTC."""

    id: str
    project_id: Uuid
    level: LevelName
    message: str
    source: str
    ts: Instant
    tags: Annotated[Raw, Meta(extra_json_schema=_SENT_TAGS)]
    meta: Annotated[Raw, Meta(extra_json_schema=_SENT_META)]


class LogPage(Wire, frozen=True):
    """`total`: of all pages. `partial`: damaged storage was left out; absent where none was."""

    logs: tuple[LogEntry, ...]
    next_cursor: str | None
    total: int
    partial: Literal[True] | UnsetType = UNSET


class Stats(msgspec.Struct, frozen=True):
    """Entries by level."""

    DEBUG: int
    INFO: int
    WARN: int
    ERROR: int


def log_entry(project_id: ProjectId, entry: Entry) -> LogEntry:
    return LogEntry(
        log_id(project_id, entry.seq),
        project_id,
        entry.level,
        entry.message,
        entry.source,
        format_timestamp(entry.ts_ns),
        Raw(entry.tags),
        Raw(entry.meta),
    )


class IngestParameters(Sent, frozen=True):
    partial: Annotated[
        Literal["true", "false"], Meta(description="store the good entries of a mixed batch")
    ] = "false"


class ListParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    level: LevelName | UnsetType = UNSET
    search: Annotated[str, Meta(description="the search language, see docs/search.md")] = ""
    from_: Annotated[Instant | UnsetType, Meta(description="inclusive")] = msgspec.field(
        name="from", default=UNSET
    )
    to: Annotated[Instant | UnsetType, Meta(description="exclusive")] = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Annotated[str | UnsetType, Meta(description="the previous nextCursor")] = UNSET
