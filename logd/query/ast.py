"""The syntax tree of a search, and the filter it is part of.

All texts in the tree are folded (`words.fold`). How a tree matches an entry is defined here, in
prose, and decided by `query/match.py` on the text itself:

- A *field value* is the message, the source, or one tag.
- A `Term` matches a field value if its words match consecutive words of the value. `Field.ANY`
  looks at the message, the source and every tag. A term with `meta_path` looks at the meta value
  at that path instead, see `match.py`.
- `WordKind.EXACT` matches an equal word, `PREFIX` a word that begins with it, `SUBSTRING` (any
  word with a non-ASCII character) a word that contains it.
"""

import enum

import msgspec


class Field(enum.Enum):
    __hash__ = object.__hash__  # keys of caches hold it: the one of enums is not built in

    ANY = "any"
    MESSAGE = "message"
    SOURCE = "source"
    TAG = "tag"


class WordKind(enum.Enum):
    __hash__ = object.__hash__

    EXACT = "exact"
    PREFIX = "prefix"
    SUBSTRING = "substring"


class Word(msgspec.Struct, frozen=True):
    text: str
    kind: WordKind = WordKind.EXACT


class Term(msgspec.Struct, frozen=True):
    """One or more adjacent words. `meta_path`: the key path for `meta.a.b:x`, else None."""

    words: tuple[Word, ...]
    field: Field = Field.ANY
    meta_path: tuple[str, ...] | None = None


class And(msgspec.Struct, frozen=True):
    children: tuple["Node", ...]


class Or(msgspec.Struct, frozen=True):
    children: tuple["Node", ...]


class Not(msgspec.Struct, frozen=True):
    child: "Node"


Node = Term | And | Or | Not


class Filter(msgspec.Struct, frozen=True):
    """What a listing asks for. Times are ns since the epoch; `from_ns` inclusive, `to_ns`
    exclusive, None where open. `level` is a level code (0-3)."""

    level: int | None = None
    from_ns: int | None = None
    to_ns: int | None = None
    search: Node | None = None
