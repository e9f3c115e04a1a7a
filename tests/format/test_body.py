import json
from collections.abc import Callable

import numpy as np
import pytest
from body_samples import RECEIVED_NS, array, entry
from format_samples import OTHER_PROJECT, PROJECT, Row, batch_of, rows_of

from logd.format.body import (
    MAX_NESTING,
    Batch,
    EntryError,
    ForeignProject,
    InvalidBody,
    InvalidEntries,
    Partial,
    concatenate_batches,
    decode_body,
    decode_good_entries,
)


def decoded(body: bytes, *, ndjson: bool = False) -> list[Row]:
    return rows_of(decode_body(body, PROJECT, RECEIVED_NS, ndjson=ndjson))


def quoted(text: str) -> str:
    return f'"{text}"'


def one(body: bytes) -> Row:
    (row,) = decoded(body)
    return row


def partial(body: bytes, *, ndjson: bool = False) -> Partial:
    return decode_good_entries(body, PROJECT, RECEIVED_NS, ndjson=ndjson)


def faults(body: bytes, *, ndjson: bool = False) -> list[tuple[int, str, str]]:
    """(index, pointer, code) of each fault, the same from both functions."""
    with pytest.raises(InvalidEntries) as raised:
        decode_body(body, PROJECT, RECEIVED_NS, ndjson=ndjson)
    errors = raised.value.errors
    assert partial(body, ndjson=ndjson).errors == errors
    return [(error.index, error.pointer, error.code) for error in errors]


def refusal(body: bytes, *, ndjson: bool = False) -> str:
    """The code of the refusal of the whole body, the same from both functions."""
    codes = set()
    for decode in (decode_body, decode_good_entries):
        with pytest.raises(InvalidBody) as raised:
            decode(body, PROJECT, RECEIVED_NS, ndjson=ndjson)
        assert raised.value.detail
        codes.add(raised.value.code)
    (code,) = codes
    return code


# ---------------------------------------------------------------- what is accepted


def test_an_object_is_one_entry() -> None:
    body = entry(level='"WARN"', timestamp='"1970-01-01T00:00:01Z"', tags='["a"]', meta='{"b":1}')
    assert one(body) == Row(1_000_000_000, 2, "m", "s", b'["a"]', b'{"b":1}')


def test_an_array_is_as_many_entries_in_its_order() -> None:
    levels = ["DEBUG", "INFO", "WARN", "ERROR", "INFO"]
    body = array(*[entry(level=f'"{name}"', message=f'"{n}"') for n, name in enumerate(levels)])
    assert [row.level for row in decoded(body)] == [0, 1, 2, 3, 1]
    assert [row.message for row in decoded(body)] == list("01234")


@pytest.mark.parametrize(("body", "ndjson"), [(b"[]", False), (b" [ \n] ", False), (b"", True),
                                              (b"\n\r\n \n", True)])  # fmt: skip
def test_no_entries_are_an_empty_batch(body: bytes, ndjson: bool) -> None:
    assert decode_body(body, PROJECT, RECEIVED_NS, ndjson=ndjson).count == 0
    found = partial(body, ndjson=ndjson)
    assert (found.batch, found.body, found.kept, found.count) == (None, b"[]", (), 0)


def test_what_is_absent_has_a_default() -> None:
    assert one(entry()) == Row(RECEIVED_NS, 1, "m", "s", b"[]", b"{}")


def test_only_entries_without_a_timestamp_are_dated_by_their_receipt() -> None:
    body = array(entry(), entry(timestamp='"1970-01-01"'), entry())
    assert [row.ts_ns for row in decoded(body)] == [RECEIVED_NS, 0, RECEIVED_NS]


def test_timestamps_keep_their_nanoseconds() -> None:
    texts = [f"2026-01-31T23:59:59.{n:09}Z" for n in range(100)]
    body = array(*[entry(timestamp=f'"{text}"') for text in texts])
    first = decoded(body)[0].ts_ns
    assert [row.ts_ns for row in decoded(body)] == list(range(first, first + 100))


