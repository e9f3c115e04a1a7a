"""`logd user`: people, from the machine of the daemon."""

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from logd.cli.errors import OK, CommandError
from logd.cli.serve import config_of
from logd.errors import DirectoryLocked

if TYPE_CHECKING:
    from logd.cli.types import Commands
    from logd.daemon.admin_requests import AdminReply, AdminRequest

_PATIENCE_SECONDS: Final = 15.0
_PAUSE_SECONDS: Final = 0.1


def add_commands(commands: "Commands") -> None:
    group = commands.add_parser("user", help="manage users")
    actions = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    parser = actions.add_parser(
        "add",
        help="create a user, print a token",
        description="Create the user if there is none (the first one is server admin), and print "
        "a fresh personal access token, alone on a line. Works while the daemon runs.",
    )
    parser.add_argument("email", metavar="EMAIL")
    parser.add_argument("--name", help="what the token is called", default="command line")
    add_data_flags(parser)
    parser.set_defaults(run=run_add)


def add_data_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", metavar="DIR", help="the daemon's data directory (LOGD_DATA)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="the daemon's TOML file")


def run_add(args: argparse.Namespace) -> int:
    from logd.daemon.admin_requests import UserAdd

    print(_asked(config_of(args).data, UserAdd(args.email, token_name=args.name)).token)
    return OK


def _asked(data: Path, request: "AdminRequest") -> "AdminReply":
    """Of the daemon, or done here where none runs. A daemon that starts or stops just now has the
    directory but does not answer: it gets some time."""
    patient_until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            reply = _reply(data, request)
        except DirectoryLocked:
            if time.monotonic() > patient_until:
                raise
            time.sleep(_PAUSE_SECONDS)
            continue
        if reply.error is not None:
            raise CommandError(reply.error)
        return reply


def _reply(data: Path, request: "AdminRequest") -> "AdminReply":
    from logd.cli.owner import owned_control
    from logd.daemon.admin_client import NoDaemon, admin_call
    from logd.daemon.admin_requests import perform

    try:
        return admin_call(data, request)
    except NoDaemon:
        with owned_control(data) as control:
            return perform(control, request)
