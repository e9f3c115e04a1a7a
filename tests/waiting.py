"""Waiting for what no event tells of: it happens in another thread, or in the daemon."""

from collections.abc import Callable
from typing import Final

import trio

PATIENCE_SECONDS: Final = 20


async def until(done: Callable[[], bool]) -> None:
    """Fails where it takes too long."""
    with trio.fail_after(PATIENCE_SECONDS):
        while not done():  # noqa: ASYNC110
            await trio.sleep(0.005)
