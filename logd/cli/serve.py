"""`logd serve`: the daemon. Every option of the config has its flag."""

import argparse
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from logd.config import OPTIONS, Config, choices, describe, flag, load

if TYPE_CHECKING:
    from logd.cli.types import Commands

_EPILOG: Final = """\
Each flag has a variable (--max-body-bytes: LOGD_MAX_BODY_BYTES) and a key in the file
(max_body_bytes). A flag wins over the variable, the variable over the file, the file over the
default.
"""
_REPEATABLE: Final = ("listen",)
_SWITCHES: Final = ("insecure_http",)


def add_commands(commands: "Commands") -> None:
    parser = commands.add_parser(
        "serve", help="run the daemon", description="Run the daemon.", epilog=_EPILOG
    )
    add_config_flags(parser)
    parser.set_defaults(run=run)


def add_config_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file with options")
    for name in OPTIONS:
        if name in _SWITCHES:
            parser.add_argument(flag(name), action="store_true", default=None, help=describe(name))
        elif name in _REPEATABLE:
            parser.add_argument(flag(name), action="append", metavar="ADDRESS", help=describe(name))
        else:
            parser.add_argument(flag(name), metavar=_metavar(name), help=describe(name))


def _metavar(name: str) -> str:
    if words := choices(name):
        return "{" + ",".join(words) + "}"
    return name.rpartition("_")[2].upper()


def config_of(args: argparse.Namespace) -> Config:
    """Raises BadConfig."""
    return load({name: getattr(args, name, None) for name in OPTIONS}, os.environ, args.config)


def run(args: argparse.Namespace) -> int:
    config = config_of(args)
    with loading():
        from logd.run import run as run_daemon
    return run_daemon(config, os.environ)


@contextmanager
def loading() -> Iterator[None]:
    """For the imports of the daemon, a third of a second and nearly all of its start."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # else numpy starts some, for nobody
    gc.disable()  # it would look a hundred times through what is made here, and find it in use
    try:
        yield
    finally:
        gc.freeze()  # nor is it looked at later
        gc.enable()
