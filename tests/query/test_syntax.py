import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logd.errors import BadQuery
from logd.query.ast import And, Field, Node, Not, Or, Term, Word, WordKind
from logd.query.syntax import MAX_NESTING, MAX_TEXT_CHARS, MAX_WORDS, parse_search
from logd.words import fold, split_words

unhurried = settings(deadline=None)

PIECES = ["a", "B", "é", "用户", "OR", "NOT", "AND", "or", "-", "*", '"', "(", ")", "\\", ".", " "]
PIECES += ["\0", "\n", "\u3000", "source:", "tag:", "message:", "meta.", "meta.a.b:", ":", "x:y"]
SYNTAX_TEXTS = st.lists(st.sampled_from(PIECES)).map("".join)


def exact(*texts: str, field: Field = Field.ANY, path: tuple[str, ...] | None = None) -> Term:
    return Term(tuple(Word(text) for text in texts), field, path)


def prefix(*texts: str, field: Field = Field.ANY) -> Term:
    words = [Word(text) for text in texts[:-1]]
    return Term((*words, Word(texts[-1], WordKind.PREFIX)), field)


def substring(text: str) -> Term:
    return Term((Word(text, WordKind.SUBSTRING),))


A, B, C, D = exact("a"), exact("b"), exact("c"), exact("d")


def refusal(text: str) -> tuple[str, int | None]:
    with pytest.raises(BadQuery) as caught:
        parse_search(text)
    assert caught.value.field == "search"
    return caught.value.code, caught.value.position


@pytest.mark.parametrize("text", ["", " ", "\t\r\n", "\u3000 \u00a0"])
def test_a_blank_search_is_no_filter(text: str) -> None:
    assert parse_search(text) is None


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("error", exact("error")),
        ("ERROR", exact("error")),
        ("  error\n", exact("error")),
        ("user_id", exact("user_id")),
        ("10.0.0.1", exact("10", "0", "0", "1")),
        ("conn-reset", exact("conn", "reset")),
        ("[error]", exact("error")),
        ("http://x:80", exact("http", "x", "80")),
        ("12:34:56", exact("12", "34", "56")),
        ("host:web-1", exact("host", "web", "1")),
        ("it's", exact("it", "s")),
        ('"a phrase"', exact("a", "phrase")),
        ('"A  phrase, of: words"', exact("a", "phrase", "of", "words")),
        ('"a\nb"', exact("a", "b")),
        ('"a\0b"', exact("a", "b")),
        ("a\0b", exact("a", "b")),
        ('"(a OR -b)"', exact("a", "or", "b")),
        (r'"say \"yes\""', exact("say", "yes")),
        (r'"C:\\temp\\x"', exact("c", "temp", "x")),
        (r'"C:\temp\x"', exact("c", "temp", "x")),
        (r'"a\\"', exact("a")),
    ],
)
def test_a_term_is_the_phrase_of_its_words(text: str, node: Node) -> None:
    assert parse_search(text) == node


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("pre*", prefix("pre")),
        ("conn-re*", prefix("conn", "re")),
        ("pre*.", prefix("pre")),
        ("pre**", prefix("pre")),
        ('"conn re*"', prefix("conn", "re")),
        ("*pre", exact("pre")),
        ("pre.*", exact("pre")),
        ("a*b", exact("a", "b")),
        ("a*b*", prefix("a", "b")),
        ("a*a", exact("a", "a")),
        ('"conn* re"', exact("conn", "re")),
        ('"conn re*."', exact("conn", "re")),
        ('"conn re**"', exact("conn", "re")),
        ('"conn re *"', exact("conn", "re")),
        (r'"conn re\*"', exact("conn", "re")),
        ("source:pre*", prefix("pre", field=Field.SOURCE)),
    ],
)
def test_a_star_right_after_the_last_word_makes_a_prefix(text: str, node: Node) -> None:
    assert parse_search(text) == node


@pytest.mark.parametrize(
    "text", ["用户", "用户*", '"用户*"', '"用户"', " 用户.", "\u3000用户\u3000"]
)
def test_a_word_that_is_not_ascii_matches_as_a_substring(text: str) -> None:
    assert parse_search(text) == substring("用户")


def test_only_the_words_that_are_not_ascii_match_as_substrings() -> None:
    words = (Word("café", WordKind.SUBSTRING), Word("au"), Word("lait", WordKind.PREFIX))
    assert parse_search('"CAFÉ au Lait*"') == Term(words)


