"""A process of this program's own."""

import os
import subprocess
import sys


def start_child(
    module: str, *arguments: str, stdin: int, stdout: int | None = None
) -> subprocess.Popen[bytes]:
    """Runs a module in a fresh interpreter that finds what this one finds. Raises OSError.

    Not a fork: a daemon with threads cannot be forked safely.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=stdin,
        stdout=stdout,
        bufsize=0,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,  # a terminal's Ctrl-C is for the daemon
    )
