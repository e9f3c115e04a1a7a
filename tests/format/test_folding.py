"""Many texts folded at once are each what folding it alone makes of it."""

from format_samples import messages, unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format.folding import fold_utf8
from logd.format.separated import join_texts
from logd.words import fold

ANY = st.text(st.characters(exclude_categories=["Cs"]))
MIXED = st.text(st.sampled_from("aZ09_ -.\0\n\u0080éÉßẞıİſΣσς\u212aÅ\u212b用户\u0301😀"))


@given(ANY | MIXED | MIXED.map(lambda text: 30 * text))
def test_folding_utf8_is_folding_the_text(text: str) -> None:
    assert fold_utf8(text.encode()) == fold(text).encode()


@unhurried
@given(st.lists(messages | MIXED, min_size=1, max_size=8))
def test_folding_separated_texts_is_folding_each(texts: list[str]) -> None:
    assert fold_utf8(join_texts(texts)) == join_texts([fold(text) for text in texts])


def test_bytes_that_are_no_utf8_are_left_alone() -> None:
    assert fold_utf8(b"A\xfe\xff\xfeB\xff") == b"a\xfe\xff\xfeb\xff"
    assert fold_utf8("É\0A".encode() + b"\xfe\xffB") == "é\0a".encode() + b"\xfe\xffb"
    assert fold_utf8("É".encode() + b"\xfe" + "É".encode()) == "é".encode() + b"\xfe" + "é".encode()
