"""A record of Python's logging -> an entry that the daemon takes, whatever is in the record."""

import datetime
import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from logd.client.wire import NewEntry
from logd.entry import (
    MAX_MESSAGE_BYTES,
    MAX_META_BYTES,
    MAX_SOURCE_CHARS,
    LevelName,
)

_PLAIN_RECORD: Final = logging.LogRecord("", 0, "", 0, "", None, None)
_STANDARD: Final = frozenset(_PLAIN_RECORD.__dict__) | {"message", "asctime", "taskName"}
"""What every record has; the rest of its attributes came as `extra`."""


def entry_of(record: logging.LogRecord, text: str, tags: tuple[str, ...], project_id: str) -> bytes:
    """The entry's JSON text. `text`: the formatted message.

    A message or meta above the daemon's limits is cut, and `meta.truncated` says so: a log call
    cannot be refused.
    """
    message = text.encode("utf-8", "backslashreplace")  # lone surrogates have no UTF-8
    cut = len(message) > MAX_MESSAGE_BYTES
    meta = _meta(record, cut)
    entry = NewEntry(
        level=level_of(record.levelno),
        message=message[:MAX_MESSAGE_BYTES].decode("utf-8", "ignore"),
        source=_clean(record.name)[:MAX_SOURCE_CHARS] or "root",
        timestamp=datetime.datetime.fromtimestamp(record.created, datetime.UTC),
        tags=tags,
        meta=meta,
        project_id=project_id,
    )
    return msgspec.json.encode(entry)


def level_of(number: int) -> LevelName:
    if number < logging.INFO:
        return "DEBUG"
    if number < logging.WARNING:
        return "INFO"
    return "WARN" if number < logging.ERROR else "ERROR"


def _meta(record: logging.LogRecord, cut: bool) -> Mapping[str, object]:
    place: dict[str, object] = {
        "file": _clean(f"{record.pathname}:{record.lineno}"),
        "function": _clean(str(record.funcName)),
        "process": record.process,
        "thread": _clean(str(record.threadName)),
    }
    extra = {
        _clean(str(name)): _json_of(value)
        for name, value in record.__dict__.items()
        if name not in _STANDARD
    }
    if cut:
        place["truncated"] = True
    meta = {**extra, **place}
    if extra and len(msgspec.json.encode(meta)) > MAX_META_BYTES:
        return {**place, "truncated": True}
    return meta


def _json_of(value: object) -> msgspec.Raw:
    """The value's JSON, or that of its repr where it has none."""
    try:
        return msgspec.Raw(msgspec.json.encode(value))
    except Exception:  # noqa: BLE001  # whatever a value of the program does: the record counts
        return msgspec.Raw(msgspec.json.encode(_clean(_repr_of(value))))


def _repr_of(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001  # as above
        return f"<{type(value).__name__}: its repr raises {type(error).__name__}>"


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
