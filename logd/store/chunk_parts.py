"""What a chunk gives to those who decode its parts."""

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol, TypeVar

from logd.errors import Corruption
from logd.format.chunk import ChunkHead
from logd.format.part_table import Part, PartRef

T = TypeVar("T")


class ChunkParts(Protocol):
    """The stored parts, and the cache of what was decoded of them. What reads raises Corruption
    where the bytes do not hold."""

    @property
    def count(self) -> int: ...
    @property
    def block_size(self) -> int: ...
    def head(self) -> ChunkHead: ...
    def block_rows(self, block: int) -> slice: ...
    def has_part(self, kind: Part) -> bool: ...

    def raw_part(self, kind: Part, block: int = 0) -> tuple[PartRef, bytes]:
        """A part, read and checked."""

    def raw_parts(self, kinds: Sequence[Part], block: int) -> list[tuple[PartRef, bytes]]:
        """Parts of a block that lie one behind the other, read at once."""

    def corrupt(self, kind: Part, error: Exception) -> Corruption:
        """What to raise for a part whose bytes do not hold."""

    def cached(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T:
        """A value of this chunk; `load()` gives (value, bytes it takes)."""

    def cached_passing(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T:
        """The same, of a value that is seldom asked for again."""

    def cached_already(self, key: Hashable) -> object | None:
        """A value of this chunk if it is cached."""
