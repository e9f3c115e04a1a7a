import base64
import string
import struct
import zlib

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from logd.entry import ProjectId, Seq
from logd.errors import BadQuery
from logd.query.ast import And, Field, Filter, Node, Not, Or, Term, Word, WordKind
from logd.query.cursor import Cursor, decode, encode, filter_digest
from logd.query.syntax import parse_search

unhurried = settings(deadline=None)

PROJECT = ProjectId("11111111-2222-4333-8444-555555555555")
OTHER_PROJECT = ProjectId("11111111-2222-4333-8444-555555555556")
DIGEST = filter_digest(Filter(level=3, search=parse_search("connection -reset")))
CURSOR = Cursor(pinned_seq=5000, last_ts_ns=1_763_713_020_123_456_789, last_seq=Seq(4900), total=77)
TEXT = encode(CURSOR, PROJECT, DIGEST)

GOLDEN_TEXT = "AQAAAAAAABOIGHn3pbIwpRUAAAAAAAATJAAAAAAAAABNyTHwOGRz3Xho5Nu3"
GOLDEN_DIGEST = "b3718bcfb64edf8cd8369dc01409f23a"

COUNTS = st.integers(0, 2**63 - 1)
CURSORS = st.builds(
    lambda seqs, ts_ns, total: Cursor(max(seqs), ts_ns, Seq(min(seqs)), total),
    st.tuples(COUNTS, COUNTS).filter(lambda seqs: seqs[0] != seqs[1]),
    st.integers(-(2**63), 2**63 - 1),
    COUNTS,
)

WORDS = st.builds(Word, st.sampled_from(["a", "b", "é"]), st.sampled_from(WordKind))
TERMS = st.builds(
    Term,
    st.lists(WORDS, min_size=1, max_size=2).map(tuple),
    st.sampled_from(Field),
    st.none() | st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=2).map(tuple),
)
NODES: st.SearchStrategy[Node] = st.recursive(
    TERMS,
    lambda nodes: st.one_of(
        nodes.map(Not),
        st.lists(nodes, min_size=2, max_size=3).map(lambda some: And(tuple(some))),
        st.lists(nodes, min_size=2, max_size=3).map(lambda some: Or(tuple(some))),
    ),
    max_leaves=4,
)
TIMES = st.none() | st.integers(0, 1)
FILTERS = st.builds(Filter, st.none() | st.integers(0, 3), TIMES, TIMES, st.none() | NODES)


def refusal(text: str, project: ProjectId = PROJECT, digest: bytes = DIGEST) -> str:
    with pytest.raises(BadQuery) as caught:
        decode(text, project, digest)
    assert caught.value.field == "cursor"
    return caught.value.code


def sealed(payload: bytes) -> str:
    """The cursor of a payload, with a checksum that holds."""
    data = payload + struct.pack(">I", zlib.crc32(payload))
    return base64.urlsafe_b64encode(data).decode()


@unhurried
@given(CURSORS)
def test_a_cursor_comes_back_as_it_was(cursor: Cursor) -> None:
    text = encode(cursor, PROJECT, DIGEST)
    assert decode(text, PROJECT, DIGEST) == cursor
    assert set(text) <= set(string.ascii_letters + string.digits + "-_")


def test_version_1_is_written_as_it_always_was() -> None:
    assert TEXT == GOLDEN_TEXT
    assert DIGEST.hex() == GOLDEN_DIGEST


def test_a_cursor_of_another_project_is_a_mismatch() -> None:
    assert refusal(TEXT, project=OTHER_PROJECT) == "cursor_mismatch"


@pytest.mark.parametrize(
    "other",
    [
        Filter(),
        Filter(level=2, search=parse_search("connection -reset")),
        Filter(level=3, search=parse_search("connection reset")),
        Filter(level=3, from_ns=0, search=parse_search("connection -reset")),
        Filter(level=3, to_ns=0, search=parse_search("connection -reset")),
    ],
)
def test_a_cursor_of_other_filters_is_a_mismatch(other: Filter) -> None:
    assert refusal(TEXT, digest=filter_digest(other)) == "cursor_mismatch"


def test_a_search_written_differently_is_the_same_filter() -> None:
    same = Filter(level=3, search=parse_search('(CONNECTION)  AND NOT "reset"'))
    assert decode(TEXT, PROJECT, filter_digest(same)) == CURSOR


@pytest.mark.parametrize("end", range(60))
def test_a_truncated_cursor_is_bad(end: int) -> None:
    assert refusal(TEXT[:end]) == "bad_cursor"


@pytest.mark.parametrize("place", range(60))
def test_a_cursor_with_another_character_anywhere_is_bad(place: int) -> None:
    for character in "A_z9":
        changed = TEXT[:place] + character + TEXT[place + 1 :]
        assert changed == TEXT or refusal(changed) == "bad_cursor"


@pytest.mark.parametrize(
    "text",
    [
        "null",
        f"{TEXT}=",
        f"{TEXT}AAAA",
        f" {TEXT}",
        f"{TEXT}\n",
        *(TEXT[:-1] + character for character in "+/é\0\n\ud800"),
    ],
)
def test_what_is_not_60_url_safe_characters_is_bad(text: str) -> None:
    assert refusal(text) == "bad_cursor"


def test_another_version_is_bad() -> None:
    payload = base64.urlsafe_b64decode(TEXT)[:41]
    assert sealed(payload) == TEXT
    assert refusal(sealed(b"\x00" + payload[1:])) == "bad_cursor"
    assert refusal(sealed(b"\x02" + payload[1:])) == "bad_cursor"


@pytest.mark.parametrize(
    ("pinned_seq", "last_seq", "total"), [(0, 0, 1), (5, 5, 1), (5, 6, 1), (5, -1, 1), (5, 1, -1)]
)
def test_a_position_that_no_listing_has_is_bad(pinned_seq: int, last_seq: int, total: int) -> None:
    impossible = Cursor(pinned_seq, 0, Seq(last_seq), total)
    assert refusal(encode(impossible, PROJECT, DIGEST)) == "bad_cursor"


@unhurried
@given(st.text() | st.text(string.ascii_letters + string.digits + "-_", min_size=60, max_size=60))
def test_any_other_text_is_bad(text: str) -> None:
    assume(text != TEXT)
    assert refusal(text) == "bad_cursor"


@unhurried
@given(FILTERS, FILTERS)
def test_filters_have_one_digest_exactly_if_they_are_equal(one: Filter, other: Filter) -> None:
    assert (filter_digest(one) == filter_digest(other)) is (one == other)


def test_a_conjunction_and_a_disjunction_of_the_same_terms_differ() -> None:
    terms = (Term((Word("a"),)), Term((Word("b"),)))
    digests = {
        filter_digest(Filter(search=node)) for node in (And(terms), Or(terms), Not(And(terms)))
    }
    assert len(digests) == 3
