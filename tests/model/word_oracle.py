"""The reference log's answers for many entries: each text is split once, not once a question.

Words, folding and what a meta term matches are the reference log's; only the looking up is not.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from reference import NewEntry, node_matches, reference_fold, reference_words

from logd.entry import LEVELS
from logd.query.ast import And, Field, Filter, Node, Not, Or, Term, Word, WordKind

_FIELDS: Final = (Field.MESSAGE, Field.SOURCE, Field.TAG)


class WordOracle:
    """What matches among entries, whose sequence numbers are their positions."""

    def __init__(self, entries: Sequence[NewEntry]) -> None:
        self._entries = entries
        self._texts: dict[Field, list[list[list[str]]]] = {field: [] for field in _FIELDS}
        self._places: dict[Field, dict[str, list[int]]] = {field: {} for field in _FIELDS}
        self._pieces: dict[str, list[str]] = {}
        for seq, entry in enumerate(entries):
            self._take(Field.MESSAGE, seq, [entry.message])
            self._take(Field.SOURCE, seq, [entry.source])
            self._take(Field.TAG, seq, entry.tags)
        self._newest_first = sorted(
            range(len(entries)), key=lambda seq: (entries[seq].ts_ns, seq), reverse=True
        )

    def _take(self, field: Field, seq: int, texts: Iterable[str]) -> None:
        split = [self._words(text) for text in texts]
        self._texts[field].append(split)
        for word in {word for words in split for word in words}:
            self._places[field].setdefault(word, []).append(seq)

    def _words(self, text: str) -> list[str]:
        """Folded. No word goes beyond a space, and most pieces come again."""
        pieces = self._pieces
        for piece in (split := text.split(" ")):
            if piece not in pieces:
                pieces[piece] = [reference_fold(word) for word in reference_words(piece)]
        return [word for piece in split for word in pieces[piece]]

    def matching(self, filter_: Filter) -> list[int]:
        """Sequence numbers, newest first."""
        found = None
        if filter_.search is not None:
            found = self._node(filter_.search, set(range(len(self._entries))))
        level = None if filter_.level is None else LEVELS[filter_.level]
        return [
            seq
            for seq in self._newest_first
            if (found is None or seq in found)
            and (level is None or self._entries[seq].level == level)
            and (filter_.from_ns is None or self._entries[seq].ts_ns >= filter_.from_ns)
            and (filter_.to_ns is None or self._entries[seq].ts_ns < filter_.to_ns)
        ]

    def _node(self, node: Node, within: set[int]) -> set[int]:
        """The entries among `within` that match."""
        if isinstance(node, Term):
            return self._term(node, within)
        if isinstance(node, Not):
            return within - self._node(node.child, within)
        if isinstance(node, And):
            for child in sorted(node.children, key=_is_meta):
                within = self._node(child, within)
            return within
        assert isinstance(node, Or)
        return set().union(*[self._node(child, within) for child in node.children])

    def _term(self, term: Term, within: set[int]) -> set[int]:
        if term.meta_path is not None:
            return {seq for seq in within if node_matches(term, self._entries[seq])}
        found: set[int] = set()
        for field in _FIELDS if term.field is Field.ANY else (term.field,):
            places = [self._word(field, word) for word in term.words]
            seqs = within.intersection(*places)
            if len(term.words) > 1:
                texts = self._texts[field]
                seqs = {s for s in seqs if any(_adjacent(term.words, t) for t in texts[s])}
            found |= seqs
        return found

    def _word(self, field: Field, word: Word) -> set[int]:
        places = self._places[field]
        if word.kind is WordKind.EXACT:
            return set(places.get(word.text, ()))
        return {seq for text, seqs in places.items() if _is_word(word, text) for seq in seqs}


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
