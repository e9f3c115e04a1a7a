import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import NewEntry, node_matches, reference_fold, reference_words, words_match

from logd.query.ast import And, Field, Node, Not, Or, Term, Word, WordKind
from logd.query.match import matches, matches_words
from logd.query.syntax import parse_search
from logd.words import fold, split_words

unhurried = settings(deadline=None)

MESSAGE = "Failed password for user admin from 10.0.0.1 port 52113 (authentication failure)"
META = b"""{
    "user": "Ann Lee", "ip": "10.0.0.1", "ok": true, "gone": null, "count": 1.50, "big":
    12345678901234567890123, "small": -1E-7, "http": {"status": 404, "request.method": "GET"},
    "http.version": "h2", "roles": ["admin", 7, [false, "nested deep"], {"id": "hidden"}],
    "twice": "first", "twice": "last", "caf\\u00e9": "na\\u00efve \\u0061scii",
    "": "empty", "a.": {"b": "dot"}
}"""


def found(search: str) -> bool:
    node = parse_search(search)
    assert node is not None
    return matches(node, MESSAGE, "auth-service", ["prod", "eu-west-1", "Größe 用户登录"], META)


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("failed", True),
        ("FAILED", True),
        ("fail", False),
        ("ailed", False),
        ("fail*", True),
        ("ail*", False),
        ("auth", True),
        ("authentication", True),
        ("10.0.0.1", True),
        ("0.0.1", True),
        ("10.0.1", False),
        ("10.0.0.1*", True),
        ('"authentication failure"', True),
        ('"failure authentication"', False),
        ('"authentication fail*"', True),
        ('"authentication fail"', False),
        ("eu-west", True),
        ("west-1", True),
        ("prod-eu", False),
        ('"prod eu"', False),
        ('"service prod"', False),
        ("größe", True),
        ("röß", True),
        ("GRÖSSE", False),
        ("用户", True),
        ("户登", True),
        ("登用", False),
        ('"größe 用户"', True),
        ('"öße 登录"', True),
        ('"用户 größe"', False),
        ("password -10.0.0.2", True),
        ("password -10.0.0.1", False),
        ("nothing OR admin", True),
        ("nothing OR (admin prod)", True),
        ("nothing OR (admin test)", False),
        ("-(nothing OR admin)", False),
    ],
)
def test_any_field_may_hold_a_term_but_one_field_its_whole_phrase(
    search: str, expected: bool
) -> None:
    assert found(search) is expected


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("source:auth", True),
        ("source:auth-service", True),
        ("source:prod", False),
        ("source:admin", False),
        ("tag:prod", True),
        ("tag:eu-west-1", True),
        ("tag:auth", False),
        ("tag:admin", False),
        ("message:admin", True),
        ("message:auth", False),
        ("message:prod", False),
        ("message:auth*", True),
        ("-source:prod", True),
        ("tag:(prod eu)", True),
        ("tag:(prod auth)", False),
        ('tag:"prod eu"', False),
    ],
)
def test_a_scope_looks_at_its_field_only(search: str, expected: bool) -> None:
    assert found(search) is expected


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("meta.user:ann", True),
        ("meta.user:an", False),
        ("meta.user:an*", True),
        ('meta.user:"ann lee"', True),
        ("meta.User:ann", False),
        ("meta.ip:10.0.0.1", True),
        ("meta.ip:10", True),
        ("meta.ok:true", True),
        ("meta.ok:True", True),
        ("meta.ok:false", False),
        ("meta.gone:null", True),
        ("meta.count:1.50", True),
        ("meta.count:50", True),
        ("meta.count:1.5", False),
        ("meta.big:12345678901234567890123", True),
        ("meta.big:12345678901234567890124", False),
        ("meta.small:1e-7", True),
        ("meta.http.status:404", True),
        ("meta.status:404", False),
        ("meta.http.request.method:get", True),
        ("meta.http.version:h2", True),
        ("meta.http:404", False),
        ("meta.roles:admin", True),
        ("meta.roles:7", True),
        ("meta.roles:false", True),
        ('meta.roles:"nested deep"', True),
        ('meta.roles:"admin 7"', False),
        ("meta.roles:hidden", False),
        ("meta.roles.id:hidden", False),
        ("meta.twice:last", True),
        ("meta.twice:first", False),
        ("meta.café:naïve", True),
        ("meta.café:ascii", True),
        ("meta.a..b:dot", True),
        ("meta.absent:ann", False),
        ("-meta.absent:ann", True),
        ("ann", False),
    ],
)
def test_a_meta_term_looks_at_the_value_at_its_path(search: str, expected: bool) -> None:
    assert found(search) is expected


