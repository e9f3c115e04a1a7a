"""CSV with a header: columns become message, level, source and time, all others the meta."""

import csv
import datetime
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from logd.cli.errors import CommandError
from logd.cli.input.entries import Defaults, Unreadable, entry_json
from logd.cli.input.source import MAX_LINE_BYTES
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
        self._whole = _whole_cells(columns.delimiter)
        self._open: list[str] = []
        self._open_chars = 0

    def entry(self, line: bytes) -> bytes | None:
        """As `LineFormat`. Raises CommandError where the header lacks a column."""
        text = line.decode("utf-8-sig" if self._header is None else "utf-8", "replace")
        is_open = self._whole.fullmatch('"' + text if self._open else text) is None
        self._open.append(text)
        self._open_chars += len(text) + 1
        if is_open:
            self._check_open()
            return None
        row = self._cells(self._closed())
        if self._header is None:
            self._header = self._checked(row)
            return None
        return self._entry(dict(zip(self._header, row, strict=False)), row) if row else None

    def end(self) -> None:
        """As `LineFormat`."""
        if self._open:
            raise Unreadable("a quoted cell has no end")

    def _check_open(self) -> None:
        """A quote too many must not swallow the rest of the file. Raises Unreadable: the next line
        begins a row."""
        if self._open_chars > MAX_LINE_BYTES:
            count = self._closed().count("\n") + 1
            raise Unreadable(f"a quoted cell has no end, {count:,} lines are left out")

    def _closed(self) -> str:
        text = "\n".join(self._open)
        self._open, self._open_chars = [], 0
        return text

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
        level = level_of(cells[columns.level]) if columns.level else None
        used = {columns.message, columns.source, *columns.time}
        if level is not None:
            used.add(columns.level)
        return entry_json(
            self._defaults,
            message=cells[columns.message],
            level=level,
            source=cells[columns.source] if columns.source else None,
            timestamp=self._time(" ".join(cells[name] for name in columns.time)),
            meta={name: cell for name, cell in cells.items() if name not in used},
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
        except (ValueError, re.error):  # re.error: a directive comes twice
            return None


def _whole_cells(delimiter: str) -> re.Pattern[str]:
    """Of a line from the beginning of a cell on: whether its last cell ends with it, as the `csv`
    module sees it. A quote within a cell that does not begin with one is a character."""
    rest = f"[^{re.escape(delimiter)}]*+"
    cell = rf'(?:"(?:[^"]++|"")*+"|(?!")){rest}'
    return re.compile(f"{cell}(?:{re.escape(delimiter)}{cell})*+")
