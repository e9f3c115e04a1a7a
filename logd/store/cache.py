"""A byte-budgeted cache of what is decoded of chunks.

Three lists, each by last use: what came once is *new*, what was asked for again is *kept*, and what
is *small*, such as what matched in a chunk, is apart: a thousand small things take the room of one
column. New things only push out new ones, so columns that were needed once leave alone what every
query needs, and a round over more than fits still finds what it kept.

After Karedla, Love, Wherry: "Caching Strategies to Improve Disk System Performance" (segmented
LRU), IEEE Computer 1994.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, TypeVar, cast

T = TypeVar("T")

_KEPT_SHARE: Final = 0.5
_ALL_SMALL_SHARE: Final = 0.25
_LARGEST_SHARE: Final = 0.125
_SMALL_BYTES: Final = 16 << 10
_SMALL_SHARE: Final = 0.001
_ITEM_BYTES: Final = 250
"""What an item takes besides its value."""

_Items = OrderedDict[Hashable, tuple[object, int]]


class PartCache:
    """Shared by all projects; values are immutable and may be used from any thread."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._new: _Items = OrderedDict()
        self._kept: _Items = OrderedDict()
        self._small: _Items = OrderedDict()
        self._new_bytes = 0
        self._kept_bytes = 0
        self._small_bytes = 0
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        return self._new_bytes + self._kept_bytes + self._small_bytes

    def get(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T:
        """The value of `key`; `load()` gives (value, bytes it takes) where it is not cached.

        A key always stands for one type, so the cast holds.
        """
        with self._lock:
            found = self._find(key)
        if found is not None:
            return cast(T, found[0])
        value, size = load()
        size += _ITEM_BYTES
        if size <= self._max_bytes * _LARGEST_SHARE:
            with self._lock:
                self._put(key, value, size)
        return value

    def peek(self, key: Hashable) -> object | None:
        """The value of `key` if it is cached."""
        with self._lock:
            found = self._find(key)
        return None if found is None else found[0]

    def _find(self, key: Hashable) -> tuple[object, int] | None:
        for items in (self._small, self._kept):
            found = items.get(key)
            if found is not None:
                items.move_to_end(key)
                return found
        found = self._new.pop(key, None)
        if found is not None:
            self._new_bytes -= found[1]
            self._keep(key, found)
        return found

    def _keep(self, key: Hashable, item: tuple[object, int]) -> None:
        """What was not used for longest is new again."""
        self._kept[key] = item
        self._kept_bytes += item[1]
        while self._kept_bytes > self._max_bytes * _KEPT_SHARE:
            oldest, old = self._kept.popitem(last=False)
            self._kept_bytes -= old[1]
            self._new[oldest] = old
            self._new_bytes += old[1]

    def _put(self, key: Hashable, value: object, size: int) -> None:
        if key in self._kept or key in self._small:  # another thread was quicker
            return
        old = self._new.pop(key, None)
        if old is not None:
            self._new_bytes -= old[1]
        if size <= min(_SMALL_BYTES, self._max_bytes * _SMALL_SHARE):
            self._small[key] = (value, size)
            self._small_bytes += size
            while self._small_bytes > self._max_bytes * _ALL_SMALL_SHARE:
                _, (_, dropped) = self._small.popitem(last=False)
                self._small_bytes -= dropped
        else:
            self._new[key] = (value, size)
            self._new_bytes += size
        while self.size_bytes > self._max_bytes:
            _, (_, dropped) = self._new.popitem(last=False)
            self._new_bytes -= dropped