@pytest.mark.parametrize(
    ("meta", "search", "expected"),
    [
        (b'{"a.b": 1}', "meta.a.b:1", True),
        (b'{"a": {"b": 1}}', "meta.a.b:1", True),
        (b'{"a": 2, "a.b": 1}', "meta.a.b:1", True),
        (b'{"a": {"b": 1}}', "meta.axb:1", False),
        (b'{"a": {"b": 1}}', "meta.ax.b:1", False),
        (b'{"a": {"b": 2}, "a.b": 1}', "meta.a.b:1", True),
        (b'{"a": {"b": 2}, "a.b": 1}', "meta.a.b:2", True),
        (b'{"a": {"b.c": {"d": 1}}}', "meta.a.b.c.d:1", True),
        (b'{"a.b": {"c.d": 1}}', "meta.a.b.c.d:1", True),
        (b'{"a.b": {"c.d": 1}}', "meta.a.b.c:1", False),
        (b'{"a": {"b": 1}, "a": {"c": 1}}', "meta.a.b:1", False),
        (b'{"a": "1", "a": {"b": 1}}', "meta.a:1", False),
        (b'{"a": [[[1]]]}', "meta.a:1", True),
        (b'{"a": []}', "meta.a:1", False),
        (b'{"a": "\\"q\\" \\\\ \\/x"}', "meta.a:x", True),
        (b'{"a": "\\ud83d\\ude00"}', "meta.a:\U0001f600", True),
        (b'{"\\u0061": "b"}', "meta.a:b", True),
        (b'{"a": "one\\u0000two"}', "meta.a:two", True),
        (b"{}", "meta.a:1", False),
    ],
)
def test_keys_with_dots_and_equal_keys_and_escapes(
    meta: bytes, search: str, expected: bool
) -> None:
    node = parse_search(search)
    assert node is not None
    assert matches(node, "", "s", [], meta) is expected


def test_a_word_is_found_behind_longer_words_that_hold_it() -> None:
    exact, prefix = Word("err"), Word("err", WordKind.PREFIX)
    assert matches_words([exact], "error xerr err")
    assert matches_words([exact], "xerrerr err")
    assert not matches_words([exact], "xerrerr error err_")
    assert matches_words([prefix], "xerr error")
    assert not matches_words([prefix], "xerr _err éerr")
    assert not matches_words([exact], "")


def test_a_phrase_may_be_long() -> None:
    text = " ".join(f"w{n}" for n in range(1000))
    words = [Word(f"w{n}") for n in range(500, 900)]
    assert matches_words(words, text)
    assert matches_words([*words, Word("w90", WordKind.PREFIX)], text)
    assert not matches_words([*words, Word("w90")], text)
    assert not matches_words([*words, Word("w901")], text)
    assert not matches_words([Word("w")] * 300, "w " * 299)
    assert matches_words([Word("w")] * 300, "w " * 300)


def test_the_letters_that_do_not_fold_match_only_themselves() -> None:
    for letter, lookalike in (("\u212a", "k"), ("\u0130", "i"), ("\u1e9e", "ß"), ("ς", "Σ")):
        term = parse_search(letter)
        assert term is not None
        assert matches(term, f"x{letter}y", "s", [], b"{}")
        assert not matches(term, f"x{lookalike}y", "s", [], b"{}")


