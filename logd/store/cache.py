"""A byte-budgeted cache of what is decoded of chunks.

Four lists, each by last use. What came once is *new*, what was asked for again is *kept*: new
things only push out new ones, so columns that were needed once leave alone what every query needs,
and a round over more than fits still finds what it kept. Small things are apart, as a thousand of
them take the room of one column: *answers*, the smallest, are what matched in a chunk, one a chunk
and question, and the entries of pages; *tables* are what leads to columns, such as heads of chunks.
A question that goes through more tables than fit must not push out what was answered.

After Karedla, Love, Wherry: "Caching Strategies to Improve Disk System Performance" (segmented
LRU), IEEE Computer 1994.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, TypeVar, cast

T = TypeVar("T")

_KEPT_SHARE: Final = 0.45
_LARGEST_SHARE: Final = 0.125
_ITEM_BYTES: Final = 250
"""What an item takes besides its value."""

# Of the list of answers and of that of tables: the largest item in bytes, and as a share of the
# budget, and what all of them may take of it.
_ANSWERS: Final = (4 << 10, 0.0001, 0.2)
_TABLES: Final = (16 << 10, 0.001, 0.2)

_Item = tuple[object, int]


class _List:
    """Items by last use, and the bytes of all of them."""

    def __init__(self) -> None:
        self.items: OrderedDict[Hashable, _Item] = OrderedDict()
        self.size_bytes = 0

    def put(self, key: Hashable, item: _Item) -> None:
        self.items[key] = item
        self.size_bytes += item[1]

    def take(self, key: Hashable) -> _Item | None:
        item = self.items.pop(key, None)
        if item is not None:
            self.size_bytes -= item[1]
        return item

    def touch(self, key: Hashable) -> _Item | None:
        item = self.items.get(key)
        if item is not None:
            self.items.move_to_end(key)
        return item

    def drop_oldest(self) -> tuple[Hashable, _Item]:
        key, item = self.items.popitem(last=False)
        self.size_bytes -= item[1]
        return key, item


class PartCache:
    """Shared by all projects; values are immutable and may be used from any thread."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._new = _List()
        self._kept = _List()
        self._small = [
            (min(most, max_bytes * largest_share), max_bytes * share, _List())
            for most, largest_share, share in (_ANSWERS, _TABLES)
        ]
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        small = sum(items.size_bytes for _, _, items in self._small)
        return self._new.size_bytes + self._kept.size_bytes + small

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

    def _find(self, key: Hashable) -> _Item | None:
        for _, _, items in self._small:
            found = items.touch(key)
            if found is not None:
                return found
        found = self._kept.touch(key)
        if found is None:
            found = self._new.take(key)
            if found is not None:
                self._keep(key, found)
        return found

    def _keep(self, key: Hashable, item: _Item) -> None:
        """What was not used for longest is new again."""
        self._kept.put(key, item)
        while self._kept.size_bytes > self._max_bytes * _KEPT_SHARE:
            self._new.put(*self._kept.drop_oldest())

    def _put(self, key: Hashable, value: object, size: int) -> None:
        if self._find(key) is not None:  # another thread was quicker
            return
        for largest, most, items in self._small:
            if size <= largest:
                items.put(key, (value, size))
                while items.size_bytes > most:
                    items.drop_oldest()
                break
        else:
            self._new.put(key, (value, size))
        while self.size_bytes > self._max_bytes:
            self._new.drop_oldest()
