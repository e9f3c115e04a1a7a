"""CSV with a header: columns become message, level, source and time, all others the meta."""

import csv
import datetime
from collections.abc import Sequence
from typing import Final

import msgspec

from logd.cli.errors import CommandError
from logd.cli.input.entries import Defaults, Unreadable, entry_json
from logd.cli.input.values import level_of, time_of

_YEARS: Final = ("%Y", "%y", "%G", "%c", "%x")


class Columns(msgspec.Struct, frozen=True):
    """Names of columns. The texts of several time columns are joined by a space; `time_format` is
    one of strptime, None for RFC 3339 or an epoch number. Without a zone a time is UTC."""

    message: str
    level: str | None = None
    source: str | None = None
    time: tuple[str, ...] = ()
    time_format: str | None = None
    delimiter: str = ","


class CsvRows:
    """The rows of one file, fed line by line: a quoted cell may go over several lines."""

    def __init__(self, columns: Columns, defaults: Defaults, this_year: int) -> None:
        self._columns = columns
        self._defaults = defaults
        self._this_year = this_year
        self._header: list[str] | None = None
        self._open = ""

    def entry(self, line: bytes) -> bytes | None:
        """As `LineFormat`. Raises CommandError where the header lacks a column."""
        self._open += line.decode("utf-8-sig" if self._header is None else "utf-8", "replace")
        if self._open.count('"') % 2:
            self._open += "\n"
            return None
        row, self._open = self._cells(self._open), ""
        if self._header is None:
            self._header = self._checked(row)
            return None
        return self._entry(dict(zip(self._header, row, strict=False)), row) if row else None

    def end(self) -> None:
        """As `LineFormat`."""
        if self._open:
            raise Unreadable("a quoted cell has no end")

    def _cells(self, text: str) -> list[str]:
        try:
            return next(csv.reader([text], delimiter=self._columns.delimiter), [])
        except csv.Error as error:
            raise Unreadable(f"not CSV: {error}") from error

    def _checked(self, header: list[str]) -> list[str]:
        columns = self._columns
        for name in (columns.message, columns.level, columns.source, *columns.time):
            if name is not None and name not in header:
                raise CommandError(f"no column {name!r}; there are {', '.join(header)}")
        return header

    def _entry(self, cells: dict[str, str], row: Sequence[str]) -> bytes:
        assert self._header is not None
        if len(row) != len(self._header):
            raise Unreadable(f"{len(row)} cells, the header has {len(self._header)}")
        columns = self._columns
        message = cells.pop(columns.message)
        source = cells.pop(columns.source) if columns.source else None
        level = level_of(cells[columns.level]) if columns.level else None
        if columns.level and level is not None:
            del cells[columns.level]
        timestamp = self._time(" ".join(cells.pop(name) for name in columns.time))
        return entry_json(
            self._defaults,
            message=message,
            level=level,
            source=source,
            timestamp=timestamp,
            meta=cells,
        )

    def _time(self, text: str) -> str | None:
        if not self._columns.time:
            return None
        form = self._columns.time_format
        timestamp = time_of(text) if form is None else self._by_format(text, form)
        if timestamp is None:
            raise Unreadable(f"{text!r} is not a time" + (f" of the form {form!r}" if form else ""))
        return timestamp

    def _by_format(self, text: str, form: str) -> str | None:
        """A form without a year means this one."""
        if not any(year in form for year in _YEARS):
            text, form = f"{self._this_year} {text}", f"%Y {form}"
        try:
            return datetime.datetime.strptime(text, form).isoformat()
        except ValueError:
            return None
