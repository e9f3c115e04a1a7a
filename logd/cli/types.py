"""What `main.py` and the command groups share."""

import argparse
import os
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def as_text(argument: str) -> str:
    """An argument or a file's name, which may hold any bytes, as text: what is not UTF-8 in it is
    replaced, as it is in lines."""
    return os.fsencode(argument).decode("utf-8", "replace")
