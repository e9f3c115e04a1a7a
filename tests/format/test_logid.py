import json
import re
import uuid

import pytest
from format_samples import OTHER_PROJECT, PROJECT
from hypothesis import given
from hypothesis import strategies as st

from logd.entry import Seq
from logd.format.logid import id_prefix, ids_json, ids_json_of_kept, log_id, parse_log_id

LAST = 2**48 - 1
SEQS = st.one_of(
    st.integers(0, LAST),
    st.sampled_from([0, 1, 4095, 4096, 4097, 8191, 8192, 2**36 - 1, 2**36, LAST]),
)


@given(SEQS)
def test_an_id_names_its_entry(seq: int) -> None:
    assert parse_log_id(PROJECT, log_id(PROJECT, Seq(seq))) == seq


@given(SEQS)
def test_an_id_is_log_and_a_uuid_of_version_8(seq: int) -> None:
    text = log_id(PROJECT, Seq(seq))
    assert text.startswith("log_")
    value = uuid.UUID(text[4:])
    assert str(value) == text[4:]
    assert (value.version, value.variant) == (8, uuid.RFC_4122)


def test_ids_never_change() -> None:
    assert log_id(PROJECT, Seq(0)) == "log_a1f65db3-21d3-8552-8aee-000000000000"
    assert log_id(PROJECT, Seq(0x123456789ABC)).endswith("-123456789abc")


def test_ids_of_two_projects_differ() -> None:
    assert id_prefix(PROJECT) != id_prefix(OTHER_PROJECT)
    assert parse_log_id(OTHER_PROJECT, log_id(PROJECT, Seq(5))) is None


def test_an_id_may_be_written_in_upper_case() -> None:
    text = log_id(PROJECT, Seq(0xABCDEF))
    assert parse_log_id(PROJECT, text.upper()) == 0xABCDEF


def test_texts_that_are_no_id_of_the_project_name_nothing() -> None:
    text = log_id(PROJECT, Seq(0xABCDEF))
    changed = [text[:i] + ("0" if c != "0" else "1") + text[i + 1 :] for i, c in enumerate(text)]
    assert all(parse_log_id(PROJECT, other) is None for other in changed[: len(id_prefix(PROJECT))])
    assert all(
        parse_log_id(PROJECT, other) is None
        for other in ["", "log_", text[4:], text[:-1], text + "0", f" {text}", f"{text}\n",
                      text.replace("-", ""), text.replace("a", "g"), text.replace("0", "٠")]
    )  # fmt: skip


@pytest.mark.parametrize(
    "first", [0, 1, 4094, 4095, 4096, 4097, 8191, 8192, 2**36 - 2, LAST - 8200]
)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4095, 4096, 4097, 8193])
def test_the_ids_of_a_request_are_those_of_its_entries(first: int, count: int) -> None:
    text = ids_json(PROJECT, Seq(first), count)
    assert json.loads(text) == [log_id(PROJECT, Seq(first + n)) for n in range(count)]
    assert not re.search(rb"\s", text)


@pytest.mark.parametrize("first", [0, 4094, 2**36 - 2])
@pytest.mark.parametrize("count", [0, 1, 2, 4095, 4096, 4097, 8193])
@pytest.mark.parametrize("step", [1, 2, 3, 5000])
@pytest.mark.parametrize("begin", [0, 1, 5000])
def test_entries_of_a_request_that_are_not_kept_have_no_id(
    first: int, count: int, step: int, begin: int
) -> None:
    kept = tuple(range(begin, count, step))
    expected: list[str | None] = [None] * count
    for offset, index in enumerate(kept):
        expected[index] = log_id(PROJECT, Seq(first + offset))
    text = ids_json_of_kept(PROJECT, Seq(first), kept, count)
    assert json.loads(text) == expected
    assert not re.search(rb"\s", text)
