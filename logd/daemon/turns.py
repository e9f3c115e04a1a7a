"""Long work beside those who write."""

import time
from typing import Final

_TURN_SECONDS: Final = 0.00025
_REST_SECONDS: Final = 0.00025


class Turns:
    """Work in turns, with rests between them in which others run.

    A thread that computes for long stays on its core, whatever its priority, until the next tick of
    the system's clock. What it takes to write a group of entries are several threads one after the
    other, and each would wait behind it.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()

    def take_rest(self) -> None:
        """A rest, if this turn was long enough."""
        if time.monotonic() - self._began > _TURN_SECONDS:
            time.sleep(_REST_SECONDS)
            self._began = time.monotonic()