@pytest.mark.parametrize("blank", [b" ", b"\n", b"\r\n", b"\t", b" \r\n\t "])
def test_blanks_stand_wherever_json_has_them(blank: bytes) -> None:
    spread = entry(tags='["a"]').replace(b",", blank + b"," + blank).replace(b":", blank + b":")
    assert one(blank + spread + blank) == Row(RECEIVED_NS, tags=b'["a"]', message="m", source="s")
    assert len(decoded(blank + array(spread, spread) + blank)) == 2


def test_a_project_id_may_be_in_upper_case() -> None:
    upper, mixed = PROJECT.upper(), PROJECT[:9].upper() + PROJECT[9:]
    body = array(entry(projectId=f'"{upper}"'), entry(), entry(projectId=f'"{mixed}"'))
    assert len(decoded(body)) == 3


def test_keys_may_be_escaped() -> None:
    assert one(entry().replace(b'"message"', b'"m\\u0065ssage"')).message == "m"


@pytest.mark.parametrize(
    ("before", "name", "expected"),
    [
        ('"level":"ERROR"', "level", 1),
        ('"level":null', "level", 1),
        ('"message":7', "message", "m"),
        ('"source":""', "source", "s"),
        (f'"projectId":"{OTHER_PROJECT}"', "source", "s"),
        ('"tags":"x","tags":["y"]', "tags", b'["y"]'),
        ('"meta":[],"meta":{"z":0}', "meta", b'{"z":0}'),
        ('"timestamp":"never","timestamp":"1970-01-01"', "ts_ns", 0),
    ],
)
def test_of_repeated_keys_the_last_one_wins(before: str, name: str, expected: object) -> None:
    body = b"{" + before.encode() + b"," + entry()[1:]
    assert getattr(one(body), name) == expected


def test_a_repeated_key_that_ends_badly_is_a_fault() -> None:
    assert faults(entry()[:-1] + b',"level":"x"}') == [(0, "/level", "invalid_level")]


@pytest.mark.parametrize("text", [r"a\u0000b", r"\u0000", r"\n\t\r\b\f\/\\\"", r"\ud83d\ude00",
                                  "用户", r"\u7528", "\x7f", r"\ufffe\uffff"])  # fmt: skip
def test_texts_are_kept_as_they_read(text: str) -> None:
    row = one(entry(message=f'"{text}"', source=f'"{text}"', tags=f'["{text}"]'))
    assert row.message == row.source == json.loads(f'"{text}"')
    assert row.tags == f'["{text}"]'.encode()


@pytest.mark.parametrize(
    "meta",
    [
        "{}",
        "{ }",
        '{ "b" : 1 ,\n"a":2}',
        '{"a":1,"a":2,"\\u0061":3}',
        '{"":{"":[[],{}]}}',
        '{"big":%s,"e":1e999,"minus":-0}' % ("9" * 5000),
        '{"tiny":0.1000000000000000055511151231257827}',
        '{"text":"\\u0000\\ud83d\\ude00 \\/ é"}',
        '{"all":[null,true,false,-1.5E+300,"x",{"y":[]}]}',
    ],
)  # fmt: skip
def test_metas_are_kept_as_they_are_written(meta: str) -> None:
    assert one(entry(meta=meta)).meta == meta.encode()
    assert one(entry(meta=meta, projectId=f'"{PROJECT.upper()}"')).meta == meta.encode()


def test_tags_are_kept_as_they_are_written() -> None:
    assert one(entry(tags='[ "a" ,\n"\\u0061" ]')).tags == b'[ "a" ,\n"\\u0061" ]'


# ---------------------------------------------------------------- NDJSON


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n", b"\n \t\r\n", b"\r\n\r\n"])
def test_lines_may_be_blank_and_end_in_any_way(end: bytes) -> None:
    lines = [entry(message=f'"{n}"') for n in range(3)]
    for body in (end.join(lines), end.join(lines) + end, end + end.join(lines)):
        assert [row.message for row in decoded(body, ndjson=True)] == ["0", "1", "2"]


