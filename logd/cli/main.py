"""`logd`: the commands, and what happens to their errors.

A command's module defines its flags in `add_commands` and imports what is heavy only within the
function that runs it, so that `logd --help` is quick; and only the module of the command that is
asked for is imported, so that the daemon starts quickly.
"""

import argparse
import importlib
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Final

import logd
from logd.cli.errors import FAILED, SIGNALLED, WRONG_USE, CommandError
from logd.config import BadConfig
from logd.errors import LogdError

_EPILOG: Final = """\
Exit codes: 0 done; 1 not done, or not all of it, or `check` found problems; 2 wrong use or
configuration; 128 + n ended by signal n. Errors are one line on stderr.
"""

_MODULES: Final = {
    "serve": "serve",
    "quickstart": "quickstart",
    "user": "user",
    "send": "send",
    "query": "read",
    "stats": "read",
    "check": "upkeep",
    "reindex": "upkeep",
}
"""By command, in the order of `logd --help`: which module of this package has it."""

_TIME_AGO: Final = re.compile(r"-\d+[a-z]+")


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code. `argv`: without the program's name."""
    _open_closed_streams()
    given = list(_joined(sys.argv[1:] if argv is None else argv))
    arguments = command_line(*given[:1]).parse_args(given)
    try:
        code = arguments.run(arguments)
        sys.stdout.flush()
        return int(code)
    except BrokenPipeError:  # `logd query | head`: nobody reads on, and nothing is amiss
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SIGNALLED + signal.SIGPIPE
    except KeyboardInterrupt:
        return SIGNALLED + signal.SIGINT
    except (CommandError, LogdError, OSError, ExceptionGroup) as error:
        cause = _single(error)
        if not isinstance(cause, CommandError | LogdError | OSError):
            raise
        sys.stderr.write(f"logd: {_line(cause)}\n")
        return _code(cause)


def command_line(command: str = "") -> argparse.ArgumentParser:
    """The parser of `command`, of all where there is none such."""
    parser = argparse.ArgumentParser(
        prog="logd", description="A single-node, append-only log store.", epilog=_EPILOG
    )
    parser.add_argument("--version", action="version", version=f"logd {logd.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    modules = [_MODULES[command]] if command in _MODULES else dict.fromkeys(_MODULES.values())
    for module in modules:
        importlib.import_module(f"logd.cli.{module}").add_commands(commands)
    return parser


def _open_closed_streams() -> None:
    """Where whoever started the command has closed some. Else a file that is opened gets the number
    of one, and what is written to that goes there."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _joined(argv: Sequence[str]) -> Iterator[str]:
    """With `--from -1h` as `--from=-1h`: argparse takes a text with a dash for a flag."""
    flag = None
    for argument in argv:
        if flag is not None and _TIME_AGO.fullmatch(argument):
            yield f"{flag}={argument}"
            flag = None
            continue
        if flag is not None:
            yield flag
        flag = argument if argument in ("--from", "--to") else None
        if flag is None:
            yield argument
    if flag is not None:
        yield flag


def _single(error: Exception) -> Exception:
    """The one error in groups of one, which is what trio makes of an error in a nursery."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split())


def _code(error: Exception) -> int:
    if isinstance(error, CommandError):
        return error.exit_code
    return WRONG_USE if isinstance(error, BadConfig) else FAILED


if __name__ == "__main__":
    sys.exit(main())
