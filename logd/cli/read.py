"""`logd query` and `logd stats`: what a project holds."""

import argparse
import datetime
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from logd.cli.connect import add_connection_flags, client_for
from logd.cli.errors import OK, WRONG_USE, CommandError
from logd.cli.types import as_text
from logd.entry import LEVELS

if TYPE_CHECKING:
    from logd.cli.types import Commands
    from logd.client import LogdClient
    from logd.client.wire import RawPage

_AGO: Final = re.compile(r"-?(\d{1,9})(s|m|h|d|w)")
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TIME_HELP: Final = "RFC 3339, or so long ago: -90s, -15m, -1h, -7d, -2w"


def add_commands(commands: "Commands") -> None:
    query = commands.add_parser(
        "query",
        help="list log entries",
        description="List the entries of a project, newest first.",
        epilog="A search that begins with a dash follows two dashes: logd query -- '-debug'",
    )
    query.add_argument(
        "search", type=as_text, nargs="?", metavar="SEARCH", help="in the search language"
    )
    query.add_argument("--level", choices=LEVELS)
    query.add_argument("--from", dest="from_", metavar="TIME", help=f"inclusive; {_TIME_HELP}")
    query.add_argument("--to", metavar="TIME", help="exclusive; the same forms")
    how_many = query.add_mutually_exclusive_group()
    how_many.add_argument("--limit", type=int, default=100, metavar="N", help="default: 100")
    how_many.add_argument("--all", action="store_true", help="every entry that matches")
    query.add_argument("--json", action="store_true", help="one entry a line, as JSON")
    add_connection_flags(query)
    query.set_defaults(run=run_query)
    stats = commands.add_parser(
        "stats", help="count log entries", description="Count a project's entries by level."
    )
    stats.add_argument("--json", action="store_true")
    add_connection_flags(stats)
    stats.set_defaults(run=run_stats)


def run_query(args: argparse.Namespace) -> int:
    from logd.cli.entry_lines import EntryLines
    from logd.cli.terminal import wants_colour

    if args.limit < 1:
        raise CommandError("--limit: a number above 0 is expected", WRONG_USE)
    wanted = None if args.all else args.limit
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    lines = EntryLines(
        json=args.json,
        terminal=sys.stdout.isatty(),
        colour=wants_colour(sys.stdout, os.environ.get("NO_COLOR")),
    )
    shown = 0
    with client_for(args) as client:
        for page in _pages(client, args, wanted):
            logs = page.logs if wanted is None else page.logs[: wanted - shown]
            shown += len(logs)
            for log in logs:
                print(lines.line(log))
            if page.partial:
                sys.stderr.write("logd: stored data is damaged: entries may be missing\n")
            if shown == wanted:
                break
    if sys.stderr.isatty():
        sys.stderr.write(f"{shown:,} of {page.total:,} entries\n")
    return OK


def _pages(
    client: "LogdClient", args: argparse.Namespace, wanted: int | None
) -> "Iterator[RawPage]":
    from logd.client.client import MAX_PAGE

    now = datetime.datetime.now(datetime.UTC)
    return client.pages(
        args.search,
        level=args.level,
        from_=moment(args.from_, now),
        to=moment(args.to, now),
        limit=min(wanted or MAX_PAGE, MAX_PAGE),
    )


def moment(text: str | None, now: datetime.datetime) -> str | None:
    """RFC 3339 of `now` or of a time before it; any other text is left to the daemon."""
    if text is None:
        return None
    ago = _AGO.fullmatch(text)
    if ago is None and text != "now":
        return text
    seconds = int(ago[1]) * _UNIT_SECONDS[ago[2]] if ago else 0
    try:
        return (now - datetime.timedelta(seconds=seconds)).isoformat()
    except OverflowError:
        raise CommandError(f"{text!r} is before the beginning of time", WRONG_USE) from None


def run_stats(args: argparse.Namespace) -> int:
    with client_for(args) as client:
        stats = client.stats()
    counts = {level: getattr(stats, level) for level in LEVELS}
    if args.json:
        print(json.dumps(counts))
        return OK
    for name, count in (*counts.items(), ("total", stats.total)):
        print(f"{name:<6}{count:>15,}")
    return OK
