"""Long work beside those who write."""

import time
from typing import Final

_TURN_SECONDS: Final = 0.00025
_RESTS_A_TURN: Final = 2
_LONGEST_REST_SECONDS: Final = 0.01  # where a turn waited for a disk


class Turns:
    """Work in turns, with rests between them, twice as long as the work was, in which others run.

    A thread that computes for long stays on its core, whatever its priority, until the next tick of
    the system's clock. What it takes to write a group of entries are several threads one after the
    other, and each would wait behind it.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()

    def begin(self) -> None:
        """What was done before was in nobody's way."""
        self._began = time.monotonic()

    def take_rest(self) -> None:
        """A rest, if this turn was long enough."""
        seconds = time.monotonic() - self._began
        if seconds > _TURN_SECONDS:
            time.sleep(min(seconds * _RESTS_A_TURN, _LONGEST_REST_SECONDS))
            self.begin()
