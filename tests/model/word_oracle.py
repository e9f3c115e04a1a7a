"""The reference log's answers for many entries: each text is split once, not once a question.

Words, folding and what a meta term matches are the reference log's; only the looking up is not.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from reference import NewEntry, node_matches, reference_fold, reference_words

from logd.entry import LEVELS
from logd.query.ast import And, Field, Filter, Node, Not, Or, Term, Word, WordKind

_FIELDS: Final = (Field.MESSAGE, Field.SOURCE, Field.TAG)

Bools = npt.NDArray[np.bool_]


class WordOracle:
    """What matches among entries, whose sequence numbers are their positions."""

    def __init__(self, entries: Sequence[NewEntry]) -> None:
        self._entries = entries
        self._pieces: dict[str, list[str]] = {}
        self._places = {field: defaultdict[str, "array[int]"](_integers) for field in _FIELDS}
        for seq, entry in enumerate(entries):
            self._take(Field.MESSAGE, seq, [entry.message])
            self._take(Field.SOURCE, seq, [entry.source])
            self._take(Field.TAG, seq, entry.tags)
        self._times = np.array([entry.ts_ns for entry in entries], np.int64)
        self._levels = np.array([LEVELS.index(entry.level) for entry in entries])
        self._newest_first = np.lexsort((np.arange(len(entries)), self._times))[::-1]

    def _take(self, field: Field, seq: int, texts: Iterable[str]) -> None:
        places = self._places[field]
        for word in {word for text in texts for word in self._words(text)}:
            places[word].append(seq)

    def _words(self, text: str) -> list[str]:
        """Folded. No word goes beyond a space, and most pieces come again."""
        pieces = self._pieces
        for piece in (split := text.split(" ")):
            if piece not in pieces:
                pieces[piece] = [reference_fold(word) for word in reference_words(piece)]
        return [word for piece in split for word in pieces[piece]]

    def matching(self, filter_: Filter) -> list[int]:
        """Sequence numbers, newest first."""
        found = np.ones(len(self._entries), np.bool_)
        if filter_.level is not None:
            found &= self._levels == filter_.level
        if filter_.from_ns is not None:
            found &= self._times >= filter_.from_ns
        if filter_.to_ns is not None:
            found &= self._times < filter_.to_ns
        if filter_.search is not None:
            found = self._node(filter_.search, found)
        order = self._newest_first
        seqs: list[int] = order[found[order]].tolist()
        return seqs

    def _node(self, node: Node, within: Bools) -> Bools:
        """bool[entries]: those among `within` that match."""
        if isinstance(node, Term):
            return self._term(node, within)
        if isinstance(node, Not):
            return within & ~self._node(node.child, within)
        if isinstance(node, And):
            for child in sorted(node.children, key=_is_meta):
                within = self._node(child, within)
            return within
        assert isinstance(node, Or)
        found = np.zeros(len(within), np.bool_)
        for child in node.children:
            found |= self._node(child, within)
        return found

    def _term(self, term: Term, within: Bools) -> Bools:
        if term.meta_path is not None:
            found = within.copy()
            for seq in np.flatnonzero(within).tolist():
                found[seq] = node_matches(term, self._entries[seq])
            return found
        found = np.zeros(len(within), np.bool_)
        for field in _FIELDS if term.field is Field.ANY else (term.field,):
            holding = within.copy()
            for word in term.words:
                holding &= self._word(field, word)
            if len(term.words) > 1:
                for seq in np.flatnonzero(holding).tolist():
                    texts = map(self._words, _texts(field, self._entries[seq]))
                    holding[seq] = any(_adjacent(term.words, words) for words in texts)
            found |= holding
        return found

    def _word(self, field: Field, word: Word) -> Bools:
        found = np.zeros(len(self._entries), np.bool_)
        places = self._places[field]
        if word.kind is WordKind.EXACT:
            found[places.get(word.text, _integers())] = True
            return found
        for text, seqs in places.items():
            if _is_word(word, text):
                found[seqs] = True
        return found


def _integers() -> "array[int]":
    return array("q")


def _texts(field: Field, entry: NewEntry) -> Sequence[str]:
    if field is Field.MESSAGE:
        return [entry.message]
    return [entry.source] if field is Field.SOURCE else entry.tags


def _is_meta(node: Node) -> bool:
    return isinstance(node, Term) and node.meta_path is not None


def _is_word(word: Word, text: str) -> bool:
    if word.kind is WordKind.PREFIX:
        return text.startswith(word.text)
    if word.kind is WordKind.SUBSTRING:
        return word.text in text
    return text == word.text


def _adjacent(words: Sequence[Word], texts: Sequence[str]) -> bool:
    return any(
        all(_is_word(word, texts[start + n]) for n, word in enumerate(words))
        for start in range(len(texts) - len(words) + 1)
    )