def test_letters_fold_as_the_tokenizer_folds_them() -> None:
    for text in ("İstanbul", "\u212aelvin", "ΟΔΟΣ", "Straße", "E\u0301cole"):
        term = parse_search(text)
        assert isinstance(term, Term)
        assert [word.text for word in term.words] == split_words(fold(text))


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("a b", And((A, B))),
        ("a AND b", And((A, B))),
        ("a b AND c d", And((A, B, C, D))),
        ("a OR b", Or((A, B))),
        ("a OR b OR c", Or((A, B, C))),
        ("a b OR c d", Or((And((A, B)), And((C, D))))),
        ("a OR b c OR d", Or((A, And((B, C)), D))),
        ("a (b OR c) d", And((A, Or((B, C)), D))),
        ("(a OR b) (c OR d)", And((Or((A, B)), Or((C, D))))),
        ("(a)", A),
        ("((a))", A),
        ("(a b) (c d)", And((A, B, C, D))),
        ("(a OR b) OR (c OR d)", Or((A, B, C, D))),
        ("a(b)c", And((A, B, C))),
        ('a"b"c', And((A, B, C))),
        ("(a)OR(b)", Or((A, B))),
        ('"a"OR"b"', Or((A, B))),
        ("a\u3000b", And((A, B))),
        ("a or b", And((A, exact("or"), B))),
        ("a and not b", And((A, exact("and"), exact("not"), B))),
        ("a Or b", And((A, exact("or"), B))),
        ("a OR, b", And((A, exact("or"), B))),
        ('a "OR" b', And((A, exact("or"), B))),
        ("ORDER NOTE ANDROID", And((exact("order"), exact("note"), exact("android")))),
    ],
)
def test_not_binds_before_and_and_and_before_or(text: str, node: Node) -> None:
    assert parse_search(text) == node


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("-a", Not(A)),
        ("NOT a", Not(A)),
        ("NOT(a)", Not(A)),
        ('NOT"a"', Not(A)),
        ('-"a b"', Not(exact("a", "b"))),
        ("-(a OR b)", Not(Or((A, B)))),
        ("NOT (a b)", Not(And((A, B)))),
        ("-source:a", Not(exact("a", field=Field.SOURCE))),
        (
            "-source:(a b)",
            Not(And((exact("a", field=Field.SOURCE), exact("b", field=Field.SOURCE)))),
        ),
        ("a -b", And((A, Not(B)))),
        ("NOT a b", And((Not(A), B))),
        ("NOT a OR b", Or((Not(A), B))),
        ("a OR NOT b", Or((A, Not(B)))),
        ("a AND -b", And((A, Not(B)))),
        ("(-a)", Not(A)),
        ('"a"-b', And((A, Not(B)))),
        ("--a", A),
        ("NOT NOT a", A),
        ("NOT -a", A),
        ("---a", Not(A)),
        ("-(-a)", A),
        ("a-b", exact("a", "b")),
        ("-OR", Not(exact("or"))),
        ("-NOT a", And((Not(exact("not")), A))),
        ("-a-b*", Not(prefix("a", "b"))),
    ],
)
def test_a_dash_or_not_negates_what_follows(text: str, node: Node) -> None:
    assert parse_search(text) == node


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("source:a", exact("a", field=Field.SOURCE)),
        ("tag:a", exact("a", field=Field.TAG)),
        ("message:a", exact("a", field=Field.MESSAGE)),
        ("tag:eu-west-1", exact("eu", "west", "1", field=Field.TAG)),
        ('message:"a b"', exact("a", "b", field=Field.MESSAGE)),
        ("tag:a:b", exact("a", "b", field=Field.TAG)),
        ("tag:source:a", exact("source", "a", field=Field.TAG)),
        ("tag:-a", exact("a", field=Field.TAG)),
        ("tag:OR", exact("or", field=Field.TAG)),
        ("meta.user:a", exact("a", path=("user",))),
        ("meta.Order.Item-No:7", exact("7", path=("Order", "Item-No"))),
        ("meta.a:b:c", exact("b", "c", path=("a",))),
        ("meta.用户:a", exact("a", path=("用户",))),
        ("meta.a..b:c", exact("c", path=("a", "", "b"))),
        ('meta.a:"b c"', exact("b", "c", path=("a",))),
        ("meta.:a", exact("meta", "a")),
        ("meta:a", exact("meta", "a")),
        ("Source:a", exact("source", "a")),
        ("sources:a", exact("sources", "a")),
        ("x-source:a", exact("x", "source", "a")),
        ("level:ERROR", exact("level", "error")),
        ('"source:a"', exact("source", "a")),
        ("source", exact("source")),
    ],
)
def test_four_scopes_restrict_a_term(text: str, node: Node) -> None:
    assert parse_search(text) == node


