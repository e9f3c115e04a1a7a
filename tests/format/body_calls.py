"""Decoding a body, and what is said against it, as tests write it."""

import pytest
from body_samples import RECEIVED_NS
from format_samples import PROJECT, Row, rows_of

from logd.format.body import (
    InvalidBody,
    InvalidEntries,
    Partial,
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
    with pytest.raises(InvalidBody) as raised:
        partial(body, ndjson=ndjson)
    assert raised.value.code == refusal_of_all(body, ndjson=ndjson)
    return raised.value.code


def refusal_of_all(body: bytes, *, ndjson: bool = False) -> str:
    """The same where all entries are wanted."""
    with pytest.raises(InvalidBody) as raised:
        decode_body(body, PROJECT, RECEIVED_NS, ndjson=ndjson)
    assert raised.value.detail
    return raised.value.code
