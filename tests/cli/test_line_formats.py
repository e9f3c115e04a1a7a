from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.cli.input.entries import Defaults, Unreadable
from logd.cli.input.formats import LINE_FORMATS, EachLine
from logd.cli.send import FORMATS

DEFAULTS = Defaults("the-project", "app.log")
BARE = {"projectId": "the-project", "level": "INFO", "source": "app.log"}


def read(line: str | bytes, name: str = "auto", defaults: Defaults = DEFAULTS) -> dict[str, Any]:
    data = line.encode() if isinstance(line, str) else line
    entry = EachLine(LINE_FORMATS[name], defaults).entry(data)
    assert entry is not None
    return cast(dict[str, Any], msgspec.json.decode(entry))


def test_each_format_can_be_chosen() -> None:
    assert set(FORMATS) == {*LINE_FORMATS, "csv"}


# ---------------------------------------------------------------- plain


def test_a_plain_line_is_the_message() -> None:
    assert read("  disk [sda1] is full ") == {**BARE, "message": "  disk [sda1] is full "}


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert read(b"caf\xe9")["message"] == "caf\ufffd"


@pytest.mark.parametrize("line", ["{", '{"level":', "{not json}", '["array"]', '"text"', "17"])
def test_what_only_looks_like_json_is_plain_text(line: str) -> None:
    assert read(line) == {**BARE, "message": line}


@pytest.mark.parametrize("name", LINE_FORMATS)
def test_a_blank_line_is_no_entry(name: str) -> None:
    assert EachLine(LINE_FORMATS[name], DEFAULTS).entry(b" \t\r") is None


def test_defaults_stand_in_and_tags_are_added() -> None:
    defaults = Defaults("p", "s", "WARN", ("prod", "eu"))
    assert read("x", defaults=defaults) == {
        "projectId": "p", "level": "WARN", "message": "x", "source": "s", "tags": ["prod", "eu"],
    }  # fmt: skip
    tagged = read('{"msg": "x", "tags": ["own"]}', defaults=defaults)
    assert tagged["tags"] == ["own", "prod", "eu"]


# ---------------------------------------------------------------- ingest form


def test_an_entry_in_the_ingest_form_is_kept_as_it_is() -> None:
    entry = {
        "projectId": "other", "level": "ERROR", "message": "m", "source": "s",
        "timestamp": "yesterday", "tags": ["a"], "meta": {"n": 1.50},
    }  # fmt: skip
    assert read(msgspec.json.encode(entry)) == entry
    assert read(msgspec.json.encode(entry), "ndjson") == entry


def test_ndjson_fills_in_what_is_absent_and_changes_nothing_else() -> None:
    assert read('{"message": "m", "levl": "INFO"}', "ndjson") == {
        **BARE, "message": "m", "levl": "INFO",
    }  # fmt: skip


def test_ndjson_keeps_bad_tags_for_the_daemon_to_refuse() -> None:
    tagged = Defaults("p", "s", tags=("t",))
    assert read('{"message": "m", "tags": 7}', "ndjson", tagged)["tags"] == 7


def test_numbers_are_not_rounded() -> None:
    line = b'{"message":"m","meta":{"n":12345678901234567890123,"f":1.10},"level":"INFO"}'
    raw = EachLine(LINE_FORMATS["auto"], DEFAULTS).entry(line)
    assert raw is not None
    assert b'{"n":12345678901234567890123,"f":1.10}' in raw


@pytest.mark.parametrize("name", ["ndjson", "json", "journald"])
@pytest.mark.parametrize("line", [b"{", b"[1]", b"plain", b'{"a":"\\ud800"}', b"[" * 100_000])
def test_what_is_no_object_is_refused_where_json_was_promised(name: str, line: bytes) -> None:
    with pytest.raises(Unreadable, match="not a JSON object"):
        EachLine(LINE_FORMATS[name], DEFAULTS).entry(line)


# ---------------------------------------------------------------- anyone's JSON


def test_common_names_are_mapped_and_the_rest_is_meta() -> None:
    line = (
        '{"time":"2026-01-01T00:00:00Z","level":"warning","logger":"db","msg":"slow","ms":1.50,'
        '"user":{"id":7}}'
    )
    assert read(line) == {
        "projectId": "the-project", "level": "WARN", "source": "db", "message": "slow",
        "timestamp": "2026-01-01T00:00:00Z", "meta": {"ms": 1.5, "user": {"id": 7}},
    }  # fmt: skip


def test_dotted_names_are_found_flat_and_nested() -> None:
    flat = read('{"@timestamp":"2026-01-01","log.level":"error","message":"m","service.name":"s"}')
    assert (flat["level"], flat["source"], flat["timestamp"]) == ("ERROR", "s", "2026-01-01")
    assert "meta" not in flat
    nested = read('{"log":{"level":"error"},"message":"m","service":{"name":"s"}}')
    assert (nested["level"], nested["source"]) == ("ERROR", "s")
    assert nested["meta"] == {"log": {"level": "error"}, "service": {"name": "s"}}