def test_blank_lines_are_no_entries() -> None:
    body = b"\n\n" + entry() + b"\n\n" + entry(level='"x"')
    assert faults(body, ndjson=True) == [(1, "/level", "invalid_level")]


def test_a_line_that_is_no_object_is_a_fault() -> None:
    body = b"\n".join([entry(), b"7", array(entry()), b'"x"', b"null"])
    expected = [(index, "", "wrong_type") for index in (1, 2, 3, 4)]
    assert [fault for fault in faults(body, ndjson=True) if not fault[1]] == expected


@pytest.mark.parametrize(
    "line", [b"{", b"x", b"{}}", entry()[:-1], entry() + b",", b"\xef\xbb\xbf"]
)
def test_a_line_that_is_no_json_spoils_the_body(line: bytes) -> None:
    assert refusal(entry() + b"\n" + line + b"\n", ndjson=True) == "malformed_json"


# ---------------------------------------------------------------- faults of an entry


@pytest.mark.parametrize("name", ["projectId", "level", "message", "source"])
def test_four_fields_are_required(name: str) -> None:
    assert faults(entry(name)) == [(0, f"/{name}", "required")]


@pytest.mark.parametrize("value", ["null", "true", "0", "1.5", "[]", "{}", '["x"]', '{"x":1}'])
@pytest.mark.parametrize("name", ["projectId", "level", "message", "source", "timestamp"])
def test_text_fields_hold_strings(name: str, value: str) -> None:
    assert faults(entry(**{name: value})) == [(0, f"/{name}", "wrong_type")]


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("projectId", '""', "/projectId invalid_uuid"),
        ("projectId", f'"{{{PROJECT}}}"', "/projectId invalid_uuid"),
        ("projectId", f'"{PROJECT[:-1]}"', "/projectId invalid_uuid"),
        ("projectId", f'"{PROJECT} "', "/projectId invalid_uuid"),
        ("projectId", f'"{PROJECT.replace("-", "")}"', "/projectId invalid_uuid"),
        ("projectId", f'"{PROJECT[:-1]}٣"', "/projectId invalid_uuid"),
        ("level", '""', "/level invalid_level"),
        ("level", '"info"', "/level invalid_level"),
        ("level", '"FATAL"', "/level invalid_level"),
        ("level", '"INFO "', "/level invalid_level"),
        ("message", quoted("x" * 8193), "/message too_long"),
        ("message", quoted("é" * 4097), "/message too_long"),
        ("message", quoted("\\u00e9" * 4097), "/message too_long"),
        ("source", '""', "/source too_short"),
        ("source", quoted("s" * 257), "/source too_long"),
        ("timestamp", '""', "/timestamp invalid_timestamp"),
        ("timestamp", '"yesterday"', "/timestamp invalid_timestamp"),
        ("timestamp", '"2026-02-29"', "/timestamp invalid_timestamp"),
        ("timestamp", '"1677-12-31T23:59:59Z"', "/timestamp invalid_timestamp"),
        ("timestamp", '"2262-04-11T23:47:16.854775808Z"', "/timestamp invalid_timestamp"),
        ("timestamp", '"2026-01-01T00:00:00.1234567890Z"', "/timestamp invalid_timestamp"),
        ("tags", "null", "/tags wrong_type"),
        ("tags", '"a"', "/tags wrong_type"),
        ("tags", "{}", "/tags wrong_type"),
        ("tags", '["a",1]', "/tags/1 wrong_type"),
        ("tags", '["a",null]', "/tags/1 wrong_type"),
        ("tags", '[["a"]]', "/tags/0 wrong_type"),
        ("tags", '["a","b",""]', "/tags/2 too_short"),
        ("tags", f'["{"t" * 129}"]', "/tags/0 too_long"),
        ("tags", json.dumps(["t"] * 65), "/tags too_many"),
        ("tags", f'["t"{" " * 131_072}]', "/tags too_long"),
        ("meta", "null", "/meta wrong_type"),
        ("meta", "[]", "/meta wrong_type"),
        ("meta", '"{}"', "/meta wrong_type"),
        ("meta", "1", "/meta wrong_type"),
        ("meta", '{"x":"%s"}' % ("y" * 65_529), "/meta too_long"),
        ("meta", "{%s}" % (" " * 65_535), "/meta too_long"),
    ],
)  # fmt: skip
def test_each_rule_has_its_code(name: str, value: str, fault: str) -> None:
    pointer, code = fault.split()
    assert faults(entry(**{name: value})) == [(0, pointer, code)]
    assert faults(array(entry(), entry(**{name: value}), entry())) == [(1, pointer, code)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("message", '""'),
        ("message", quoted("x" * 8192)),
        ("message", quoted("é" * 4096)),
        ("message", f'"{"用" * 2730}ab"'),
        ("message", quoted("\\ud83d\\ude00" * 2048)),
        ("source", quoted("s" * 256)),
        ("source", quoted("用" * 256)),
        ("source", quoted("\\ud83d\\ude00" * 256)),
        ("tags", json.dumps(["t" * 128] * 64)),
        ("tags", json.dumps(["\U0001f600" * 128] * 64)),
        ("meta", '{"x":"%s"}' % ("y" * 65_528)),
        ("meta", "{%s}" % (" " * 65_534)),
    ],
)  # fmt: skip
def test_what_just_keeps_within_a_limit_is_accepted(name: str, value: str) -> None:
    row = one(entry(**{name: value}))
    expected = json.loads(value) if name in ("message", "source") else value.encode()
    assert getattr(row, name) == expected
    assert len(decoded(array(entry(), entry(**{name: value})))) == 2


