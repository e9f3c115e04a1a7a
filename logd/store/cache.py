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
from collections.abc import Callable, Hashable, Iterable
from typing import Final, Protocol, TypeVar, cast

T = TypeVar("T")

_KEPT_SHARE: Final = 0.45
_LARGEST_SHARE: Final = 0.125
_ITEM_BYTES: Final = 300
"""What an item takes besides its value."""

# Of the list of answers and of that of tables: the largest item in bytes, and as a share of the
# budget, and what all of them may take of it.
_ANSWERS: Final = (4 << 10, 0.0001, 0.2)
_TABLES: Final = (16 << 10, 0.001, 0.2)


class _List:
    """Keys by last use, and the bytes of all that they stand for."""

    def __init__(self) -> None:
        self.keys: OrderedDict[Hashable, None] = OrderedDict()
        self.size_bytes = 0


class _Item:
    """A value, the bytes that it takes, and the list that it is in."""

    __slots__ = ("owner", "size", "value")

    def __init__(self, value: object, size: int, owner: _List) -> None:
        self.value = value
        self.size = size
        self.owner = owner


class Cache(Protocol):
    """How a chunk's values are looked up, see PartCache."""

    def get(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T: ...
    def get_passing(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T: ...
    def peek(self, key: Hashable) -> object | None: ...
    def peek_each(self, keys: Iterable[Hashable]) -> list[object | None]: ...


class PartCache:
    """Shared by all projects; values are immutable and may be used from any thread."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._items: dict[Hashable, _Item] = {}
        self._new = _List()
        self._kept = _List()
        self._small = [
            (min(most, max_bytes * largest_share), max_bytes * share, _List())
            for most, largest_share, share in (_ANSWERS, _TABLES)
        ]
        self._size_bytes = 0
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def get(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T:
        """The value of `key`; `load()` gives (value, bytes it takes) where it is not cached.

        A key always stands for one type, so the cast holds.
        """
        with self._lock:
            found = self._find(key)
            if found is not None:
                return cast(T, found.value)
        value, size = load()
        size += _ITEM_BYTES
        if size <= self._max_bytes * _LARGEST_SHARE:
            with self._lock:
                self._put(key, value, size)
        return value

    def get_passing(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T:
        """The same, of what is seldom asked for again: it is kept from the second time on."""
        with self._lock:
            found = self._find(key)
            is_second = found is not None or self._find(("passed", key)) is not None
            if not is_second:
                self._put(("passed", key), None, _ITEM_BYTES)
        if found is not None:
            return cast(T, found.value)
        return self.get(key, load) if is_second else load()[0]

    def peek(self, key: Hashable) -> object | None:
        """The value of `key` if it is cached."""
        with self._lock:
            found = self._find(key)
        return None if found is None else found.value

    def peek_each(self, keys: Iterable[Hashable]) -> list[object | None]:
        """The same of several keys, at the price of hardly more than one."""
        with self._lock:
            found = [self._find(key) for key in keys]
        return [None if item is None else item.value for item in found]

    def _find(self, key: Hashable) -> _Item | None:
        item = self._items.get(key)
        if item is not None:
            if item.owner is self._new:
                self._keep(key, item)
            else:
                item.owner.keys.move_to_end(key)
        return item

    def _keep(self, key: Hashable, item: _Item) -> None:
        """What was not used for longest is new again."""
        self._move(key, item, self._kept)
        while self._kept.size_bytes > self._max_bytes * _KEPT_SHARE:
            oldest = next(iter(self._kept.keys))
            self._move(oldest, self._items[oldest], self._new)

    def _move(self, key: Hashable, item: _Item, to: _List) -> None:
        del item.owner.keys[key]
        item.owner.size_bytes -= item.size
        to.keys[key] = None
        to.size_bytes += item.size
        item.owner = to

    def _put(self, key: Hashable, value: object, size: int) -> None:
        if self._find(key) is not None:  # another thread was quicker
            return
        owner, most = self._new, float(self._max_bytes)
        for largest, of_list, items in self._small:
            if size <= largest:
                owner, most = items, of_list
                break
        self._items[key] = _Item(value, size, owner)
        owner.keys[key] = None
        owner.size_bytes += size
        self._size_bytes += size
        while owner.size_bytes > most:
            self._drop_oldest(owner)
        while self._size_bytes > self._max_bytes:
            self._drop_oldest(self._new)

    def _drop_oldest(self, of_list: _List) -> None:
        key, _ = of_list.keys.popitem(last=False)
        size = self._items.pop(key).size
        of_list.size_bytes -= size
        self._size_bytes -= size
