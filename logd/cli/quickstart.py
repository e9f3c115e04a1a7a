"""`logd quickstart`: a daemon with a user, an organisation, a project and a key to begin with."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from logd.cli.errors import OK
from logd.cli.serve import add_config_flags, config_of, loading
from logd.config import Config

if TYPE_CHECKING:
    from logd.cli.types import Commands
    from logd.control.store import Control

DEFAULT_DATA: Final = "logd-data"
SECRETS_FILE: Final = "quickstart.json"

_EMAIL: Final = "admin@localhost"
_ORG: Final = ("Quickstart", "quickstart")
_PROJECT: Final = "First project"


class Secrets(msgspec.Struct, frozen=True):
    """What a second run shows again. Kept in the data directory, readable by its owner only."""

    token: str
    project_id: str
    key: str

    def __repr__(self) -> str:  # the secrets must not reach a log line
        return f"Secrets(project_id={self.project_id!r})"


def add_commands(commands: "Commands") -> None:
    parser = commands.add_parser(
        "quickstart",
        help="run a daemon that is ready to use",
        description="Run the daemon on ./logd-data (or --data), with a user, an organisation, a "
        "project and a key, and print how to use them. The token and the key are kept in "
        f"{SECRETS_FILE} in the data directory and shown again by the next run.",
    )
    parser.add_argument(
        "--new-secrets", action="store_true", help="issue a fresh token and a fresh key"
    )
    add_config_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.data is None and args.config is None and "LOGD_CONFIG" not in os.environ:
        args.data = os.environ.get("LOGD_DATA", DEFAULT_DATA)
    config = config_of(args)
    with loading():
        import trio

        from logd.cli.owner import owned_control
        from logd.run import prepare_process
    with owned_control(config.data) as control:
        secrets = _secrets(control, config.data / SECRETS_FILE, anew=args.new_secrets)
    prepare_process(config, os.environ)
    trio.run(_serve, config, secrets)
    return OK


def _secrets(control: "Control", file: Path, *, anew: bool) -> Secrets:
    """Those in the file if they still open something, else new ones. Raises CommandError."""
    kept = None if anew else _read(file)
    if kept is not None and all(map(control.authenticate, (kept.token, kept.key))):
        return kept
    fresh = _issued(control)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags, 0o600), "wb") as kept_file:
        os.fchmod(kept_file.fileno(), 0o600)
        kept_file.write(msgspec.json.encode(fresh))
    return fresh


def _read(file: Path) -> Secrets | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Secrets)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        # There are none, or what a crash or an editor left of them: new ones are issued.
        return None


def _issued(control: "Control") -> Secrets:
    from logd.cli.errors import CommandError
    from logd.daemon.admin_requests import Quickstart, perform

    reply = perform(control, Quickstart(_EMAIL, *_ORG, _PROJECT))
    if reply.error is not None:
        raise CommandError(reply.error)
    assert reply.token is not None
    assert reply.project_id is not None
    assert reply.key is not None
    return Secrets(reply.token, reply.project_id, reply.key)


async def _serve(config: Config, secrets: Secrets) -> None:
    import trio

    from logd.run import Running, serve, stopped_by_signals

    async with stopped_by_signals() as stop, trio.open_nursery() as serving:
        running: Running = await serving.start(serve, config, stop, os.environ)
        print(welcome(running.urls[0], secrets), flush=True)


def welcome(url: str, secrets: Secrets) -> str:
    """What to do next, to be pasted into another terminal."""
    return f"""\
logd is ready at {url}
The interface is described at {url}/v1/openapi.json

  personal access token  {secrets.token}
  project                {secrets.project_id}
  API key                {secrets.key}

In another terminal:

  export LOGD_URL={url} LOGD_PROJECT={secrets.project_id} LOGD_KEY={secrets.key}

  curl -sS "$LOGD_URL/v1/ingest" -H "Authorization: Bearer $LOGD_KEY" \\
    -H 'Content-Type: application/json' \\
    -d '{{"projectId": "'"$LOGD_PROJECT"'", "level": "INFO", "message": "hello", "source": "curl"}}'

  curl -sS "$LOGD_URL/v1/projects/$LOGD_PROJECT/logs?search=hello" \\
    -H "Authorization: Bearer $LOGD_KEY"

  curl -sS "$LOGD_URL/v1/orgs/mine" -H "Authorization: Bearer {secrets.token}"

Ctrl-C stops the daemon; what was stored stays in its data directory."""