@pytest.mark.parametrize(
    ("name", "pointer"),
    [("lvel", "/lvel"), ("a/b", "/a~1b"), ("a~b", "/a~0b"), ("", "/"), ("Message", "/Message"),
     ("用户", "/用户"), ("x" * 65, "/" + "x" * 65)],
)  # fmt: skip
def test_an_unknown_field_is_named(name: str, pointer: str) -> None:
    with pytest.raises(InvalidEntries) as raised:
        decoded(entry(**{name: "1"}))
    (error,) = raised.value.errors
    assert (error.pointer, error.code) == (pointer, "unknown_field")
    assert name[:64] in error.detail
    assert "put it in meta" in error.detail


@pytest.mark.parametrize("item", [b"null", b"1", b'"x"', b"[]", b"true"])
def test_an_element_that_is_no_object_is_a_fault(item: bytes) -> None:
    assert faults(array(entry(), item))[0] == (1, "", "wrong_type")


def test_all_faults_of_an_entry_are_told_at_once() -> None:
    body = entry("source", level='"x"', message="1", tags='["",1]', meta="[]", extra="0")
    assert sorted(faults(body)) == [
        (0, "/extra", "unknown_field"),
        (0, "/level", "invalid_level"),
        (0, "/message", "wrong_type"),
        (0, "/meta", "wrong_type"),
        (0, "/source", "required"),
        (0, "/tags/0", "too_short"),
        (0, "/tags/1", "wrong_type"),
    ]


def test_the_first_hundred_faults_are_listed_and_all_counted() -> None:
    body = array(*[entry(level='"x"') if n % 2 else entry() for n in range(500)])
    with pytest.raises(InvalidEntries) as raised:
        decoded(body)
    assert [error.index for error in raised.value.errors] == list(range(1, 200, 2))
    assert raised.value.total == 250
    assert partial(body).errors == raised.value.errors
    assert partial(body).kept == tuple(range(0, 500, 2))


# ---------------------------------------------------------------- foreign projects


def test_an_entry_of_another_project_is_told_apart_from_a_fault() -> None:
    body = array(entry(), entry(projectId=f'"{OTHER_PROJECT}"'))
    with pytest.raises(ForeignProject) as raised:
        decoded(body)
    (error,) = raised.value.errors
    assert (error.index, error.pointer, error.code) == (1, "/projectId", "foreign_project")


