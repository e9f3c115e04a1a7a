"""A search of what is in memory already, short enough for the event loop.

To hand a search to a thread, and its result back, takes as long as the search itself where all that
it needs is remembered. So it is tried without one, and ends with `NotAtHand` as soon as it would
read a file or the index, derive a column, or take longer than it may.
"""

import time
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import NoReturn, TypeVar, cast

from logd.store.cache import Cache

T = TypeVar("T")


class NotAtHand(Exception):
    """The search needs more."""


class Budget:
    """How long it may take."""

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.perf_counter() + seconds

    def check(self) -> None:
        """Raises NotAtHand when the time is over."""
        if time.perf_counter() > self._ends_at:
            raise NotAtHand


class CacheAlone:
    """A cache that nothing is loaded into."""

    def __init__(self, cache: Cache, check: Callable[[], None]) -> None:
        """`check()` is called before each look, and raises to end the search."""
        self._cache = cache
        self._check = check

    def get(self, key: Hashable, _load: Callable[[], tuple[T, int]]) -> T:
        self._check()
        return self._cache.get(key, _give_up)

    def get_passing(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T:
        """`load()` may put together what is remembered in pieces."""
        self._check()
        found = self._cache.peek(key)
        return load()[0] if found is None else cast(T, found)

    def peek(self, key: Hashable) -> object | None:
        return self._cache.peek(key)

    def peek_each(self, keys: Iterable[Hashable]) -> list[object | None]:
        found = self._cache.peek_each(keys)
        if None in found:
            raise NotAtHand
        return found


class FileAway:
    """A file that is not read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, _offset: int, _size: int) -> NoReturn:
        raise NotAtHand

    def descriptor(self) -> None:
        """For no other process either."""


def _give_up() -> NoReturn:
    raise NotAtHand