def test_numeric_levels_and_times_are_read() -> None:
    entry = read('{"level":50,"time":1700000000123,"msg":"pino","pid":1}')
    assert (entry["level"], entry["timestamp"]) == ("ERROR", "2023-11-14T22:13:20.123Z")
    assert entry["meta"] == {"pid": 1}


def test_a_level_or_time_that_cannot_be_read_goes_to_the_meta() -> None:
    entry = read('{"level":"loud","time":"noon","msg":"m"}')
    assert entry["level"] == "INFO"
    assert "timestamp" not in entry
    assert entry["meta"] == {"level": "loud", "time": "noon"}


def test_the_first_name_that_can_be_read_counts() -> None:
    entry = read('{"timestamp":"noon","ts":1700000000,"message":{"a":1},"msg":"m"}')
    assert entry["timestamp"] == "2023-11-14T22:13:20.000Z"
    assert entry["message"] == "m"
    assert entry["meta"] == {"timestamp": "noon", "message": {"a": 1}}


def test_an_object_without_message_is_its_own_message() -> None:
    entry = read(' {"event":"login","user":7} ')
    assert entry["message"] == '{"event":"login","user":7}'
    assert entry["meta"] == {"event": "login", "user": 7}


def test_the_objects_own_meta_stays_at_its_place() -> None:
    assert read('{"msg":"m","meta":{"a":1},"b":2}')["meta"] == {"a": 1, "b": 2}
    assert read('{"msg":"m","meta":{"a":1},"a":2}')["meta"] == {"meta": {"a": 1}, "a": 2}
    assert read('{"msg":"m","meta":7}')["meta"] == {"meta": 7}


def test_tags_that_are_no_list_of_texts_go_to_the_meta() -> None:
    entry = read('{"msg":"m","tags":{"env":"prod"}}')
    assert "tags" not in entry
    assert entry["meta"] == {"tags": {"env": "prod"}}


def test_a_listed_entry_can_be_sent_again() -> None:
    line = (
        '{"id":"log_1","projectId":"p","level":"WARN","message":"m","source":"s",'
        '"ts":"2026-01-01T00:00:00.000Z","tags":["t"],"meta":{"k":"v"}}'
    )
    assert read(line) == {
        "projectId": "the-project", "level": "WARN", "source": "s", "message": "m",
        "timestamp": "2026-01-01T00:00:00.000Z", "tags": ["t"],
        "meta": {"k": "v", "id": "log_1", "projectId": "p"},
    }  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["level", "msg", "name", "meta", "tags"]), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
NAMES = st.sampled_from(
    ["level", "log", "msg", "message", "time", "ts", "source", "service", "tags", "meta", "x",
     "service.name", "__REALTIME_TIMESTAMP", "MESSAGE", "PRIORITY", "_COMM"],
)  # fmt: skip


@given(st.dictionaries(NAMES, JSON, max_size=6))
def test_any_object_becomes_an_entry_with_the_required_fields(fields: dict[str, Any]) -> None:
    entry = read(msgspec.json.encode(fields))
    assert entry["level"] in ("DEBUG", "INFO", "WARN", "ERROR")
    assert isinstance(entry["message"], str)
    assert isinstance(entry["source"], str)
    assert entry["source"]


@given(st.binary(min_size=1).filter(lambda data: b"\n" not in data and data.strip()))
def test_any_line_becomes_an_entry(line: bytes) -> None:
    assert isinstance(read(line)["message"], str)


# ---------------------------------------------------------------- journald

JOURNAL = {
    "__CURSOR": "s=1;i=2",
    "__REALTIME_TIMESTAMP": "1700000000123456",
    "__MONOTONIC_TIMESTAMP": "42",
    "PRIORITY": "3",
    "MESSAGE": "Failed to start",
    "_SYSTEMD_UNIT": "nginx.service",
    "SYSLOG_IDENTIFIER": "nginx",
    "_HOSTNAME": "web-1",
}


@pytest.mark.parametrize("name", ["auto", "json", "journald"])
def test_a_journal_line_is_recognised(name: str) -> None:
    assert read(msgspec.json.encode(JOURNAL), name) == {
        "projectId": "the-project",
        "level": "ERROR",
        "message": "Failed to start",
        "source": "nginx.service",
        "timestamp": "2023-11-14T22:13:20.123456Z",
        "meta": {
            "PRIORITY": "3",
            "_SYSTEMD_UNIT": "nginx.service",
            "SYSLOG_IDENTIFIER": "nginx",
            "_HOSTNAME": "web-1",
        },
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([72, 105, 255], "Hi\ufffd"),
        (["one", "two"], "one\ntwo"),
        (["one", [116, 119, 111]], "one\ntwo"),
        (None, ""),
        ([], ""),
        ({"a": 1}, '{"a":1}'),
    ],
)
def test_journal_messages_come_in_several_forms(value: object, message: str) -> None:
    assert read(msgspec.json.encode({**JOURNAL, "MESSAGE": value}))["message"] == message


def test_a_journal_line_without_unit_is_named_by_its_identifier() -> None:
    fields = {name: value for name, value in JOURNAL.items() if name != "_SYSTEMD_UNIT"}
    assert read(msgspec.json.encode(fields))["source"] == "nginx"
