"""How quickly bytes come, or go."""

import trio


class Pace:
    """Measured window by window: a quick beginning buys no time for what follows."""

    def __init__(self, window_seconds: float, least_bytes_per_second: int) -> None:
        """The first window begins now."""
        self._window_seconds = window_seconds
        self._least_bytes_per_second = least_bytes_per_second
        self._began_at = trio.current_time()
        self._count = 0

    def is_too_slow(self, count: int) -> bool:
        """Whether it was in the window that ends with these bytes, if one does. To be asked
        whenever there are some."""
        self._count += count
        now = trio.current_time()
        elapsed = now - self._began_at
        if elapsed < self._window_seconds:
            return False
        too_slow = self._count < elapsed * self._least_bytes_per_second
        self._began_at, self._count = now, 0
        return too_slow
