"""When to try again, and how long to wait before. No I/O, no clock."""

from typing import Final

FIRST_DELAY_SECONDS: Final = 0.25
LONGEST_DELAY_SECONDS: Final = 30.0

PASSING: Final = frozenset({408, 429, 502, 503, 504})
"""Statuses that may be different next time; 502 and 504 come from proxies in between."""


def delay_seconds(attempt: int, retry_after: str | None, chance: float) -> float:
    """The pause before attempt `attempt` + 1, where the first attempt is 0.

    Doubles up to the longest; `chance` (0-1) spreads it over its upper half, so that many clients
    do not come back at once. `retry_after` is that header: never earlier than it says.
    """
    backoff = min(FIRST_DELAY_SECONDS * 2.0 ** min(attempt, 16), LONGEST_DELAY_SECONDS)
    return max(backoff * (0.5 + chance / 2), _seconds(retry_after))


def _seconds(retry_after: str | None) -> float:
    """The header's delay; 0 for none, and for its other form, a date, which logd never sends."""
    text = (retry_after or "").strip()
    return float(text) if text.isascii() and text.isdigit() else 0.0
