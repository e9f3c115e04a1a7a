"""`logd send`: lines of files or of a pipe become entries."""

import argparse
import datetime
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from logd.cli.connect import add_connection_flags, client_for
from logd.cli.errors import FAILED, OK, WRONG_USE, CommandError
from logd.cli.interrupt import Interrupt
from logd.cli.types import as_text
from logd.entry import LEVELS

if TYPE_CHECKING:
    from logd.cli.input.csv_rows import Columns
    from logd.cli.input.formats import LineFormat
    from logd.cli.input.source import Line
    from logd.cli.progress import Progress
    from logd.cli.shipment import Shipment
    from logd.cli.types import Commands

FORMATS: Final = ("auto", "ndjson", "json", "journald", "plain", "csv")
MAX_BATCH: Final = 100_000

_STDIN: Final = "-"
_DESCRIPTION: Final = """\
Send lines to a project. A line is an entry in the ingest form, a JSON object whose fields have
common names, a line of `journalctl -o json`, or else plain text; --format says which where it
should not be found out by looking. What is sent again after a fault is stored once.
"""
_EPILOG: Final = "Exit code 0 only if every entry was stored, else 1."


def add_commands(commands: "Commands") -> None:
    parser = commands.add_parser(
        "send", help="send log lines", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="default, and -: standard input")
    parser.add_argument("--format", choices=FORMATS, default="auto", help="default: auto")
    parser.add_argument(
        "--source", type=as_text, help="where a line names none; default: the file's name"
    )
    parser.add_argument(
        "--level", default="INFO", choices=LEVELS,
        help="where a line names none; default: INFO",
    )  # fmt: skip
    parser.add_argument(
        "--tag", type=as_text, action="append", default=[], help="for every entry; repeatable"
    )
    _add_way_flags(parser)
    _add_csv_flags(parser)
    add_connection_flags(parser)
    parser.set_defaults(run=run)


def _add_way_flags(parser: argparse.ArgumentParser) -> None:
    way = parser.add_argument_group("the way")
    way.add_argument("--follow", action="store_true", help="send what trickles in by and by")
    way.add_argument(
        "--flush-seconds", type=_positive, default=1.0, metavar="SECONDS",
        help="with --follow: how long an entry may wait for others; default: 1",
    )  # fmt: skip
    way.add_argument(
        "--batch", type=_count, default=5000, metavar="ENTRIES",
        help="most entries in a request; default: 5000",
    )  # fmt: skip
    way.add_argument("--compress", choices=("none", "gzip", "zstd"), default="none")
    way.add_argument(
        "--retry-seconds", type=_positive, default=300.0, metavar="SECONDS",
        help="how long to try while the daemon is away or overloaded; default: 300",
    )  # fmt: skip


def _add_csv_flags(parser: argparse.ArgumentParser) -> None:
    columns = parser.add_argument_group("--format csv: a header, then rows")
    columns.add_argument("--message-column", metavar="NAME")
    columns.add_argument("--level-column", metavar="NAME")
    columns.add_argument("--source-column", metavar="NAME")
    columns.add_argument(
        "--time-column", metavar="NAME", action="append", default=[],
        help="repeatable: the texts are joined by a space",
    )  # fmt: skip
    columns.add_argument(
        "--time-format", metavar="FORMAT",
        help="as of strptime, in UTC if without zone; default: RFC 3339 or an epoch number",
    )  # fmt: skip
    columns.add_argument("--delimiter", default=",", metavar="CHARACTER")


def run(args: argparse.Namespace) -> int:
    format_for = _format_for(args)
    from logd.cli.progress import Progress
    from logd.cli.shipment import Shipment

    inputs = args.files or [_STDIN]
    interrupt = Interrupt()
    progress = Progress(sys.stderr, _total_bytes(inputs), time.monotonic)
    with client_for(
        args, compression=args.compress, retry_seconds=args.retry_seconds, sleep=interrupt.pause
    ) as client:
        shipment = Shipment(
            client,
            max_entries=args.batch,
            max_wait_seconds=args.flush_seconds if args.follow else None,
            complain=progress.say,
            now=time.monotonic,
        )
        project_id = client.project_id
        sender = _Sender(shipment, progress, interrupt, lambda label: format_for(project_id, label))
        try:
            with interrupt.watched():
                sender.send_all(inputs)
        finally:
            progress.clear()
            sys.stderr.write(shipment.summary() + "\n")
    cut_short = interrupt.came() and not args.follow
    return FAILED if shipment.refused or sender.unread or cut_short else OK