def test_faults_come_before_foreign_projects() -> None:
    foreign = entry(projectId=f'"{OTHER_PROJECT}"')
    with pytest.raises(InvalidEntries) as raised:
        decoded(array(foreign, entry(level='"x"')))
    assert [error.index for error in raised.value.errors] == [1]
    with pytest.raises(InvalidEntries):
        decoded(entry(projectId=f'"{OTHER_PROJECT}"', level='"x"'))


def test_foreign_projects_are_listed_beside_the_faults_of_a_partial_body() -> None:
    foreign = entry(projectId=f'"{OTHER_PROJECT}"')
    found = partial(array(foreign, entry(level='"x"'), entry(), foreign))
    listed = [(error.index, error.code) for error in found.errors]
    assert listed == [(0, "foreign_project"), (1, "invalid_level"), (3, "foreign_project")]
    assert found.kept == (2,)


# ---------------------------------------------------------------- partial bodies


def test_the_kept_body_is_an_array_whatever_was_sent() -> None:
    good, bad = entry(message='"é"'), entry(level='"x"')
    for body, ndjson in [(array(bad, good, good), False), (b"\n".join([bad, good, good]), True)]:
        found = partial(body, ndjson=ndjson)
        assert found.body == array(good, good)
        assert found.kept == (1, 2)
        assert found.count == 3
        assert found.batch is not None
        assert rows_of(found.batch) == decoded(found.body)
    assert partial(good).body == array(good)


def test_a_body_without_a_good_entry_keeps_none() -> None:
    found = partial(entry(level='"x"'))
    assert (found.batch, found.body, found.kept, found.count) == (None, b"[]", (), 1)


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
    assert len(decoded(found.body)) == found.count
    for levels in (MAX_NESTING + 1, 990, 2000):
        body, ndjson = DEEP[kind](levels)
        assert at_depth(frames, lambda b=body, n=ndjson: refusal(b, ndjson=n)) == "too_deep"  # type: ignore[misc]


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


# ---------------------------------------------------------------- batches


def test_the_columns_of_a_batch_are_separated_texts() -> None:
    body = array(entry(message='"a"', tags='["x"]'), entry(level='"ERROR"', meta='{"k":1}'))
    batch = decode_body(body, PROJECT, RECEIVED_NS, ndjson=False)
    assert batch.ts.dtype == np.int64
    assert batch.levels == b"\x01\x03"
    assert batch.messages == b"a\xfem"
    assert batch.sources == b"s\xfes"
    assert batch.tags == b'["x"]\xfe[]'
    assert batch.metas == b'{}\xfe{"k":1}'
    assert batch.size_bytes == 2 * 9 + 3 + 3 + 8 + 10


@pytest.mark.parametrize("sizes", [[1], [1, 1], [3, 1, 2]])
def test_batches_one_behind_the_other_are_one_batch(sizes: list[int]) -> None:
    rows = [Row(ts_ns=n, level=n % 4, message="" if n % 2 else f"{n}") for n in range(sum(sizes))]
    parts: list[Batch] = []
    for size in sizes:
        start = sum(part.count for part in parts)
        parts.append(batch_of(rows[start : start + size]))
    assert rows_of(concatenate_batches(parts)) == rows


def test_errors_say_what_is_wrong_in_words() -> None:
    with pytest.raises(InvalidEntries, match="message is 9000 bytes of UTF-8, at most 8192"):
        decoded(entry(message=quoted("x" * 9000)))
    with pytest.raises(InvalidEntries, match="source is 300 characters, at most 256"):
        decoded(entry(source=quoted("x" * 300)))
    with pytest.raises(InvalidEntries, match="meta is 70011 bytes of JSON, at most 65536"):
        decoded(entry(meta='{"text":"%s"}' % ("x" * 70_000)))
    error = EntryError(3, "/level", "invalid_level", "level must be one of ...")
    assert str(InvalidEntries((error,), 7)) == "7 faults, the first: level must be one of ..."
