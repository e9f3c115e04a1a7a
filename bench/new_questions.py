"""Questions that were never asked before: what is remembered of earlier ones is of no help."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Final

from bench.corpus import RARE_IDS, RARE_WORDS
from bench.queries import Query
from bench.vocabulary import USER_IDS

ASKED: Final = 12
"""Questions of each kind; each is asked once."""

_PHRASES: Final = (
    "deadlock detected", "session opened", "settlement failed", "card declined", "still running",
    "start offset", "full duplex", "connection authorized", "response header", "attempts exceeded",
    "apparmor denied", "timed out",
)  # fmt: skip
_DIGITS: Final = "0123456789"
_HEX: Final = "0123456789abcdef"


@dataclass(frozen=True)
class Kind:
    """Questions that are alike. `make(n)`: the n-th of them, n < ASKED."""

    name: str
    title: str
    make: Callable[[int], Query]

    def questions(self) -> list[Query]:
        return [self.make(n) for n in range(ASKED)]


def _kinds() -> Iterator[Kind]:
    def kind(name: str, title: str, make: Callable[[str, int], Query]) -> Kind:
        return Kind(name, title, lambda n: make(f"{name}_{n}", n))

    yield kind(
        "new_word",
        "rare word (1 in 100,000)",
        lambda name, n: Query(name, name, words=(RARE_WORDS[n],)),
    )
    yield kind(
        "new_id",
        "rare hex id (1 in 100,000)",
        lambda name, n: Query(name, name, words=(RARE_IDS[n],)),
    )
    yield kind("new_phrase", "phrase", lambda name, n: Query(name, name, phrase=_PHRASES[n]))
    yield kind(
        "new_number",
        "phrase with a number",
        lambda name, n: Query(name, name, phrase=f"attempt {n}"),
    )
    yield kind(
        "new_prefix", "two-digit prefix", lambda name, n: Query(name, name, prefix=PREFIXES[n])
    )
    yield kind(
        "new_meta",
        "meta field equals a value",
        lambda name, n: Query(name, name, user_id=USER_IDS[101 + 7 * n]),
    )


def _prefixes() -> list[str]:
    """Beginnings of hexadecimal words, two characters long and then, when those are used up,
    three."""
    shuffled: list[str] = []
    for size in (2, 3):
        some = ["".join(text) for text in product(_DIGITS, *[_HEX] * (size - 1))]
        some = [prefix for prefix in some if not prefix.isdecimal() and prefix != "7f"]
        Random(size).shuffle(some)
        shuffled += some
    return shuffled


PREFIXES: Final = _prefixes()
KINDS: Final = tuple(_kinds())


def new_questions() -> list[Query]:
    return [query for kind in KINDS for query in kind.questions()]


def prefix_questions() -> list[Query]:
    """For a loop that never asks the same; none of them is among the new questions."""
    return [
        Query(f"prefix_{prefix}", f"prefix {prefix}", prefix=prefix, worst_case=True)
        for prefix in PREFIXES[ASKED:]
    ]
