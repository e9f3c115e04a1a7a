"""The words everything else is written in: entries, levels, sequence numbers, ids, clocks."""

from collections.abc import Callable
from typing import Final, Literal, NewType

import msgspec

Seq = NewType("Seq", int)
"""Position of an entry in its project's log: dense, starting at 0, assigned at the WAL append."""

ProjectId = NewType("ProjectId", str)
"""A UUID in its canonical form: 36 characters, lower case."""

Clock = Callable[[], int]
"""Wall clock: nanoseconds since the Unix epoch."""

RandomBytes = Callable[[int], bytes]
"""Source of randomness: `os.urandom` in the daemon, a seeded generator in tests."""

LevelName = Literal["DEBUG", "INFO", "WARN", "ERROR"]

LEVELS: Final[tuple[LevelName, ...]] = ("DEBUG", "INFO", "WARN", "ERROR")
LEVEL_CODE: Final[dict[str, int]] = {name: code for code, name in enumerate(LEVELS)}
"""A level is stored as its position in LEVELS, 0-3."""

LevelCounts = tuple[int, int, int, int]
"""Entries of each level, in the order of LEVELS."""

MAX_MESSAGE_BYTES: Final = 8192
MAX_META_BYTES: Final = 65_536
MAX_SOURCE_CHARS: Final = 256
MAX_TAGS: Final = 64
MAX_TAG_CHARS: Final = 128


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One stored log entry.

    `tags` and `meta` are the JSON texts as they were sent (`[]` and `{}` where absent), so that
    nothing in them is rounded or reordered. `ts_ns`: nanoseconds since the Unix epoch.
    """

    seq: Seq
    ts_ns: int
    level: LevelName
    message: str
    source: str
    tags: bytes
    meta: bytes
