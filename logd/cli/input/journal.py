"""The lines of `journalctl -o json`: an object of fields, their values texts.

A value is an array of byte values where it is not valid UTF-8, an array of such values where the
field occurs several times, and null where it was too large to be shown.
"""

from typing import Final, cast

import msgspec
from msgspec import Raw

from logd.cli.input.entries import Defaults, Fields, entry_json, object_of
from logd.cli.input.values import level_of, time_of

SOURCE_NAMES: Final = ("_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "_COMM")

_Value = str | list[str | list[int] | int] | None

_VALUE: Final[msgspec.json.Decoder[_Value]] = msgspec.json.Decoder(_Value)


def journal_entry(line: bytes, defaults: Defaults) -> bytes:
    """Raises Unreadable."""
    return entry_of_journal(object_of(line), defaults)


def is_journal(fields: Fields) -> bool:
    return "__REALTIME_TIMESTAMP" in fields


def entry_of_journal(fields: Fields, defaults: Defaults) -> bytes:
    """The fields whose names begin with two underscores are places in the journal, not data."""
    sources = (_text(fields.get(name)) for name in SOURCE_NAMES)
    used = {"MESSAGE", "__REALTIME_TIMESTAMP"}
    return entry_json(
        defaults,
        message=_text(fields.get("MESSAGE")) or "",
        level=level_of(_text(fields.get("PRIORITY")) or ""),
        source=next(filter(None, sources), None),
        timestamp=time_of(_text(fields.get("__REALTIME_TIMESTAMP")) or ""),
        meta={
            name: value
            for name, value in fields.items()
            if name not in used and not name.startswith("__")
        },
    )


def _text(value: Raw | None) -> str | None:
    if value is None:
        return None
    try:
        decoded = _VALUE.decode(value)
    except (msgspec.DecodeError, RecursionError):  # a form that the journal does not have
        return bytes(value).decode()
    if isinstance(decoded, list):
        if decoded and all(isinstance(byte, int) for byte in decoded):
            return _of_bytes(cast(list[int], decoded))
        return "\n".join(_of_part(part) for part in decoded)
    return decoded


def _of_part(part: str | list[int] | int) -> str:
    return _of_bytes(part) if isinstance(part, list) else str(part)


def _of_bytes(values: list[int]) -> str:
    return bytes(value & 0xFF for value in values).decode("utf-8", "replace")
