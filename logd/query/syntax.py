"""The search language: text -> syntax tree.

    search  = any
    any     = all { "OR" all }
    all     = one { [ "AND" ] one }
    one     = { "NOT" | "-" } operand
    operand = [ scope ] ( bare | phrase | "(" any ")" )
    scope   = ( "source" | "tag" | "message" | "meta." path ) ":"
    bare    = characters other than white space, parentheses and quotes
    phrase  = quote, characters (\\" and \\\\ stand for " and \\), quote
    path    = keys with dots between; characters of a bare other than ":"

An operator stands alone and in upper case; `-` negates where a term begins. A bare or a phrase
means the words in it, side by side; a `*` right after the last word of a bare, or between the last
word and the closing quote of a phrase, makes that word a prefix. A scope that is not one of these
is no scope: `http://x:80` is a phrase. In a group the innermost scope counts.

The tree is normal: no And or Or of fewer than two children or directly within its own kind, no
Not of a Not.
"""

import enum
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from logd.errors import BadQuery
from logd.query.ast import And, Field, Node, Not, Or, Term, Word, WordKind
from logd.words import fold, split_words

MAX_TEXT_CHARS: Final = 4096
MAX_WORDS: Final = 256
"""Of all terms together: each is looked for, and a phrase at each place where it may begin."""
MAX_NESTING: Final = 64
"""Parentheses within parentheses; it bounds the depth of the recursion here and in the tree."""

_USUAL_CHARS: Final = 256


def parse_search(text: str) -> Node | None:
    """The tree of a search, None if it is blank. Raises BadQuery."""
    if len(text) > MAX_TEXT_CHARS:
        detail = f"{len(text)} characters, at most {MAX_TEXT_CHARS}"
        raise _bad("too_long", detail, MAX_TEXT_CHARS)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _bad("invalid_text", "a lone surrogate is not text", error.start) from None
    return _usual_search(text) if len(text) <= _USUAL_CHARS else _parse(text)


def _parse(text: str) -> Node | None:
    return None if _INK.search(text) is None else _Parser(_tokens(text)).parse()


_usual_search: Final = lru_cache(maxsize=256)(_parse)  # a dashboard asks the same again and again


def _bad(code: str, detail: str, position: int) -> BadQuery:
    return BadQuery("search", code, f"search: {detail} (at {position})", position)


# ---------------------------------------------------------------- text -> tokens


class _Kind(enum.Enum):
    __hash__ = object.__hash__  # sets are asked for it at every token: the one of enums is slow

    TERM = "term"
    OPEN = "("
    CLOSE = ")"
    NOT = "NOT"
    AND = "AND"
    OR = "OR"
    END = "end"


_OPERATORS: Final = frozenset({_Kind.NOT, _Kind.AND, _Kind.OR})
_BEGINNINGS: Final = frozenset({_Kind.TERM, _Kind.OPEN, _Kind.NOT})
"""What an operand, negated or not, begins with."""


class _Scope(msgspec.Struct, frozen=True):
    field: Field = Field.ANY
    meta_path: tuple[str, ...] | None = None


class _Token(msgspec.Struct, frozen=True):
    """`scope` is None where the term or group names none itself; `words` are a term's."""

    kind: _Kind
    position: int
    scope: _Scope | None = None
    words: tuple[Word, ...] = ()


_INK: Final = re.compile(r"\S")
_OPERATOR: Final = re.compile(r'(?<!-)(NOT|AND|OR)(?=[\s()"]|\Z)')
_NEGATED: Final = re.compile(r"-(?=[^\s)])")
_SCOPE: Final = re.compile(r'(source|tag|message):|meta\.([^\s:"()]+):')
_BARE: Final = re.compile(r'[^\s"()]+')
_PHRASE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE: Final = re.compile(r'\\(["\\])')


def _tokens(text: str) -> Iterator[_Token]:
    """The tokens in order, END last."""
    position = 0
    while ink := _INK.search(text, position):
        token, position = _token(text, ink.start())
        yield token
    yield _Token(_Kind.END, len(text))


def _token(text: str, start: int) -> tuple[_Token, int]:
    """The token that begins at `start`, and where it ends."""
    if text[start] == ")":
        return _Token(_Kind.CLOSE, start), start + 1
    if _NEGATED.match(text, start):
        return _Token(_Kind.NOT, start), start + 1
    if match := _OPERATOR.match(text, start):
        return _Token(_Kind(match[1]), start), match.end()
    scope, body = _scope(text, start)
    if text.startswith("(", body):
        return _Token(_Kind.OPEN, start, scope), body + 1
    words, end = _term(text, start, body)
    return _Token(_Kind.TERM, start, scope, words), end


def _scope(text: str, start: int) -> tuple[_Scope | None, int]:
    """The scope that begins at `start`, None if none does, and where it ends."""
    match = _SCOPE.match(text, start)
    if match is None:
        return None, start
    if match[1] is None:
        return _Scope(meta_path=tuple(match[2].split("."))), match.end()
    return _Scope(Field(match[1])), match.end()


