import json

import pytest
from body_calls import decoded, faults, one, partial, quoted
from body_samples import array, entry
from format_samples import OTHER_PROJECT, PROJECT

from logd.format.body import (
    ForeignProject,
    InvalidEntries,
)

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
     ("用户", "/用户"), ("x" * 65, "/" + "x" * 65),
     ("/" * 257, "/" + "~1" * 256 + "...")],
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
