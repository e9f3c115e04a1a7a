"""A line on the terminal that tells how far a command is, and makes way for other lines."""

from collections.abc import Callable
from typing import Final, TextIO

_PAUSE_SECONDS: Final = 0.1
_BAR_CHARS: Final = 24


class Progress:
    """`total_bytes`: of the input, None where its end is not known. Silent on anything that is not
    a terminal. `now` is a clock in seconds."""

    def __init__(self, stream: TextIO, total_bytes: int | None, now: Callable[[], float]) -> None:
        self._stream = stream
        self._on = stream.isatty()
        self._total_bytes = total_bytes
        self._now = now
        self._begun_at = now()
        self._drawn_at: float | None = None
        self._read_bytes = 0

    def count(self, read_bytes: int) -> None:
        self._read_bytes += read_bytes

    def draw(self, stored: int) -> None:
        if not self._on:
            return
        now = self._now()
        if self._drawn_at is not None and now - self._drawn_at < _PAUSE_SECONDS:
            return
        self._drawn_at = now
        rate = stored / max(now - self._begun_at, _PAUSE_SECONDS)
        self._stream.write(f"\r\x1b[K{self._bar()}{stored:,} stored, {rate:,.0f}/s")
        self._stream.flush()

    def say(self, line: str) -> None:
        """A line of its own, above the progress."""
        self.clear()
        self._stream.write(line + "\n")
        self._stream.flush()

    def clear(self) -> None:
        if self._drawn_at is not None:
            self._stream.write("\r\x1b[K")
            self._drawn_at = None

    def _bar(self) -> str:
        if not self._total_bytes:
            return ""
        part = min(self._read_bytes / self._total_bytes, 1.0)
        done = int(part * _BAR_CHARS)
        return f"[{'#' * done}{'.' * (_BAR_CHARS - done)}] {part:4.0%}  "
