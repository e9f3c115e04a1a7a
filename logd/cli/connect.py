"""The flags by which a command finds its daemon, and the client that they make."""

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from logd.cli.errors import WRONG_USE, CommandError
from logd.cli.types import as_text
from logd.config import Connection, load_connection

if TYPE_CHECKING:
    from logd.client import LogdClient
    from logd.client.channel import Sleep
    from logd.client.delivery import Compression


def add_connection_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("daemon and project")
    group.add_argument("--url", help="address of the daemon (LOGD_URL; http://127.0.0.1:8514)")
    group.add_argument(
        "--project", type=as_text, metavar="ID", help="id of the project (LOGD_PROJECT)"
    )
    group.add_argument(
        "--key-file", metavar="FILE", help="file with the project's API key (LOGD_KEY_FILE)"
    )
    group.add_argument(
        "--key", help="the API key itself (LOGD_KEY); a flag is visible to others on the machine"
    )


def connection(args: argparse.Namespace) -> Connection:
    names = ("url", "project", "key_file", "key")
    return load_connection({name: getattr(args, name) for name in names}, os.environ)


@contextmanager
def client_for(
    args: argparse.Namespace,
    *,
    compression: "Compression" = "none",
    retry_seconds: float = 5.0,
    sleep: "Sleep" = time.sleep,
) -> "Iterator[LogdClient]":
    """The client. What it raises becomes one line for the person at the terminal."""
    from logd.client import ClientError, LogdClient  # the HTTP library: not for `logd --help`

    to = connection(args)
    if to.project_id is None:
        raise CommandError("no project given: use --project or LOGD_PROJECT", WRONG_USE)
    try:
        with LogdClient(
            to.url,
            to.key,
            to.project_id,
            compression=compression,
            retry_seconds=retry_seconds,
            sleep=sleep,
        ) as client:
            yield client
    except ClientError as error:
        raise CommandError(str(error)) from error
