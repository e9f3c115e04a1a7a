import csv
import io
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.cli.errors import CommandError
from logd.cli.input.csv_rows import Columns, CsvRows
from logd.cli.input.entries import Defaults, Unreadable
from logd.cli.input.source import MAX_LINE_BYTES

DEFAULTS = Defaults("p", "web.csv")


def read(text: str, columns: Columns) -> list[Any]:
    rows = CsvRows(columns, DEFAULTS, 2026)
    entries = [rows.entry(line) for line in text.encode().split(b"\n")]
    rows.end()
    return [msgspec.json.decode(entry) for entry in entries if entry is not None]


def test_columns_become_fields_and_the_rest_is_meta() -> None:
    text = "Id,Level,Who,When,What\n1,warning,db,2026-01-01,slow\n"
    columns = Columns(message="What", level="Level", source="Who", time=("When",))
    assert read(text, columns) == [
        {
            "projectId": "p", "level": "WARN", "source": "db", "message": "slow",
            "timestamp": "2026-01-01", "meta": {"Id": "1"},
        }
    ]  # fmt: skip


def test_defaults_stand_in_for_columns_that_are_not_named() -> None:
    (entry,) = read("a,b\n1,2", Columns(message="b"))
    assert entry == {
        "projectId": "p", "level": "INFO", "source": "web.csv", "message": "2", "meta": {"a": "1"},
    }  # fmt: skip


def test_a_level_that_cannot_be_read_stays_in_the_meta() -> None:
    (entry,) = read("Level,M\nloud,m", Columns(message="M", level="Level"))
    assert entry["level"] == "INFO"
    assert entry["meta"] == {"Level": "loud"}


def test_quoted_cells_hold_delimiters_quotes_and_lines() -> None:
    text = 'M,x\n"a,""b""\n\nc",1\nnext,2'
    entries = read(text, Columns(message="M"))
    assert [entry["message"] for entry in entries] == ['a,"b"\n\nc', "next"]


def test_another_delimiter_and_a_byte_order_mark_are_understood() -> None:
    (entry,) = read("\ufeffM;x\nm;1", Columns(message="M", delimiter=";"))
    assert entry["message"] == "m"


@pytest.mark.parametrize(
    ("cells", "form", "time"),
    [
        ("Sun Dec 04 04:47:44 2005", "%a %b %d %H:%M:%S %Y", "2005-12-04T04:47:44"),
        ("2005-06-03-15.42.50.675872", "%Y-%m-%d-%H.%M.%S.%f", "2005-06-03T15:42:50.675872"),
        ("Jun 14 15:16:01", "%b %d %H:%M:%S", "2026-06-14T15:16:01"),
        ("01/02/26 03:04:05 +0100", "%d/%m/%y %H:%M:%S %z", "2026-02-01T03:04:05+01:00"),
        ("1077804742", None, "2004-02-26T14:12:22.000Z"),
    ],
)
def test_times_are_read_by_their_form(cells: str, form: str | None, time: str) -> None:
    (entry,) = read(f"M,T\nm,{cells}", Columns(message="M", time=("T",), time_format=form))
    assert entry["timestamp"] == time


def test_several_time_columns_are_joined() -> None:
    columns = Columns(message="M", time=("D", "T"), time_format="%y%m%d %H%M%S")
    (entry,) = read("D,T,M\n081109,203615,m", columns)
    assert entry["timestamp"] == "2008-11-09T20:36:15"
    assert "meta" not in entry


@pytest.mark.parametrize("form", [None, "%H:%M"])
def test_a_time_that_cannot_be_read_refuses_its_row_only(form: str | None) -> None:
    rows = CsvRows(Columns(message="M", time=("T",), time_format=form), DEFAULTS, 2026)
    assert rows.entry(b"M,T") is None
    with pytest.raises(Unreadable, match="'noon' is not a time"):
        rows.entry(b"m,noon")
    with pytest.raises(Unreadable, match="3 cells, the header has 2"):
        rows.entry(b"m,2026-01-01,more")


def test_a_missing_column_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(CommandError, match="no column 'Z'; there are M, T"):
        read("M,T\nm,1", Columns(message="M", time=("Z",)))


def test_a_cell_without_end_is_refused() -> None:
    with pytest.raises(Unreadable, match="no end"):
        read('M\n"open', Columns(message="M"))


def test_blank_rows_are_no_entries() -> None:
    assert len(read("M\n\na\n\n", Columns(message="M"))) == 1


def test_a_quote_within_a_cell_is_a_character() -> None:
    text = 'M,x\n5" disk,1\nnext,2\n"7"" disk, ""new""",3\n"a"b,4\n"",5'
    entries = read(text, Columns(message="M"))
    messages = ['5" disk', "next", '7" disk, "new"', "ab", ""]
    assert [entry["message"] for entry in entries] == messages
    assert [entry["meta"]["x"] for entry in entries] == list("12345")


@given(st.lists(st.lists(st.text('ab",\n;', max_size=6), min_size=2, max_size=2), max_size=4))
def test_what_the_csv_module_writes_is_read_as_it_was(rows: list[list[str]]) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([["M", "x"], *rows])
    entries = read(written.getvalue(), Columns(message="M"))
    assert [[entry["message"], entry.get("meta", {})["x"]] for entry in entries] == rows


def test_a_quote_without_end_takes_no_more_than_a_part_of_the_file() -> None:
    rows = CsvRows(Columns(message="M"), DEFAULTS, 2026)
    assert rows.entry(b"M") is None
    assert rows.entry(b'"open') is None
    filler = b"x" * 99
    for _ in range(MAX_LINE_BYTES // 100):
        assert rows.entry(filler) is None
    with pytest.raises(Unreadable, match="no end, 10,487 lines"):
        rows.entry(filler)
    assert rows.entry(b"next") is not None
    rows.end()


def test_a_column_may_be_used_twice() -> None:
    columns = Columns(message="A", source="A", time=("T", "T"), time_format="%Y %Y")
    with pytest.raises(Unreadable, match="not a time"):
        read("A,T\nboth,2026", columns)
    (entry,) = read("A\nboth", Columns(message="A", source="A"))
    assert (entry["message"], entry["source"]) == ("both", "both")
    assert "meta" not in entry