# ---------------------------------------------------------------- against the reference

# Few characters, so that things do match: ASCII letters in both cases, digits, all kinds of
# punctuation, Kelvin sign, dotted and dotless i, both small sigmas, sharp s, a combining accent,
# CJK, ideographic and no-break space, NUL, newline, and the ends of the UTF-8 sizes.
CHARACTERS = (
    'aAbk1_ .-:*"\\\0\n\u212aİıΣσςßẞéE\u0301用户\u3000\u00a0\u0080\u07ff\u0800\uffff\U00010000'
)
TEXTS = st.text(st.sampled_from(CHARACTERS), max_size=30)
WORDY_TEXTS = st.lists(st.sampled_from(["a", "b", "ab", "A", "é", "aé", "用", "用户"])).flatmap(
    lambda words: st.sampled_from([" ", ".", ", ", "\0", "\n"]).map(lambda gap: gap.join(words))
)
ANY_TEXTS = TEXTS | WORDY_TEXTS


def to_words(text: str, prefix: bool) -> tuple[Word, ...]:
    words = [
        Word(word, WordKind.EXACT if word.isascii() else WordKind.SUBSTRING)
        for word in split_words(fold(text))
    ]
    if prefix and words and words[-1].kind is WordKind.EXACT:
        words[-1] = Word(words[-1].text, WordKind.PREFIX)
    return tuple(words)


SEARCHED = st.tuples(ANY_TEXTS, st.booleans()).map(lambda drawn: to_words(*drawn)).filter(len)
ANY_KINDS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "ab", "é", "aé", "用"]), st.sampled_from(WordKind)),
    min_size=1,
    max_size=20,
).map(lambda drawn: tuple(Word(text, kind) for text, kind in drawn))

SCALARS = ['"x"', '"x Y"', r'"\u0078"', r'"\\x"', r'"\ud83d\ude00é"', "1", "1.50", "-1", "1E5"]
SCALARS += ["true", "false", "null"]
KEYS = st.sampled_from(["a", "b", "a.b", "b.a", "a.", ""])


@st.composite
def json_texts(draw: st.DrawFn, depth: int = 3) -> str:
    """Any JSON value, with equal keys, escapes and odd numbers."""
    kind = draw(st.sampled_from(["object", "array", "scalar"])) if depth else "scalar"
    if kind == "scalar":
        return draw(st.sampled_from(SCALARS) | ANY_TEXTS.map(json.dumps))
    if kind == "array":
        items = draw(st.lists(json_texts(depth=depth - 1), max_size=3))
        return f"[{', '.join(items)}]"
    return draw(object_texts(depth))


@st.composite
def object_texts(draw: st.DrawFn, depth: int = 3) -> str:
    members = draw(st.lists(st.tuples(KEYS, json_texts(depth=depth - 1)), max_size=5))
    return "{" + ",".join(f"{json.dumps(key)} :{value}" for key, value in members) + "}"


FIELD_TERMS = st.builds(Term, SEARCHED, st.sampled_from(Field))


class Members(list[tuple[str, object]]):
    """A JSON object, equal keys and all."""


def leaves(value: object, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    """(path, text) of every scalar in a JSON value, also of those that a term must not find."""
    if isinstance(value, Members):
        return [leaf for key, item in value for leaf in leaves(item, (*path, *key.split(".")))]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item, path)]
    return [(path, value if isinstance(value, str) else json.dumps(value))]


@st.composite
def meta_terms(draw: st.DrawFn, meta: bytes) -> Term:
    """A term that has its path and its words from the meta, and so may well match."""
    parsed = json.loads(meta, parse_int=str, parse_float=str, object_pairs_hook=Members)
    path, text = draw(st.sampled_from(leaves(parsed) or [(("a",), "x")]))
    words = to_words(text, prefix=draw(st.booleans())) or (Word("x"),)
    start = draw(st.integers(0, len(words) - 1))
    end = draw(st.integers(start + 1, len(words)))
    return Term(words[start:end], meta_path=path)


