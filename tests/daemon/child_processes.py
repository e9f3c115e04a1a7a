"""Processes that the tests' own process started."""

import os
from pathlib import Path


def children_that_run(module: str) -> list[int]:
    """Those that run the module, ascending."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            arguments = (path.parent / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if parent == os.getpid() and module.encode() in arguments:
            found.append(int(path.parent.name))
    return sorted(found)
