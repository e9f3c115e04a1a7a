"""`logd send`: lines of files or of a pipe become entries."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import msgspec

from logd.cli.connect import add_connection_flags, client_for
from logd.cli.errors import FAILED, OK, WRONG_USE, CommandError

if TYPE_CHECKING:
    from types import FrameType

    from logd.cli.input.csv_rows import Columns, CsvRows
    from logd.cli.input.entries import Defaults, Reader
    from logd.cli.input.source import Line
    from logd.cli.progress import Progress
    from logd.cli.shipment import Shipment
    from logd.cli.types import Commands
    from logd.client import LogdClient

FORMATS: Final = ("auto", "ndjson", "json", "journald", "plain", "csv")

_STDIN: Final = "-"
_SLICE_SECONDS: Final = 0.1
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
    parser.add_argument("--source", help="where a line names none; default: the file's name")
    parser.add_argument(
        "--level", default="INFO", choices=("DEBUG", "INFO", "WARN", "ERROR"),
        help="where a line names none; default: INFO",
    )  # fmt: skip
    parser.add_argument("--tag", action="append", default=[], help="for every entry; repeatable")
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
    columns = _columns(args)
    from logd.cli.progress import Progress
    from logd.cli.shipment import Shipment

    inputs = args.files or [_STDIN]
    interrupt = _Interrupt()
    progress = Progress(sys.stderr, _total_bytes(inputs), time.monotonic)
    with client_for(
        args, compression=args.compress, retry_seconds=args.retry_seconds, sleep=interrupt.pause
    ) as client:
        shipment = Shipment(
            client,
            max_entries=args.batch,
            max_wait_seconds=args.flush_seconds,
            complain=progress.say,
            now=time.monotonic,
        )
        job = _Job(args, columns, client.project_id, shipment, progress, interrupt)
        try:
            with interrupt.watched():
                job.send_all(inputs)
        finally:
            progress.clear()
            sys.stderr.write(_summary(shipment))
    return OK if shipment.refused == 0 and not job.skipped_input else FAILED


class _Interrupt:
    """The first SIGINT or SIGTERM ends the input: what was read is still sent, but no fault is
    waited out any more. The second ends the command."""

    def __init__(self) -> None:
        self._come = False

    def __call__(self) -> bool:
        return self._come

    def pause(self, seconds: float) -> bool:
        """Sleeps; True, at once, after an interrupt."""
        until = time.monotonic() + seconds
        while not self._come and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _SLICE_SECONDS))
        return self._come

    @contextmanager
    def watched(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._note) for number in _ENDING}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: "FrameType | None") -> None:
        self._come = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


_ENDING: Final = (signal.SIGINT, signal.SIGTERM)


class _Job:
    """All inputs, one after the other, into one shipment."""

    def __init__(
        self,
        args: argparse.Namespace,
        columns: "Columns | None",
        project_id: str,
        shipment: "Shipment",
        progress: "Progress",
        interrupt: _Interrupt,
    ) -> None:
        self._args = args
        self._columns = columns
        self._project_id = project_id
        self._shipment = shipment
        self._progress = progress
        self._interrupt = interrupt
        self.skipped_input = False
        """A file could not be read (to its end)."""

    def send_all(self, inputs: Sequence[str]) -> None:
        """Raises ClientError where the daemon takes nothing."""
        for name in inputs:
            try:
                with _opened(name) as fd:
                    self._send_input(_label(name), fd)
            except OSError as error:
                self.skipped_input = True
                self._progress.say(f"logd: {_label(name)}: {error.strerror}")
        self._shipment.send()

    def _send_input(self, label: str, fd: int) -> None:
        from logd.cli.input.source import lines_of

        reader, check_end = self._reader(label)
        number = 0
        for line in lines_of(fd, self._interrupt, self._progress.count):
            if line is not None:
                number = line.number
                self._take(f"{label}:{number}", line, reader)
            if self._args.follow:
                self._shipment.send_if_due()
            self._progress.draw(self._shipment.stored)
        self._guard(f"{label}:{number}", check_end)

    def _take(self, place: str, line: "Line", reader: "Reader") -> None:
        if not line.whole:
            self._shipment.refuse(place, "the line is too long")
        elif line.text.strip():
            self._guard(place, lambda: self._add(place, reader(line.text)))

    def _add(self, place: str, entry: bytes | None) -> None:
        if entry is not None:
            self._shipment.add(place, entry)

    def _guard(self, place: str, step: Callable[[], None]) -> None:
        from logd.cli.input.entries import Unreadable

        try:
            step()
        except Unreadable as error:
            self._shipment.refuse(place, str(error))

    def _reader(self, label: str) -> "tuple[Reader, Callable[[], None]]":
        """Of an input: what reads its lines, and what checks its end."""
        from logd.cli.input import reader_of
        from logd.cli.input.entries import Defaults

        args = self._args
        defaults = Defaults(
            self._project_id, args.source or label, args.level, tuple(args.tag)
        )
        return reader_of(args.format, defaults, self._columns)