def trees(terms: st.SearchStrategy[Term]) -> st.SearchStrategy[Node]:
    return st.recursive(
        terms,
        lambda nodes: st.one_of(
            nodes.map(Not),
            st.lists(nodes, min_size=2, max_size=3).map(lambda some: And(tuple(some))),
            st.lists(nodes, min_size=2, max_size=3).map(lambda some: Or(tuple(some))),
        ),
        max_leaves=5,
    )


ENTRIES = st.builds(
    NewEntry,
    ts_ns=st.just(0),
    level=st.just("INFO"),
    message=ANY_TEXTS,
    source=ANY_TEXTS,
    tags=st.lists(ANY_TEXTS, max_size=3).map(tuple),
    meta=object_texts().map(str.encode),
)


META_CASES = ENTRIES.flatmap(lambda entry: st.tuples(trees(meta_terms(entry.meta)), st.just(entry)))


def entry_matches(node: Node, entry: NewEntry, meta: bytes | None = None) -> bool:
    meta = entry.meta if meta is None else meta
    return matches(node, entry.message, entry.source, entry.tags, meta)


@unhurried
@given(ANY_TEXTS)
def test_the_tokenizer_is_the_references(text: str) -> None:
    assert fold(text) == reference_fold(text)
    assert split_words(text) == reference_words(text)


@unhurried
@given(SEARCHED | ANY_KINDS, ANY_TEXTS)
@example(to_words("é", False), "aé")
@example(to_words("é a", False), "aéé a")
@example(to_words("a é a", True), "a aéa ab")
def test_words_match_as_in_the_reference(words: tuple[Word, ...], text: str) -> None:
    assert matches_words(words, fold(text)) is words_match(words, text)


@unhurried
@given(ANY_TEXTS, st.data())
def test_any_run_of_a_texts_own_words_matches_it(text: str, data: st.DataObject) -> None:
    words = to_words(text, prefix=data.draw(st.booleans()))
    start = data.draw(st.integers(0, len(words)))
    end = data.draw(st.integers(start, len(words)))
    if start < end:
        assert matches_words(words[start:end], fold(text))


@unhurried
@given(trees(FIELD_TERMS), ENTRIES)
def test_fields_match_as_in_the_reference(node: Node, entry: NewEntry) -> None:
    assert entry_matches(node, entry) is node_matches(node, entry)


@unhurried
@given(META_CASES)
def test_meta_matches_as_in_the_reference(case: tuple[Node, NewEntry]) -> None:
    node, entry = case
    assert entry_matches(node, entry) is node_matches(node, entry)


@settings(deadline=None, max_examples=50)
@given(META_CASES)
def test_meta_matches_the_same_beside_values_nested_without_end(
    case: tuple[Node, NewEntry],
) -> None:
    node, entry = case
    depth = 30_000
    nested = b'{"deep":' + b"[" * depth + b"]" * depth
    meta = nested + (b"," if entry.meta != b"{}" else b"") + entry.meta[1:]
    assert entry_matches(node, entry, meta) is entry_matches(node, entry)


def test_a_value_nested_without_end_is_found() -> None:
    depth = 30_000
    node = Term((Word("x"),), meta_path=("a",))
    assert matches(node, "", "", [], b'{"a":' + b"[" * depth + b'"x"' + b"]" * depth + b"}")
    path = ("a",) * 2000
    node = Term((Word("x"),), meta_path=path)
    assert matches(node, "", "", [], b'{"a":' * 2000 + b'"x"' + b"}" * 2000)
    assert not matches(node, "", "", [], b'{"a":' * 1999 + b'"x"' + b"}" * 1999)
