"""Reading an LMDB copy that may be damaged: in a child process, which may die of it.

`python -m logd.control.salvage PATH` writes the contents to stdout as msgpack and exits 0; it
exits 1 with the reason on stderr, or is killed by a signal.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec

from logd.control.mirror import Contents, read_contents
from logd.errors import Corruption

_TIMEOUT_SECONDS: Final = 60  # a loop in a damaged tree must not keep the daemon from starting


def read_in_child(path: Path) -> Contents:
    """The contents of a mirror. Raises Corruption, whatever is wrong with the file."""
    try:
        child = subprocess.run(
            [sys.executable, "-m", "logd.control.salvage", str(path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Corruption(path, 0, f"reading took over {_TIMEOUT_SECONDS} s") from None
    if child.returncode != 0:
        raise Corruption(path, 0, _reason(child))
    return msgspec.msgpack.decode(child.stdout, type=Contents)


def _reason(child: subprocess.CompletedProcess[bytes]) -> str:
    if child.returncode < 0:
        return f"LMDB crashed on it (signal {-child.returncode})"
    lines = child.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"the reader ended with {child.returncode}"


def main(path: Path) -> int:
    try:
        contents = read_contents(path)
    except Corruption as corruption:
        sys.stderr.write(f"{corruption.reason}\n")
        return 1
    sys.stdout.buffer.write(msgspec.msgpack.encode(contents))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
