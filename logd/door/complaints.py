"""A log that hostile input cannot flood."""

import logging
from typing import Final

import trio

_BURST: Final = 5
_PERIOD_SECONDS: Final = 10.0


class Complaints:
    """Logs at most 5 warnings in 10 seconds, and says how many it left out."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._period_began_at = -_PERIOD_SECONDS
        self._noted = 0

    def note(self, text: str, error: Exception | None = None) -> None:
        """Within trio. `error`: logged with its traceback."""
        now = trio.current_time()
        if now - self._period_began_at >= _PERIOD_SECONDS:
            if self._noted > _BURST:
                self._log.warning("%d more warnings were left out", self._noted - _BURST)
            self._period_began_at = now
            self._noted = 0
        self._noted += 1
        if self._noted <= _BURST:
            self._log.warning("%s", text, exc_info=error)