def test_a_scope_holds_in_its_whole_group() -> None:
    a, b, c = (exact(text, field=Field.SOURCE) for text in "abc")
    assert parse_search("source:(a OR (b -c)) d") == And((Or((a, And((b, Not(c))))), D))


def test_the_innermost_scope_counts() -> None:
    node = parse_search("source:(a tag:b meta.k:(c) d)")
    assert node == And(
        (
            exact("a", field=Field.SOURCE),
            exact("b", field=Field.TAG),
            exact("c", path=("k",)),
            exact("d", field=Field.SOURCE),
        )
    )


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ('a "b', "open_quote", 2),
        ('"', "open_quote", 0),
        ('source:"a', "open_quote", 7),
        ('"a\\"', "open_quote", 0),
        ('a\\"', "open_quote", 2),
        ("(a", "open_parenthesis", 0),
        ("a (", "open_parenthesis", 2),
        ("((a)", "open_parenthesis", 0),
        ("(a (b", "open_parenthesis", 3),
        ("tag:(a", "open_parenthesis", 0),
        ("a)", "stray_parenthesis", 1),
        (")", "stray_parenthesis", 0),
        ("(a))", "stray_parenthesis", 3),
        ("OR", "lone_operator", 0),
        ("AND", "lone_operator", 0),
        ("NOT", "lone_operator", 0),
        ("a OR", "lone_operator", 2),
        ("OR a", "lone_operator", 0),
        ("a OR OR b", "lone_operator", 2),
        ("a AND OR b", "lone_operator", 2),
        ("a NOT", "lone_operator", 2),
        ("(a OR )", "lone_operator", 3),
        ("(OR a)", "lone_operator", 1),
        ("(a OR", "lone_operator", 3),
        ("NOT OR a", "lone_operator", 0),
        ("...", "empty_term", 0),
        ('a ""', "empty_term", 2),
        ('"..."', "empty_term", 0),
        ("a - b", "empty_term", 2),
        ("-", "empty_term", 0),
        ("(-)", "empty_term", 1),
        ("--", "empty_term", 1),
        ("*", "empty_term", 0),
        ("()", "empty_term", 0),
        ("a source:() b", "empty_term", 2),
        ("source:", "empty_term", 0),
        ("a source: b", "empty_term", 2),
        ("(tag:)", "empty_term", 1),
        ("tag:...", "empty_term", 0),
        ("\0", "empty_term", 0),
        ("a \ud800", "invalid_text", 2),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_stands(
    text: str, code: str, position: int
) -> None:
    assert refusal(text) == (code, position)


def test_the_longest_text_is_read_and_a_longer_one_refused() -> None:
    assert parse_search("x" * MAX_TEXT_CHARS) == exact("x" * MAX_TEXT_CHARS)
    assert refusal("x" * (MAX_TEXT_CHARS + 1)) == ("too_long", MAX_TEXT_CHARS)


def test_as_many_terms_as_allowed_are_read_and_one_more_is_refused() -> None:
    most = "a " * MAX_WORDS
    assert parse_search(most) == And((A,) * MAX_WORDS)
    assert refusal(f"{most}a") == ("too_complex", len(most))


def test_the_words_of_a_phrase_count_as_terms_do() -> None:
    most = "a " * MAX_WORDS
    assert parse_search(f'"{most}"') == exact(*"a" * MAX_WORDS)
    assert refusal(f'"{most}a"') == ("too_complex", 0)
    assert refusal(f'b "{most}"') == ("too_complex", 2)
    assert refusal(f'"{most}" source:b') == ("too_complex", len(most) + 3)
    assert refusal("a." * MAX_WORDS + "a") == ("too_complex", 0)


def test_parentheses_may_nest_as_deep_as_allowed_and_no_deeper() -> None:
    deepest = MAX_NESTING
    assert parse_search("(" * deepest + "a" + ")" * deepest) == A
    assert parse_search("-(b OR " * deepest + "a" + ")" * deepest) is not None
    deepest += 1
    assert refusal("(" * deepest + "a" + ")" * deepest) == ("too_complex", MAX_NESTING)
    assert refusal("(" * MAX_TEXT_CHARS) == ("too_complex", MAX_NESTING)


def test_a_row_of_negations_is_no_nesting() -> None:
    assert parse_search("-" * 4094 + "a") == A
    assert parse_search("NOT " * 1001 + "a") == Not(A)


