"""Why a command ends, and with which exit code."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
"""The command could not do (all of) what it was asked to, or found what it looked for amiss."""
WRONG_USE: Final = 2
"""Of the command line or the configuration; also what argparse exits with."""
SIGNALLED: Final = 128
"""Plus the number of the signal that ended the command."""


class CommandError(Exception):
    """One line for the person at the terminal."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
