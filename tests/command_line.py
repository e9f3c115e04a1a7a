"""`logd` as people run it: a process of its own."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from scripted_daemon import KEY, PROJECT, ScriptedDaemon

ROOT = Path(__file__).parents[1]
TIMEOUT_SECONDS = 60.0


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "logd.cli.main", *arguments]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Without options of the machine on which the tests run."""
    plain = {name: text for name, text in os.environ.items() if not name.startswith("LOGD_")}
    return {**plain, "PYTHONPATH": str(ROOT), **(more or {})}


def connected(daemon: ScriptedDaemon) -> dict[str, str]:
    """The environment in which commands find the daemon."""
    return environment({"LOGD_URL": daemon.url, "LOGD_KEY": KEY, "LOGD_PROJECT": PROJECT})


def run_logd(
    *arguments: str, env: Mapping[str, str] | None = None, stdin: str = "", head: bool = False
) -> subprocess.CompletedProcess[str]:
    """`head`: its output goes to a reader that wants one line only."""
    words = command(*arguments)
    return subprocess.run(
        ["sh", "-c", f"{shlex.join(words)} | head -n 1"] if head else words,
        input=stdin,
        capture_output=True,
        text=True,
        env=environment() if env is None else env,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
