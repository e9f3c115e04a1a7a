"""Ctrl-C for a command that has something to finish."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_SLICE_SECONDS: Final = 0.1


class Interrupt:
    """The first SIGINT or SIGTERM asks the command to come to an end, the second ends it."""

    def __init__(self) -> None:
        self._came = False

    def came(self) -> bool:
        return self._came

    def pause(self, seconds: float) -> bool:
        """Sleeps; True, at once, where the command is to come to its end."""
        until = time.monotonic() + seconds
        while not self._came and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _SLICE_SECONDS))  # a signal alone does not end a sleep
        return self._came

    @contextmanager
    def watched(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
