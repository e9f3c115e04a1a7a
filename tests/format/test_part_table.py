"""The table of a chunk's parts, against a dictionary."""

from collections.abc import Mapping

import pytest
from format_samples import unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format.part_table import (
    MESSAGE_PARTS,
    META_PARTS,
    ROW_BYTES,
    Part,
    PartRef,
    PartTable,
    encode_row,
)

Key = tuple[Part, int]

UINT32 = st.one_of(st.integers(0, 300), st.integers(0, 2**32 - 1))
KEYS = st.tuples(st.sampled_from(Part), st.integers(0, 65_535))
CONTENTS = st.tuples(st.integers(0, 255), UINT32, UINT32, UINT32)
"""Encoding, raw bytes, stored bytes, CRC-32."""
TABLES = st.dictionaries(KEYS, CONTENTS, max_size=20)
Table = dict[Key, tuple[int, int, int, int]]


def table_of(parts: Table, first: int = 0) -> PartTable:
    rows = [
        encode_row(kind, encoding, block, (raw, stored, crc))
        for (kind, block), (encoding, raw, stored, crc) in parts.items()
    ]
    return PartTable(b"".join(rows), first)


def expected(parts: Table, first: int) -> dict[Key, PartRef]:
    out = {}
    for key, (encoding, raw, stored, crc) in parts.items():
        out[key] = PartRef(first, stored, raw, crc, encoding)
        first += stored
    return out


@unhurried
@given(TABLES, st.integers(0, 2**40))
def test_a_table_is_a_mapping_of_its_parts(parts: Table, first: int) -> None:
    table, model = table_of(parts, first), expected(parts, first)
    assert isinstance(table, Mapping)
    assert len(table) == len(model)
    assert list(table) == list(model)
    assert list(table.items()) == list(model.items())
    assert table == model
    assert dict(table) == model


@unhurried
@given(TABLES, st.lists(KEYS))
def test_parts_that_are_not_there_are_not_found(parts: Table, keys: list[Key]) -> None:
    table = table_of(parts)
    for key in keys:
        assert (key in table) == (key in parts)
        assert (table.get(key) is not None) == (key in parts)
        if key not in parts:
            with pytest.raises(KeyError):
                table[key]


@unhurried
@given(TABLES, st.integers(0, 2**40))
def test_parts_lie_one_behind_the_other(parts: Table, first: int) -> None:
    """Also where they have more than 4 GiB together."""
    table = table_of(parts, first)
    end = first
    for ref in table.values():
        assert ref.offset == end
        end += ref.stored_bytes
    assert table.end == end


@unhurried
@given(TABLES)
def test_tables_of_the_same_bytes_are_equal(parts: Table) -> None:
    assert table_of(parts) == table_of(parts)
    assert table_of(parts, 1) != table_of(parts) or not parts
    assert table_of({**parts, (Part.TIMES, 65_535): (0, 0, 0, 0)}) != table_of(
        {**parts, (Part.TIMES, 65_535): (1, 0, 0, 0)}
    )


@pytest.mark.parametrize("key", [7, "levels", None])
def test_what_is_no_key_is_not_there(key: object) -> None:
    assert key not in table_of({(Part.LEVELS, 0): (0, 1, 1, 1)})


def test_kinds_and_blocks_are_not_mixed_up() -> None:
    table = table_of({(Part.LEVELS, 4): (0, 1, 2, 3), (Part.SOURCES, 3): (0, 4, 5, 6)})
    assert (Part.SOURCES, 4) not in table
    assert (Part.LEVELS, 3) not in table
    assert table[Part.LEVELS, 4].raw_bytes == 1
    assert table[Part.SOURCES, 3].raw_bytes == 4


def test_a_row_is_as_it_is_said_to_be() -> None:
    row = encode_row(Part.TIMES, 22, 0x0201, (3, 4, 0xFFFFFFFE))
    assert row == bytes([1, 22, 1, 2, 3, 0, 0, 0, 4, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF])


@pytest.mark.parametrize("size", [1, ROW_BYTES - 1, ROW_BYTES + 1, 3 * ROW_BYTES - 1])
def test_a_table_that_ends_within_a_row_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="buffer size"):
        PartTable(bytes(size), 0)


def test_messages_and_metas_share_no_parts() -> None:
    kinds = [
        getattr(parts, field)
        for parts in (MESSAGE_PARTS, META_PARTS)
        for field in parts.__struct_fields__
    ]
    assert len(set(kinds)) == len(kinds) == 16
