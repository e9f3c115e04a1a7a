"""The entry that a line becomes, and what stands in where the line does not say."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw

from logd.entry import LevelName

Fields = dict[str, Raw]
"""A JSON object whose values stay as they came: no number is rounded."""

_OBJECT: Final = msgspec.json.Decoder(Fields)
_TEXTS: Final = msgspec.json.Decoder(tuple[str, ...])
_encode: Final = msgspec.json.Encoder().encode


class Unreadable(ValueError):
    """The line is not what its format promises. The text is the reason."""


class Defaults(msgspec.Struct, frozen=True):
    """For what a line does not say; `tags` are added to those of the line."""

    project_id: str
    source: str
    level: LevelName = "INFO"
    tags: tuple[str, ...] = ()


def plain_entry(line: bytes, defaults: Defaults) -> bytes:
    """The line is the message."""
    return entry_json(defaults, message=line.decode("utf-8", "replace"))


def entry_json(
    defaults: Defaults,
    *,
    message: str,
    level: LevelName | None = None,
    source: str | None = None,
    timestamp: str | None = None,
    tags: tuple[str, ...] = (),
    meta: Mapping[str, object] | None = None,
) -> bytes:
    entry: dict[str, object] = {
        "projectId": defaults.project_id,
        "level": level or defaults.level,
        "message": message,
        "source": source or defaults.source,
    }
    if timestamp is not None:
        entry["timestamp"] = timestamp
    if tags or defaults.tags:
        entry["tags"] = tags + defaults.tags
    if meta:
        entry["meta"] = meta
    return _encode(entry)


def filled_json(fields: Fields, defaults: Defaults) -> bytes:
    """Of an entry in the ingest form: itself, with what is absent filled in."""
    absent = {"projectId": defaults.project_id, "level": defaults.level, "source": defaults.source}
    entry: dict[str, object] = {**absent, **fields}
    tags = texts(fields["tags"]) if "tags" in fields else ()
    if defaults.tags and tags is not None:
        entry["tags"] = tags + defaults.tags
    return _encode(entry)


def object_of(line: bytes) -> Fields:
    """Raises Unreadable."""
    try:
        return _OBJECT.decode(line.decode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unreadable(f"not a JSON object: {error}") from error


def texts(value: Raw) -> tuple[str, ...] | None:
    """None: not an array of texts."""
    try:
        return _TEXTS.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return None