class _Sender:
    """All inputs, one after the other, into one shipment. `format_for`: by an input's label."""

    def __init__(
        self,
        shipment: "Shipment",
        progress: "Progress",
        interrupt: Interrupt,
        format_for: "Callable[[str], LineFormat]",
    ) -> None:
        self._shipment = shipment
        self._progress = progress
        self._interrupt = interrupt
        self._format_for = format_for
        self.unread = 0
        """Inputs that could not be read to their end."""

    def send_all(self, inputs: Sequence[str]) -> None:
        """Raises ClientError where the daemon takes nothing."""
        for name in inputs:
            try:
                with _opened(name) as fd:
                    self._send_input(_label(name), fd)
            except OSError as error:
                self.unread += 1
                self._progress.say(f"logd: {name}: {error.strerror}")
        self._shipment.send()

    def _send_input(self, label: str, fd: int) -> None:
        from logd.cli.input.entries import Unreadable
        from logd.cli.input.source import lines_of

        line_format = self._format_for(label)
        place = label
        for line in lines_of(fd, self._interrupt.came, self._progress.count):
            try:
                if line is not None:
                    place = f"{label}:{line.number}"
                    self._take(place, line, line_format)
            except Unreadable as error:
                self._shipment.refuse(place, str(error))
            self._shipment.send_if_due()
            self._progress.draw(self._shipment.stored)
        try:
            line_format.end()
        except Unreadable as error:
            self._shipment.refuse(place, str(error))

    def _take(self, place: str, line: "Line", line_format: "LineFormat") -> None:
        """Raises Unreadable."""
        if not line.whole:
            self._shipment.refuse(place, "the line is too long")
            return
        entry = line_format.entry(line.text)
        if entry is not None:
            self._shipment.add(place, entry)


def _format_for(args: argparse.Namespace) -> "Callable[[str, str], LineFormat]":
    """What makes the format of an input, by project id and label. Raises CommandError."""
    from logd.cli.input.csv_rows import CsvRows
    from logd.cli.input.entries import Defaults
    from logd.cli.input.formats import LINE_FORMATS, EachLine

    columns = _columns(args)
    this_year = datetime.datetime.now(datetime.UTC).year

    def make(project_id: str, label: str) -> "LineFormat":
        defaults = Defaults(project_id, args.source or label, args.level, tuple(args.tag))
        if columns is not None:
            return CsvRows(columns, defaults, this_year)
        return EachLine(LINE_FORMATS[args.format], defaults)

    return make


def _columns(args: argparse.Namespace) -> "Columns | None":
    """None for any other format than CSV."""
    from logd.cli.input.csv_rows import Columns

    if args.format != "csv":
        return None
    if args.message_column is None:
        raise CommandError("--format csv needs --message-column", WRONG_USE)
    if len(args.delimiter) != 1:
        raise CommandError("--delimiter: one character is expected", WRONG_USE)
    return Columns(
        message=args.message_column,
        level=args.level_column,
        source=args.source_column,
        time=tuple(args.time_column),
        time_format=args.time_format,
        delimiter=args.delimiter,
    )


@contextmanager
def _opened(name: str) -> Iterator[int]:
    if name == _STDIN:
        yield sys.stdin.fileno()
        return
    fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _label(name: str) -> str:
    return "stdin" if name == _STDIN else as_text(os.path.basename(name))


def _total_bytes(inputs: Sequence[str]) -> int | None:
    """None where one of them is not a file: its end is not known."""
    total = 0
    for name in inputs:
        if not os.path.isfile(name):
            return None
        total += os.path.getsize(name)
    return total


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:  # argparse would tell the name of this function
        number = math.nan
    if not number > 0:
        raise argparse.ArgumentTypeError("a number above 0 is expected")
    return number


def _count(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= MAX_BATCH):
        raise argparse.ArgumentTypeError(f"a number from 1 to {MAX_BATCH} is expected")
    return int(text)
