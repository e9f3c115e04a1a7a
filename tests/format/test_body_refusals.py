import json
from collections.abc import Callable
from functools import partial as partial_call

import pytest
from body_calls import decoded, one, partial, quoted, refusal, refusal_of_all
from body_samples import array, entry
from format_samples import PROJECT

from logd.format.body import (
    MAX_NESTING,
    Partial,
)

# ---------------------------------------------------------------- bodies that are no JSON


@pytest.mark.parametrize(
    "body",
    [
        b"", b" ", b"x", b"{", b"[", b"}", b"]", b"nul", b"'a'", b"{]", b"[}",
        b"\xef\xbb\xbf" + entry(),
        entry() + b"x", entry() + entry(), entry() + b"\0", b"\0" + entry(), entry()[:-1],
        b"\x0b" + entry(), entry() + b"\x0c", "\u2028".encode() + entry(), "\u00a0".encode(),
        array(entry()) + b"]", array(entry())[:-1] + b",]", b"[," + entry() + b"]", b"[" + entry(),
        entry().replace(b":", b"=", 1), entry()[:-1] + b",}", entry().replace(b'"', b"'"),
        b"/* */" + entry(), entry() + b"// x", b"NaN", b"Infinity",
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused(body: bytes) -> None:
    assert refusal(body) == "malformed_json"


@pytest.mark.parametrize("body", [b"null", b"1", b'"x"', b"true", b" -1.5e3 "])
def test_a_body_is_an_object_or_an_array(body: bytes) -> None:
    assert refusal(body) == "wrong_type"


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "nan", "01", "1.", ".5", "+1",
                                   "0x1", "1e", "--1", "tru", "undefined", "'x'", '"\n"',
                                   '"\t"', '"\x00"', '"\x1f"', '"\\q"', '"\\u12"', '"\\u12xy"',
                                   "[1,]", "{,}", '{"a"}', '{"a":1,}', "{1:2}"])  # fmt: skip
@pytest.mark.parametrize("place", ["message", "tags", "meta", "unknown"])
def test_what_is_no_json_value_is_refused_wherever_it_stands(place: str, value: str) -> None:
    written = {"tags": f"[{value}]", "meta": f'{{"a":[{value}]}}'}.get(place, value)
    assert refusal(entry(**{place: written})) == "malformed_json"
    assert refusal(entry(**{place: written}), ndjson=True) == "malformed_json"


@pytest.mark.parametrize("text", [r"\ud800", r"\udfff", r"\ude00\ud83d", r"\ud83d", r"x\ud83dy",
                                  r"\ud83d\ud83d", r"\ud83d\u0041", r"\ud83d\n"])  # fmt: skip
@pytest.mark.parametrize(
    "place",
    ['"message":"%s"', '"source":"%s"', '"tags":["%s"]', '"meta":{"a":"%s"}', '"meta":{"%s":1}',
     '"meta":{"a":[{"b":"%s padded"}]}', '"%s":1', '"timestamp":"%s"'],
)  # fmt: skip
def test_lone_surrogates_are_refused_wherever_they_stand(place: str, text: str) -> None:
    body = entry()[:-1] + b"," + (place % text).encode() + b"}"
    assert refusal(body) == "malformed_json"
    assert refusal(array(entry(), body)) == "malformed_json"


