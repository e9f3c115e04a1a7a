import json

import numpy as np
import pytest
from body_calls import decoded, faults, one, partial, quoted, refusal, refusal_of_all
from body_samples import RECEIVED_NS, array, entry
from format_samples import OTHER_PROJECT, PROJECT, Row, batch_of, rows_of

from logd.format.body import (
    Batch,
    EntryError,
    InvalidEntries,
    concatenate_batches,
    decode_body,
)

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
    assert (found.batch, found.kept, found.count) == (None, (), 0)


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
    body = entry() + b"\n" + line + b"\n"
    assert refusal_of_all(body, ndjson=True) == "malformed_json"


# ---------------------------------------------------------------- partial bodies


def test_the_good_entries_are_kept_whatever_was_sent() -> None:
    good, bad = entry(message='"é"'), entry(level='"x"')
    for body, ndjson in [(array(bad, good, good), False), (b"\n".join([bad, good, good]), True)]:
        found = partial(body, ndjson=ndjson)
        assert found.kept == (1, 2)
        assert found.count == 3
        assert found.batch is not None
        assert rows_of(found.batch) == decoded(array(good, good))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (entry()[:-20], "malformed_json"),
        (entry() + b",", "malformed_json"),
        (entry(message='"\xff"').replace(b"\xc3\xbf", b"\xff"), "not_utf8"),
        (entry(message=r'"\ud800"'), "malformed_json"),
        (b'{"meta":' + b"[" * 600 + b"]" * 600 + b"}", "too_deep"),
        (b"7 " * 20_000, "too_many_values"),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n \n\n"])
def test_a_line_that_is_no_json_is_one_bad_entry_of_several(
    line: bytes, code: str, end: bytes
) -> None:
    lines = [entry(message='"a"'), line, entry(message='"b"'), entry(level='"x"')]
    for body in (end.join(lines), end.join([*lines, b""])):
        found = partial(body, ndjson=True)
        assert (found.kept, found.count) == ((0, 2), 4)
        assert found.batch is not None
        assert rows_of(found.batch) == decoded(array(lines[0], lines[2]))
        listed = [(error.index, error.pointer, error.code) for error in found.errors]
        assert listed == [(1, "", code), (3, "/level", "invalid_level")]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([b"x"], "malformed_json"),
        ([entry()[:-1]] * 3, "malformed_json"),
        ([b"x" * 40] * 20_000 + [entry()], "too_many_values"),
    ],
)
def test_what_is_no_ndjson_at_all_is_refused_in_part_too(lines: list[bytes], code: str) -> None:
    assert refusal(b"\n".join(lines), ndjson=True) == code


def test_a_body_without_a_good_entry_keeps_none() -> None:
    found = partial(entry(level='"x"'))
    assert (found.batch, found.kept, found.count) == (None, (), 1)


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
    both = (entry(message='""'), entry(message=quoted("x" * 8191 + "\xe9")))
    with pytest.raises(InvalidEntries, match="message is 8193 bytes of UTF-8, at most 8192"):
        decoded(b"[%b,%b]" % both)
    error = EntryError(3, "/level", "invalid_level", "level must be one of ...")
    assert str(InvalidEntries((error,), 7)) == "7 faults, the first: level must be one of ..."
