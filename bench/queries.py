"""The questions put to every peer, in a neutral form that each peer translates to its own language.

Searches look at the message alone. Where a peer searches more fields by itself, the corpus makes
sure that the words asked for stand in messages only, so that all peers must answer alike.
"""

from dataclasses import dataclass
from typing import Final

from bench.corpus import EVERYWHERE, RARE_ID, RARE_WORD, START_MS, STEP_MS
from bench.vocabulary import USER_IDS, Level

PAGE: Final = 100
"""Entries on a page of newest entries."""

MINUTE_MS: Final = 60_000


@dataclass(frozen=True)
class Query:
    """The newest `page` entries that meet every condition, and their exact number.

    `words`: whole words, all of them. `phrase`: these words adjacent. `prefix`: the start of a
    word. `substring`: anywhere, also within a word. `from_ms` inclusive, `to_ms` exclusive.
    """

    name: str
    title: str
    words: tuple[str, ...] = ()
    phrase: str | None = None
    prefix: str | None = None
    substring: str | None = None
    user_id: str | None = None
    level: Level | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    worst_case: bool = False
    page: int = PAGE


def queries(entries: int) -> tuple[Query, ...]:
    """The questions for a corpus of so many entries; only the minute of time depends on it."""
    middle = START_MS + entries * STEP_MS // 2
    minute = middle // MINUTE_MS * MINUTE_MS
    return (
        Query("newest", "newest 100"),
        Query("newest_error", "newest 100 ERROR", level="ERROR"),
        Query("rare_word", "rare word (1 in 100,000)", words=(RARE_WORD,)),
        Query("rare_id", "rare hex id (1 in 100,000)", words=(RARE_ID,)),
        Query("two_words", "two common words ANDed", words=("connection", "timeout")),
        Query("phrase", 'phrase "authentication failure"', phrase="authentication failure"),
        Query(
            "minute",
            "one minute of time",
            from_ms=minute,
            to_ms=minute + MINUTE_MS,
        ),
        Query("absent", "word that occurs nowhere", words=("zyzzyva",)),
        Query("everywhere", "word in every entry", words=(EVERYWHERE,), worst_case=True),
        Query("prefix", "prefix of 5% distinct words", prefix="blk_", worst_case=True),
        Query("hex_prefix", "two-digit prefix", prefix="7f", worst_case=True),
        Query("non_ascii", "non-ASCII substring", substring="登录", worst_case=True),
        Query("meta", "meta field equals a value", user_id=USER_IDS[7], worst_case=True),
    )


LEVEL_COUNTS: Final = "levels"
"""The name of the one other question: how many entries of each level."""
