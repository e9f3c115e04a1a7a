"""A byte-budgeted cache of decoded chunk parts, least recently used out first."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar, cast

T = TypeVar("T")


class PartCache:
    """Shared by all projects; values are immutable and may be used from any thread."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._items: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def get(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T:
        """The value of `key`; `load()` gives (value, bytes it takes) where it is not cached.

        A key always stands for one type, so the cast holds.
        """
        with self._lock:
            found = self._items.get(key)
            if found is not None:
                self._items.move_to_end(key)
                return cast(T, found[0])
        value, size = load()
        if size <= self._max_bytes // 4:
            self._put(key, value, size)
        return value

    def _put(self, key: Hashable, value: object, size: int) -> None:
        with self._lock:
            old = self._items.pop(key, None)
            if old is not None:
                self._bytes -= old[1]
            self._items[key] = (value, size)
            self._bytes += size
            while self._bytes > self._max_bytes:
                _, (_, dropped) = self._items.popitem(last=False)
                self._bytes -= dropped
