"""What comes with a template as choices, against counting row by row."""

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
from format_samples import unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format.choices import Choices, Chosen, choose, decode_choices, encode_choices
from logd.format.part_table import Part

Rows = list[tuple[int, ...]]
"""Of each row the template, and a code of each column."""

KINDS = (Part.LEVELS, Part.SOURCE_CODES, Part.TAG_CODES, Part.META_CODES)
CODES = st.one_of(st.integers(0, 3), st.integers(0, 300), st.sampled_from([255, 256, 65_535]))
ROWS = st.integers(1, 4).flatmap(
    lambda columns: st.lists(
        st.tuples(st.integers(0, 6), *[CODES] * columns), min_size=1, max_size=60
    )
)


def column(rows: Rows, number: int) -> npt.NDArray[np.int32]:
    return np.array([row[number] for row in rows], np.int32)


def chosen(rows: Rows, more: int = 0) -> Chosen:
    """`more`: templates that no row has, behind the others."""
    templates = column(rows, 0)
    columns = {
        kind: column(rows, number + 1) for number, kind in enumerate(KINDS[: len(rows[0]) - 1])
    }
    return choose(templates, int(templates.max()) + 1 + more, columns)


def expected(rows: Rows, count: int) -> list[Rows]:
    """Of each template what comes with it: the most frequent first, of equally frequent ones the
    lowest."""
    often = Counter(rows)
    by_frequency = sorted(often, key=lambda row: (-often[row], row))
    return [[row for row in by_frequency if row[0] == template] for template in range(count)]


def bytes_of(rows: Rows) -> bytes:
    return b"".join(encode_choices(chosen(rows)))


@unhurried
@given(ROWS, st.integers(0, 2))
def test_each_template_has_what_comes_with_it_by_frequency(rows: Rows, more: int) -> None:
    found = chosen(rows, more)
    model = expected(rows, len(found.counts))
    assert found.counts.tolist() == list(map(len, model))
    flat = [row for of_template in model for row in of_template]
    for number, codes in enumerate(found.codes.values(), 1):
        assert codes.tolist() == [row[number] for row in flat]
    assert found.choices.tolist() == [model[row[0]].index(row) for row in rows]


@unhurried
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=60), st.lists(CODES, min_size=7, max_size=7)
)
def test_all_choices_are_0_where_the_template_decides(
    templates: list[int], code_of: list[int]
) -> None:
    found = chosen([(template, code_of[template], template) for template in templates])
    assert not found.choices.any()
    assert set(found.counts.tolist()) <= {0, 1}


@unhurried
@given(ROWS)
def test_no_choice_comes_more_often_than_a_lower_one(rows: Rows) -> None:
    often = np.bincount(chosen(rows).choices).tolist()
    assert often == sorted(often, reverse=True)


def codes_of(choices: Choices, rows: Rows, of_rows: npt.NDArray[np.uint32]) -> Rows:
    places = choices.places(column(rows, 0), of_rows)
    found = [codes.take(places).tolist() for codes in choices.codes.values()]
    return list(zip(column(rows, 0).tolist(), *found, strict=True))


@unhurried
@given(ROWS)
def test_codes_come_back_from_choices(rows: Rows) -> None:
    found = decode_choices(bytes_of(rows))
    assert list(found.codes) == list(KINDS[: len(rows[0]) - 1])
    assert codes_of(found, rows, chosen(rows).choices) == rows


@pytest.mark.parametrize("templates", [1, 255, 256, 65_535, 65_536])
def test_a_chunk_may_be_full_of_templates(templates: int) -> None:
    """And of what comes with them: there are as many places as rows."""
    rows: Rows = [(index % templates, index // 2) for index in range(65_536)]
    found = decode_choices(bytes_of(rows))
    assert codes_of(found, rows, chosen(rows).choices) == rows


def test_a_template_that_is_not_there_is_noticed() -> None:
    found = decode_choices(bytes_of([(0, 5), (1, 6)]))
    with pytest.raises(IndexError):
        found.places(np.array([0, 2]), np.array([0, 0], np.uint8))


def test_bytes_are_as_they_are_said_to_be() -> None:
    rows: Rows = [(0, 1, 3), (0, 1, 3), (0, 300, 3), (1, 2, 3)]
    raw = bytes([2, 0, 0, 0, 3, 0, 0, 0, 1, 2, Part.LEVELS, 2, Part.SOURCE_CODES, 1])
    raw += bytes([2, 1]) + bytes([1, 300 & 255, 2]) + bytes([0, 1, 0]) + bytes([3, 3, 3])
    assert bytes_of(rows) == raw


@unhurried
@given(ROWS)
def test_bytes_that_are_cut_short_are_refused(rows: Rows) -> None:
    raw = bytes_of(rows)
    for size in range(len(raw)):
        with pytest.raises(ValueError, match="cut short"):
            decode_choices(raw[:size])


@unhurried
@given(ROWS, st.binary(min_size=1, max_size=60))
def test_bytes_behind_the_last_code_are_refused(rows: Rows, more: bytes) -> None:
    with pytest.raises(ValueError, match="more bytes"):
        decode_choices(bytes_of(rows) + more)


@pytest.mark.parametrize("place", [8, 11])
@pytest.mark.parametrize("width", [0, 5, 255])
def test_numbers_of_no_width_or_too_many_bytes_are_refused(place: int, width: int) -> None:
    raw = bytearray(bytes_of([(0, 5)]) + bytes(600))
    raw[place] = width
    with pytest.raises(ValueError, match="cut short"):
        decode_choices(bytes(raw))


def test_a_kind_that_nobody_knows_is_refused() -> None:
    raw = bytearray(bytes_of([(0, 5)]))
    raw[10] = 255
    with pytest.raises(ValueError, match="255"):
        decode_choices(bytes(raw))


@pytest.mark.parametrize(("first", "codes"), [(1, 3), (2, 2), (3, 3), (0, 0)])
def test_numbers_of_choices_must_add_up(first: int, codes: int) -> None:
    """Of two templates, the second of which has one."""
    raw = bytes([2, 0, 0, 0, codes, 0, 0, 0, 1, 1, Part.LEVELS, 1, first, 1, *range(codes)])
    with pytest.raises(ValueError, match="add up"):
        decode_choices(raw)
