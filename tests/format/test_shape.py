import json

import pytest
from format_samples import json_values, unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format.shape import Shape, shape_of

VALUES = st.lists(json_values.filter(lambda text: text == text.strip()), max_size=5)


def strip_keys(pairs: list[tuple[str, object]]) -> list[object]:
    """Of an object its values, those of repeated keys too."""
    return [value for _, value in pairs]


def depth(value: object) -> int:
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def expected(texts: list[str]) -> Shape:
    values = [json.loads(text, object_pairs_hook=strip_keys) for text in texts]
    commas = [len(value) - 1 for value in values if isinstance(value, list) and value]
    return Shape(max(map(depth, values), default=0), len(values), sum(commas))


@unhurried
@given(VALUES)
def test_the_shape_of_an_array_is_that_of_its_elements(texts: list[str]) -> None:
    body = f" [{' , '.join(texts)}]\n".encode()
    assert shape_of(body, in_array=True) == expected(texts)


@unhurried
@given(VALUES)
def test_the_shape_of_lines_is_that_of_their_values(texts: list[str]) -> None:
    body = "\r\n".join(texts).encode()
    assert shape_of(body, in_array=False) == expected(texts)


@pytest.mark.parametrize("text", ["", " ", "[]", " [ ] "])
def test_no_values_have_no_depth(text: str) -> None:
    assert shape_of(text.encode(), in_array=True) == Shape(0, 0, 0)


@pytest.mark.parametrize("text", ['"[[[["', r'"\"[[["', r'"\\\"[["', r'{"[{\\":"]}"}', '"," '])
def test_brackets_in_strings_do_not_count(text: str) -> None:
    assert shape_of(text.encode(), in_array=False) == Shape(int("{" in text[:1]), 1, 0)


@pytest.mark.parametrize("padding", [0, 1, 2, 3])
def test_values_are_counted_across_slices(padding: int) -> None:
    count = 200_000
    element = b'{"a":"[\\"","b":[7]}'  # 19 bytes: it is cut at all its places
    body = b" " * padding + b"[" + b",".join([element] * count) + b"]"
    assert shape_of(body, in_array=True) == Shape(2, count, count)


@pytest.mark.parametrize("value", [b"7" * 3_000_000, b'"' + b"," * 3_000_000 + b'"'])
def test_a_value_may_reach_over_slices(value: bytes) -> None:
    assert shape_of(value, in_array=False) == Shape(0, 1, 0)
    assert shape_of(b"[1," + value + b"]", in_array=True) == Shape(0, 2, 0)


def test_depth_is_counted_across_slices() -> None:
    body = b"[" * 1_500_000 + b"]" * 1_500_000
    assert shape_of(body, in_array=True).depth == 1_499_999
    assert shape_of(body, in_array=False).depth == 1_500_000


@given(st.binary())
def test_any_bytes_have_some_shape(body: bytes) -> None:
    shape = shape_of(body, in_array=True)
    assert shape.depth >= 0
    assert 0 <= shape.values <= len(body)