def _term(text: str, start: int, body: int) -> tuple[tuple[Word, ...], int]:
    """The words of the bare or phrase at `body`, and where it ends. `start`: its scope's start."""
    if text.startswith('"', body):
        match = _PHRASE.match(text, body)
        if match is None:
            raise _bad("open_quote", "a quote is not closed", body)
        words, rest = _words(_ESCAPE.sub(r"\1", match[1]), start)
        return _with_prefix(words) if rest == "*" else words, match.end()
    match = _BARE.match(text, body)
    if match is None:
        raise _bad("empty_term", f"nothing follows {text[start:body]}", start)
    words, rest = _words(match[0], start)
    return _with_prefix(words) if rest.startswith("*") else words, match.end()


def _words(content: str, start: int) -> tuple[tuple[Word, ...], str]:
    """The words of a term that stands at `start`, and the punctuation after the last one."""
    folded = fold(content)
    texts = split_words(folded)
    if not texts:
        raise _bad("empty_term", "a term has no letter or digit in it", start)
    # nothing that follows the last word belongs to a word: its last occurrence is itself
    rest = folded[folded.rindex(texts[-1]) + len(texts[-1]) :]
    return tuple(Word(text, _kind(text)) for text in texts), rest


def _kind(text: str) -> WordKind:
    return WordKind.EXACT if text.isascii() else WordKind.SUBSTRING


def _with_prefix(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The last word becomes a prefix, unless it matches as a substring anyway."""
    last = words[-1]
    if last.kind is WordKind.SUBSTRING:
        return words
    return (*words[:-1], Word(last.text, WordKind.PREFIX))


# ---------------------------------------------------------------- tokens -> tree


class _Parser:
    """Recursive descent over the tokens, at least one; three calls for each level of parentheses.
    No token is looked for before it is its turn: what is refused early costs little."""

    def __init__(self, tokens: Iterator[_Token]) -> None:
        self._tokens = tokens
        self._token = self._before = next(tokens)
        self._words = 0

    def parse(self) -> Node:
        node = self._any(_Scope(), 0)
        if self._token.kind is _Kind.CLOSE:
            raise _stray(self._token)
        return node

    def _take(self, kind: _Kind) -> bool:
        """Whether the next token is of that kind; if so, step over it."""
        found = self._token.kind is kind
        if found:
            self._before, self._token = self._token, next(self._tokens)
        return found

    def _any(self, scope: _Scope, nesting: int) -> Node:
        children = [self._all(scope, nesting)]
        while self._take(_Kind.OR):
            children.append(self._all(scope, nesting))
        return _join(Or, children)

    def _all(self, scope: _Scope, nesting: int) -> Node:
        children = [self._one(scope, nesting)]
        while self._take(_Kind.AND) or self._token.kind in _BEGINNINGS:
            children.append(self._one(scope, nesting))
        return _join(And, children)

    def _one(self, scope: _Scope, nesting: int) -> Node:
        negated = False
        while self._take(_Kind.NOT):
            negated = not negated
        node = self._operand(scope, nesting)
        if not negated:
            return node
        return node.child if isinstance(node, Not) else Not(node)

    def _operand(self, outer: _Scope, nesting: int) -> Node:
        token = self._token
        scope = token.scope or outer
        if token.kind is _Kind.TERM:
            self._words += len(token.words)
            if self._words > MAX_WORDS:
                raise _bad("too_complex", f"more than {MAX_WORDS} words", token.position)
            self._take(_Kind.TERM)
            return Term(token.words, scope.field, scope.meta_path)
        if self._take(_Kind.OPEN):
            return self._group(token, scope, nesting + 1)
        raise self._missing_operand()

    def _group(self, opening: _Token, scope: _Scope, nesting: int) -> Node:
        if nesting > MAX_NESTING:
            detail = f"parentheses nested deeper than {MAX_NESTING}"
            raise _bad("too_complex", detail, opening.position)
        if self._take(_Kind.CLOSE):
            raise _bad("empty_term", "nothing stands between parentheses", opening.position)
        if self._token.kind is not _Kind.END:
            node = self._any(scope, nesting)
            if self._take(_Kind.CLOSE):
                return node
        raise _bad("open_parenthesis", "a parenthesis is not closed", opening.position)

    def _missing_operand(self) -> BadQuery:
        """What to say where an operand should stand and does not: one of the tokens on both sides
        is an operator, or a parenthesis is closed too early."""
        before, after = self._before, self._token
        lone = before if before.kind in _OPERATORS else after
        if lone.kind is _Kind.CLOSE:
            return _stray(lone)
        detail = f"{lone.kind.value} has no operand on one side"
        return _bad("lone_operator", detail, lone.position)


def _stray(closing: _Token) -> BadQuery:
    detail = "a parenthesis is closed that was not opened"
    return _bad("stray_parenthesis", detail, closing.position)


def _join(kind: type[And] | type[Or], children: list[Node]) -> Node:
    """The conjunction or disjunction of at least one node, in normal form."""
    if len(children) == 1:
        return children[0]
    flat: list[Node] = []
    for child in children:
        flat += child.children if isinstance(child, kind) else (child,)
    return kind(tuple(flat))
