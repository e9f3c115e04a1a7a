"""The formats by name. `auto` finds out by looking, line by line."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from logd.cli.input.entries import Defaults, plain_entry
from logd.cli.input.journal import journal_entry
from logd.cli.input.json_lines import any_entry, ingest_entry, json_entry


class LineFormat(Protocol):
    """How one input is read, line by line."""

    def entry(self, line: bytes) -> bytes | None:
        """Of a line without its end: the entry's JSON text; None where the line is blank or only
        a part of an entry. Raises Unreadable."""

    def end(self) -> None:
        """The input is at its end. Raises Unreadable where that is within an entry."""


class EachLine:
    """Formats in which a line is an entry."""

    def __init__(self, read: Callable[[bytes, Defaults], bytes], defaults: Defaults) -> None:
        self._read = read
        self._defaults = defaults

    def entry(self, line: bytes) -> bytes | None:
        return self._read(line, self._defaults) if line.strip() else None

    def end(self) -> None:
        """Nothing is pending."""


LINE_FORMATS: Final[Mapping[str, Callable[[bytes, Defaults], bytes]]] = {
    "auto": any_entry,
    "ndjson": ingest_entry,
    "json": json_entry,
    "journald": journal_entry,
    "plain": plain_entry,
}