@unhurried
@given(st.text(max_size=40) | SYNTAX_TEXTS)
def test_any_text_is_read_or_refused_with_a_position_in_it(text: str) -> None:
    try:
        node = parse_search(text)
    except BadQuery as error:
        position = error.position
        code = error.code
    else:
        assert (node is None) == (not text.strip())
        position, code = 0, "read"
    assert position is not None
    assert 0 <= position <= len(text)
    assert code in {
        "read",
        "open_quote",
        "open_parenthesis",
        "stray_parenthesis",
        "lone_operator",
        "empty_term",
        "invalid_text",
    }


# ---------------------------------------------------------------- trees to text and back

SEARCH_WORDS = st.from_regex(r"[a-z0-9_é用]{1,6}", fullmatch=True)
KEYS = st.from_regex(r"[A-Za-z0-9_\-/é]{1,6}", fullmatch=True)


@st.composite
def terms(draw: st.DrawFn) -> Term:
    texts = draw(st.lists(SEARCH_WORDS, min_size=1, max_size=4))
    words = [Word(text, WordKind.EXACT if text.isascii() else WordKind.SUBSTRING) for text in texts]
    if texts[-1].isascii() and draw(st.booleans()):
        words[-1] = Word(texts[-1], WordKind.PREFIX)
    if draw(st.booleans()):
        return Term(tuple(words), draw(st.sampled_from(Field)))
    path = draw(st.lists(KEYS, min_size=1, max_size=3))
    return Term(tuple(words), meta_path=tuple(path))


def is_normal(node: Node) -> bool:
    if isinstance(node, Term):
        return True
    if isinstance(node, Not):
        return not isinstance(node.child, Not) and is_normal(node.child)
    return len(node.children) > 1 and all(
        type(child) is not type(node) and is_normal(child) for child in node.children
    )


NODES: st.SearchStrategy[Node] = st.recursive(
    terms(),
    lambda nodes: st.one_of(
        nodes.map(Not),
        st.lists(nodes, min_size=2, max_size=4).map(lambda some: And(tuple(some))),
        st.lists(nodes, min_size=2, max_size=4).map(lambda some: Or(tuple(some))),
    ),
).filter(is_normal)


def to_text(node: Node, draw: st.DataObject) -> str:
    """A search for the node, written in one of the ways there are."""
    if isinstance(node, Term):
        return term_to_text(node, draw)
    if isinstance(node, Not):
        child = node.child
        text = to_text(child, draw)
        text = text if isinstance(child, Term) else f"({text})"
        return draw.draw(st.sampled_from(["-", "NOT "])) + text
    texts = [to_text(child, draw) for child in node.children]
    if isinstance(node, Or):
        return " OR ".join(texts)
    bracketed = [
        f"({text})" if isinstance(child, Or) else text
        for text, child in zip(texts, node.children, strict=True)
    ]
    return draw.draw(st.sampled_from([" ", " AND ", "\n"])).join(bracketed)


def term_to_text(term: Term, draw: st.DataObject) -> str:
    scope = "" if term.field is Field.ANY else f"{term.field.value}:"
    if term.meta_path is not None:
        scope = f"meta.{'.'.join(term.meta_path)}:"
    between = draw.draw(st.sampled_from([".", "-", "::", ". ", " ", r"\"", "*", "\0"]))
    text = between.join(word.text for word in term.words)
    star = "*" if term.words[-1].kind is WordKind.PREFIX else ""
    scope_like = not scope and text.startswith(("source", "tag", "message", "meta"))
    quoted = scope_like or " " in text or '"' in text or draw.draw(st.booleans())
    return f'{scope}"{text}{star}"' if quoted else f"{scope}{text}{star}"


@unhurried
@given(NODES, st.data())
def test_a_tree_written_as_text_reads_back(node: Node, data: st.DataObject) -> None:
    assert parse_search(to_text(node, data)) == node


@unhurried
@given(SYNTAX_TEXTS)
def test_every_tree_is_normal_and_folded(text: str) -> None:
    try:
        node = parse_search(text)
    except BadQuery:
        return
    assert node is None or is_normal(node)
    assert all(word.text == fold(word.text) for word in words_of(node))


def words_of(node: Node | None) -> list[Word]:
    if node is None:
        return []
    if isinstance(node, Term):
        return list(node.words)
    children = (node.child,) if isinstance(node, Not) else node.children
    return [word for child in children for word in words_of(child)]


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        (') "a', "stray_parenthesis", 0),
        ("a OR ) ...", "lone_operator", 2),
        ("(" * 1000 + '"', "too_complex", MAX_NESTING),
        ("a " * 1000 + '"', "too_complex", 2 * MAX_WORDS),
    ],
)
def test_of_several_faults_the_first_is_named_and_what_follows_is_not_read(
    text: str, code: str, position: int
) -> None:
    assert refusal(text) == (code, position)
