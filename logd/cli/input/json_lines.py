"""JSON lines: the ingest form, the objects of other programs by common names, or whatever comes.

Nothing of a line gets lost: a field without a place in an entry goes to its meta, and so does a
level or time that cannot be read.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from logd.cli.input.entries import (
    Defaults,
    Fields,
    Unreadable,
    entry_json,
    filled_json,
    object_of,
    plain_entry,
    texts,
)
from logd.cli.input.journal import entry_of_journal, is_journal
from logd.cli.input.values import level_of, time_of
from logd.entry import LEVELS, LevelName

INGEST_FIELDS: Final = frozenset(
    {"projectId", "level", "message", "source", "timestamp", "tags", "meta"}
)
LEVEL_NAMES: Final = ("log.level", "level", "severity")
TIME_NAMES: Final = ("@timestamp", "timestamp", "time", "ts", "date")
MESSAGE_NAMES: Final = ("message", "msg", "log", "body")
SOURCE_NAMES: Final = ("service.name", "source", "logger", "container.name", "host.name")

_LEVEL_JSON: Final = frozenset(f'"{level}"'.encode() for level in LEVELS)

T = TypeVar("T")


def ingest_entry(line: bytes, defaults: Defaults) -> bytes:
    """The line is an entry; the daemon judges it. Raises Unreadable."""
    return filled_json(object_of(line), defaults)


def json_entry(line: bytes, defaults: Defaults) -> bytes:
    """An object: in the ingest form, of the journal, or with common names. Raises Unreadable."""
    fields = object_of(line)
    if _is_ingest_form(fields):
        return filled_json(fields, defaults)
    if is_journal(fields):
        return entry_of_journal(fields, defaults)
    return _entry_by_names(line, fields, defaults)


def any_entry(line: bytes, defaults: Defaults) -> bytes:
    """What looks like JSON and is, as such; all else as plain text."""
    if not line.lstrip().startswith(b"{"):
        return plain_entry(line, defaults)
    try:
        return json_entry(line, defaults)
    except Unreadable:
        return plain_entry(line, defaults)


def _is_ingest_form(fields: Fields) -> bool:
    named = fields.keys() <= INGEST_FIELDS and {"level", "message", "source"} <= fields.keys()
    return named and bytes(fields["level"]) in _LEVEL_JSON


def _entry_by_names(line: bytes, fields: Fields, defaults: Defaults) -> bytes:
    rest = dict(fields)
    message = _taken(rest, MESSAGE_NAMES, str)
    level: LevelName | None = _taken(rest, LEVEL_NAMES, level_of)
    timestamp = _taken(rest, TIME_NAMES, time_of)
    source = _taken(rest, SOURCE_NAMES, str)
    tags = texts(rest["tags"]) if "tags" in rest else ()
    if tags:
        del rest["tags"]
    return entry_json(
        defaults,
        message=line.decode("utf-8", "replace").strip() if message is None else message,
        level=level,
        source=source,
        timestamp=timestamp,
        tags=tags or (),
        meta=_with_own_meta(rest),
    )


def _taken(fields: Fields, names: tuple[str, ...], read: Callable[[str], T | None]) -> T | None:
    """The first value of these names that can be read; its field is taken out."""
    for name in names:
        text = _scalar(_at(fields, name))
        value = None if text is None else read(text)
        if value is not None:
            fields.pop(name, None)
            return value
    return None


def _at(fields: Fields, name: str) -> Raw | None:
    """The field `a.b`, or field `b` of the object `a`."""
    if name in fields:
        return fields[name]
    outer, dot, inner = name.partition(".")
    if not dot or not bytes(fields.get(outer, b"")).startswith(b"{"):
        return None
    return object_of(bytes(fields[outer])).get(inner)


def _scalar(value: Raw | None) -> str | None:
    """A text as it is, a number as its digits; None for all else."""
    json = b"" if value is None else bytes(value)
    if json.startswith(b'"'):
        try:
            return msgspec.json.decode(json, type=str)
        except msgspec.DecodeError:  # an escape that is no character: the daemon will refuse it
            return None
    return json.decode() if json[:1] in b"-0123456789" and json else None


def _with_own_meta(rest: Fields) -> Fields:
    """The fields of an object `meta` beside the others, where their names differ."""
    if not bytes(rest.get("meta", b"")).startswith(b"{"):
        return rest
    own = object_of(bytes(rest["meta"]))
    others = {name: value for name, value in rest.items() if name != "meta"}
    return {**others, **own} if own.keys().isdisjoint(others) else rest
