"""What a project's log must answer, by brute force: a list of entries, and loops over it.

It shares the grammar (`parse_search`) with the daemon, and nothing that decides what matches: it
folds, splits and compares on its own, one character and one word at a time.
"""

import functools
import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from logd.entry import LEVELS, LevelName
from logd.query.ast import And, Field, Filter, Node, Or, Term, Word, WordKind
from logd.query.syntax import parse_search


class NewEntry(msgspec.Struct, frozen=True):
    """`meta`: a JSON object as it is sent."""

    ts_ns: int
    level: LevelName
    message: str
    source: str
    tags: tuple[str, ...] = ()
    meta: bytes = b"{}"


class Row(msgspec.Struct, frozen=True):
    seq: int
    entry: NewEntry


Rows = list[Row]
Seqs = list[int]


class Position(msgspec.Struct, frozen=True):
    """Where a page ends: its last entry, and the end of the log when the first page was listed."""

    pinned_seq: int
    last_ts_ns: int
    last_seq: int


class ReferenceLog:
    """One project's log. Sequence numbers count from 0."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._next_seq = 0

    def append(self, entries: Iterable[NewEntry]) -> Seqs:
        """The sequence numbers given to them."""
        first = self._next_seq
        for entry in entries:
            self._rows.append(Row(self._next_seq, entry))
            self._next_seq += 1
        return [*range(first, self._next_seq)]

    def get(self, seq: int) -> Row | None:
        for row in self._rows:
            if row.seq == seq:
                return row
        return None

    def stats(self) -> dict[LevelName, int]:
        return {level: sum(row.entry.level == level for row in self._rows) for level in LEVELS}

    def list(
        self,
        filter_: Filter | str = "",
        limit: int = 100,
        after: Position | None = None,
    ) -> tuple[Rows, int]:
        """(a page, newest first, and how many entries match on all pages).

        `filter_`: a filter, or just the text of a search. `after`: where the page before ended;
        `position` gives it.
        """
        if isinstance(filter_, str):
            filter_ = Filter(search=parse_search(filter_))
        pinned_seq = self._next_seq if after is None else after.pinned_seq
        found = [row for row in self._rows if row.seq < pinned_seq and _passes(filter_, row.entry)]
        found.sort(key=lambda row: (row.entry.ts_ns, row.seq), reverse=True)
        rest = found
        if after is not None:
            end = (after.last_ts_ns, after.last_seq)
            rest = [row for row in found if (row.entry.ts_ns, row.seq) < end]
        return rest[:limit], len(found)

    def position(self, page: Sequence[Row], before: Position | None = None) -> Position:
        """Where a page ends that holds something. `before`: where the page before it ended."""
        pinned_seq = self._next_seq if before is None else before.pinned_seq
        return Position(pinned_seq, page[-1].entry.ts_ns, page[-1].seq)


def _passes(filter_: Filter, entry: NewEntry) -> bool:
    if filter_.level is not None and entry.level != LEVELS[filter_.level]:
        return False
    if filter_.from_ns is not None and entry.ts_ns < filter_.from_ns:
        return False
    if filter_.to_ns is not None and entry.ts_ns >= filter_.to_ns:
        return False
    return filter_.search is None or node_matches(filter_.search, entry)


def node_matches(node: Node, entry: NewEntry) -> bool:
    if isinstance(node, Term):
        return any(words_match(node.words, text) for text in _texts(node, entry))
    if isinstance(node, And):
        return all([node_matches(child, entry) for child in node.children])
    if isinstance(node, Or):
        return any([node_matches(child, entry) for child in node.children])
    return not node_matches(node.child, entry)


def _texts(term: Term, entry: NewEntry) -> list[str]:
    """The texts that a term looks at."""
    if term.meta_path is not None:
        meta = json.loads(entry.meta, parse_int=_Number, parse_float=_Number)
        return _meta_texts(meta, list(term.meta_path))
    return {
        Field.ANY: [entry.message, entry.source, *entry.tags],
        Field.MESSAGE: [entry.message],
        Field.SOURCE: [entry.source],
        Field.TAG: list(entry.tags),
    }[term.field]


class _Number:
    def __init__(self, literal: str) -> None:
        self.literal = literal


def _meta_texts(value: Any, path: list[str]) -> list[str]:
    if path:
        if not isinstance(value, dict):
            return []
        texts = []
        for split in range(1, len(path) + 1):
            key = ".".join(path[:split])
            if key in value:
                texts += _meta_texts(value[key], path[split:])
        return texts
    if isinstance(value, list):
        return [text for item in value for text in _meta_texts(item, [])]
    if isinstance(value, dict):
        return []
    if isinstance(value, _Number):
        return [value.literal]
    return [value if isinstance(value, str) else json.dumps(value)]


def words_match(words: Sequence[Word], text: str) -> bool:
    """Whether the words match consecutive words of a text, which need not be folded."""
    found = [reference_fold(word) for word in reference_words(text)]
    for start in range(len(found)):
        window = found[start : start + len(words)]
        if len(window) == len(words) and all(map(_word_matches, words, window)):
            return True
    return False


def _word_matches(word: Word, found: str) -> bool:
    return {
        WordKind.EXACT: found == word.text,
        WordKind.PREFIX: found[: len(word.text)] == word.text,
        WordKind.SUBSTRING: word.text in found,
    }[word.kind]


def reference_words(text: str) -> list[str]:
    words = [""]
    for character in text:
        if ord(character) >= 0x80 or character.isalnum() or character == "_":
            words[-1] += character
        else:
            words.append("")
    return [word for word in words if word]


def reference_fold(text: str) -> str:
    return "".join([_fold_character(character) for character in text])


@functools.cache
def _fold_character(character: str) -> str:
    lower = character.lower()
    same_size = len(lower) == 1 and len(lower.encode()) == len(character.encode())
    return lower if same_size else character
