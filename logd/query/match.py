"""Does an entry match? Decided on its text, as the syntax tree defines it.

What a term with a meta path looks at: the values at the path, key within key. A key that has dots
in it stands for as many steps of the path; keys are compared as they stand, not folded. Of equal
keys the last one counts. A text matches by its words as a field does; a number by the words of its
literal as it was sent, so `1.50` is the words `1` and `50`; true, false and null by their names;
an array if one of its elements matches; an object does not.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias, cast

from logd.query.ast import And, Field, Node, Not, Term, Word, WordKind
from logd.words import WORD_BYTE, fold, split_words


def matches(node: Node, message: str, source: str, tags: Sequence[str], meta: bytes) -> bool:
    """Whether the entry matches the tree. `meta`: the JSON object as it was sent."""
    return _holds(node, _Entry(message, source, tags, meta))


def _holds(node: Node, entry: "_Entry") -> bool:
    if isinstance(node, Term):
        return entry.has(node)
    if isinstance(node, Not):
        return not _holds(node.child, entry)
    decisive = not isinstance(node, And)  # one true child decides an Or, one false an And
    for child in node.children:
        if _holds(child, entry) is decisive:
            return decisive
    return not decisive


class _Entry:
    """An entry under examination: each of its texts is folded or parsed once, when first needed."""

    __slots__ = ("_folded", "_meta", "_meta_folded", "_meta_object", "_texts")

    def __init__(self, message: str, source: str, tags: Sequence[str], meta: bytes) -> None:
        self._texts = (message, source, *tags)
        self._folded = fold("\0".join(self._texts))  # NUL is in no word
        self._meta = meta
        self._meta_folded: str | None = None
        self._meta_object: dict[str, _Json] | None = None

    def has(self, term: Term) -> bool:
        if term.meta_path is not None:
            return self._meta_has(term.meta_path, term.words)
        if term.field is Field.ANY and len(term.words) == 1:
            return matches_words(term.words, self._folded)
        if not _all_occur(term.words, self._folded):
            return False
        return any(matches_words(term.words, text) for text in self._values(term.field))

    def _values(self, field: Field) -> Iterator[str]:
        """The folded field values that a term of this field looks at."""
        end = -1
        for index, text in enumerate(self._texts):
            start = end + 1
            end = start + len(text)  # folding keeps the length
            if field is Field.ANY or field is _FIELDS[min(index, 2)]:
                yield self._folded[start:end]

    def _meta_has(self, path: Sequence[str], words: Sequence[Word]) -> bool:
        if self._meta_folded is None:
            self._meta_folded = fold(self._meta.decode())
        # without escapes each text in the JSON stands there as it is
        if "\\" not in self._meta_folded and not _all_occur(words, self._meta_folded):
            return False
        if self._meta_object is None:
            self._meta_object = _parse_object(self._meta.decode())
        values = _texts_at(self._meta_object, ".".join(path))
        return any(matches_words(words, fold(text)) for text in values)


_FIELDS: Final = (Field.MESSAGE, Field.SOURCE, Field.TAG)
"""The field of an entry's first text, of its second, and of all others."""


# ---------------------------------------------------------------- words of a text


def matches_words(words: Sequence[Word], text: str) -> bool:
    """Whether the words, at least one, match consecutive words of a folded text."""
    if not _all_occur(words, text):
        return False
    if len(words) == 1:
        return _matches_word(words[0], text)
    return _matches_phrase(words, split_words(text))


def _all_occur(words: Sequence[Word], text: str) -> bool:
    """Whether each is somewhere in the text, if only within other words: what is cheap to ask."""
    return all([word.text in text for word in words])


def _matches_word(word: Word, text: str) -> bool:
    """For a word that occurs somewhere in the text."""
    kind = word.kind
    if kind is WordKind.SUBSTRING:
        return True
    start = text.index(word.text)
    end = start + len(word.text)
    if not _in_word(text, start - 1) and (kind is WordKind.PREFIX or not _in_word(text, end)):
        return True
    # that was within a longer word; the tokenizer knows where the others are
    return text.find(word.text, end) >= 0 and _matches_phrase((word,), split_words(text))


def _in_word(text: str, index: int) -> bool:
    """Whether a character of a word stands there; outside of the text there is none."""
    return 0 <= index < len(text) and WORD_BYTE[min(ord(text[index]), 0x80)] == 1


def _matches_phrase(words: Sequence[Word], found: Sequence[str]) -> bool:
    """Whether the words match consecutive ones of those found in a text."""
    for word in words[:-1]:
        if word.kind is not WordKind.EXACT:
            return _matches_anywhere(words, found)
    last = words[-1].kind
    if last is WordKind.SUBSTRING:
        return _matches_anywhere(words, found)
    phrase = " ".join([word.text for word in words])
    end = " " if last is WordKind.EXACT else ""
    return f" {phrase}{end}" in f" {' '.join(found)} "


def _matches_anywhere(words: Sequence[Word], found: Sequence[str]) -> bool:
    """`_matches_phrase` for words of any kind: word after word, what is left of the places where
    the phrase could begin."""
    starts: Sequence[int] = range(len(found) - len(words) + 1)
    for offset, word in enumerate(words):
        text = word.text
        if word.kind is WordKind.EXACT:
            starts = [start for start in starts if found[start + offset] == text]
        elif word.kind is WordKind.PREFIX:
            starts = [start for start in starts if found[start + offset].startswith(text)]
        else:
            starts = [start for start in starts if text in found[start + offset]]
    return len(starts) > 0


# ---------------------------------------------------------------- values in meta

_Json: TypeAlias = "str | bool | list[_Json] | dict[str, _Json] | None"
"""A JSON value whose numbers are their literals, as text."""

_NAMES: Final[dict[bool | None, str]] = {True: "true", False: "false", None: "null"}


def _texts_at(root: dict[str, _Json], path: str) -> Iterator[str]:
    """What there is to match at a path, its keys joined by dots.

    A loop and not a recursion, as in all that follows: meta may be nested as deep as the stack.
    """
    pending = [(root, path)]
    while pending:
        members, rest = pending.pop()
        for key, value in members.items():
            if key == rest:
                yield from _texts_of(value)
            elif isinstance(value, dict) and rest.startswith(f"{key}."):
                pending.append((value, rest[len(key) + 1 :]))


def _texts_of(value: _Json) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            pending += item
        elif not isinstance(item, dict):
            yield _NAMES[item]


_decoder: Final = json.JSONDecoder(parse_int=str, parse_float=str)
_TOKEN: Final = re.compile(r'[\[\]{}]|"(?:[^"\\]|\\.)*"|[^\s\[\]{}:,"]+')


def _parse_object(text: str) -> dict[str, _Json]:
    """Of a JSON object's text, known to be valid."""
    try:
        return cast(dict[str, _Json], _decoder.decode(text))
    except RecursionError:  # the one who accepted it had more stack left
        return cast(dict[str, _Json], _parse_deep(text))


def _parse_deep(text: str) -> _Json:
    """As the decoder, but slower and for any depth."""
    unclosed: list[list[_Json]] = [[]]
    for token in _TOKEN.findall(text):
        if token in "[{":
            unclosed.append([])
        elif token == "]":
            items = unclosed.pop()
            unclosed[-1].append(items)
        elif token == "}":
            items = unclosed.pop()
            keys = cast(list[str], items[::2])
            unclosed[-1].append(dict(zip(keys, items[1::2], strict=True)))
        else:
            unclosed[-1].append(cast(_Json, _decoder.decode(token)))
    return unclosed[0][0]