@pytest.mark.parametrize(
    "data",
    [b"\xff", b"\xfe", b"\x80", b"\xc3", b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80",
     b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xc3\xa9\xa9"],
)  # fmt: skip
@pytest.mark.parametrize(
    "place",
    [b'"message":"%s"', b'"source":"%s"', b'"tags":["%s"]', b'"meta":{"a":"%s"}',
     b'"meta":{"%s":1}', b'"%s":1'],
)  # fmt: skip
def test_invalid_utf8_is_refused_wherever_it_stands(place: bytes, data: bytes) -> None:
    body = entry()[:-1] + b"," + place % data + b"}"
    assert refusal(body) == "not_utf8"
    assert refusal(body, ndjson=True) == "not_utf8"


def test_other_encodings_are_refused() -> None:
    assert refusal(entry().decode().encode("utf-16")) == "not_utf8"
    assert refusal(entry().decode().encode("utf-16-le")) == "malformed_json"


# ---------------------------------------------------------------- depth and number


def nested(levels: int) -> bytes:
    """An entry of that many levels, itself and its meta among them."""
    return entry(meta='{"a":' * (levels - 2) + "[]" + "}" * (levels - 2))


def in_upper_case(body: bytes) -> bytes:
    """With project ids that only the careful way takes."""
    return body.replace(PROJECT.encode(), PROJECT.upper().encode())


DEEP: dict[str, Callable[[int], tuple[bytes, bool]]] = {
    "object": lambda levels: (nested(levels), False),
    "array": lambda levels: (array(entry(), nested(levels)), False),
    "lines": lambda levels: (entry() + b"\n" + nested(levels), True),
    "careful": lambda levels: (in_upper_case(nested(levels)), False),
}  # fmt: skip


def at_depth(frames: int, call: Callable[[], object]) -> object:
    return call() if frames == 0 else at_depth(frames - 1, call)


@pytest.mark.parametrize("frames", [0, 300])
@pytest.mark.parametrize("kind", DEEP)
def test_how_deep_an_entry_may_nest_does_not_depend_on_the_stack(kind: str, frames: int) -> None:
    body, ndjson = DEEP[kind](MAX_NESTING)
    assert at_depth(frames, lambda: decoded(body, ndjson=ndjson))
    found = at_depth(frames, lambda: partial(body, ndjson=ndjson))
    assert isinstance(found, Partial)
    assert found.errors == ()
    assert found.batch is not None
    assert found.batch.count == found.count
    for levels in (MAX_NESTING + 1, 990, 2000):
        body, ndjson = DEEP[kind](levels)
        refuse = refusal_of_all if ndjson else refusal
        assert at_depth(frames, partial_call(refuse, body, ndjson=ndjson)) == "too_deep"
        if ndjson:  # the other line is good
            found = at_depth(frames, partial_call(partial, body, ndjson=True))
            assert isinstance(found, Partial)
            assert found.kept == (0,)
            assert [(error.index, error.code) for error in found.errors] == [(1, "too_deep")]


@pytest.mark.parametrize("body", [b"[" * 1_000_000, b'{"a":' * 200_000, b'[{"tags":' + b"[" * 9999])
def test_nesting_without_end_is_refused(body: bytes) -> None:
    assert refusal(body) == "too_deep"
    assert refusal(body, ndjson=True) == "too_deep"


def test_brackets_in_texts_are_no_nesting() -> None:
    text = "[{" * 2000
    row = one(entry(message=quoted(text), meta='{"a":' + quoted(text + '\\"[') + ',"b":[]}'))
    assert row.message == text


def test_many_brackets_side_by_side_are_no_nesting() -> None:
    meta = json.dumps({"a": [[]] * 2000})
    assert one(entry(meta=meta)).meta == meta.encode()


@pytest.mark.parametrize(
    "body",
    [array(*[b"{}"] * 50_000), array(*[b"[]"] * 50_000), array(*[b"1"] * 50_000),
     array(*[b'""'] * 50_000), array(*[entry()] * 99, *[b"{}"] * 50_000)],
)  # fmt: skip
def test_more_values_than_there_could_be_entries_are_not_looked_at(body: bytes) -> None:
    assert refusal(body) == "too_many_values"


def test_more_lines_than_there_could_be_entries_are_not_looked_at() -> None:
    assert refusal(b"{}\n" * 50_000, ndjson=True) == "too_many_values"
    assert refusal(b"1 " * 50_000, ndjson=True) == "too_many_values"


def test_more_members_than_entries_have_are_not_looked_at() -> None:
    members = {f"x{n}": "1" for n in range(20_000)}
    assert refusal(entry(**members)) == "too_many_members"
    assert refusal(array(entry(), entry(**members))) == "too_many_members"


def test_the_shortest_entries_are_never_too_many() -> None:
    shortest = entry(message='""', level='"INFO"')
    upper = in_upper_case(shortest)
    assert len(decoded(array(*[shortest] * 20_000, upper))) == 20_001
    assert len(decoded(b"".join([upper] * 20_000), ndjson=True)) == 20_000
