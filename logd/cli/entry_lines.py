"""A listed entry -> a line of output."""

from typing import Final

import msgspec

from logd.cli.terminal import DIM, LEVEL_COLOURS, coloured, escaped, escaped_json
from logd.client.client import decoded_entry

_SOURCE_CHARS: Final = 16

_ONE_LINE: Final = str.maketrans("\t\n\r", "   ")
"""Tags and meta are kept as they were sent, maybe over several lines. Within JSON such characters
stand between tokens only."""


class EntryLines:
    """`terminal`: nothing in an entry may steer it. Without `json`, an entry is always one line."""

    def __init__(self, *, json: bool, terminal: bool, colour: bool) -> None:
        self._json = json
        self._terminal = terminal
        self._colour = colour

    def line(self, log: msgspec.Raw) -> str:
        if self._json:
            text = bytes(log).decode().translate(_ONE_LINE)
            return escaped_json(text) if self._terminal else text
        return self._table_line(log)

    def _table_line(self, log: msgspec.Raw) -> str:
        entry = decoded_entry(log)
        tags = "".join(f" #{tag}" for tag in entry.tags)
        return " ".join(
            (
                coloured(entry.ts, DIM, self._colour),
                coloured(f"{entry.level:<5}", LEVEL_COLOURS[entry.level], self._colour),
                f"{escaped(entry.source):<{_SOURCE_CHARS}}",
                escaped(entry.message) + coloured(escaped(tags), DIM, self._colour and bool(tags)),
            )
        )
