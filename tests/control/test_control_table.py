from hypothesis import given
from hypothesis import strategies as st

from logd.control.table import Table

Row = tuple[str, int, tuple[int, ...]]
"""Key, one value, several values."""


def empty() -> Table[Row]:
    return Table(one=lambda row: (row[1],), many=lambda row: row[2])


changes = st.dictionaries(
    st.sampled_from("abcdef"),
    st.none() | st.tuples(st.integers(0, 2), st.sets(st.integers(0, 3)).map(tuple)),
)


@given(st.lists(changes))
def test_a_table_equals_a_dictionary_and_earlier_tables_stay_as_they_were(
    history: list[dict[str, tuple[int, tuple[int, ...]] | None]],
) -> None:
    table, model = empty(), dict[str, Row]()
    seen = [(table, dict(model))]
    for change in history:
        rows = {key: None if row is None else (key, *row) for key, row in change.items()}
        table = table.changed(rows)
        for key, row in rows.items():
            if row is None:
                model.pop(key, None)
            else:
                model[key] = row
        seen.append((table, dict(model)))
    for table, rows_then in seen:
        assert_equal(table, rows_then)


def assert_equal(table: Table[Row], model: dict[str, Row]) -> None:
    assert set(table) == set(model.values())
    assert len(table) == len(model)
    for key in "abcdef":
        assert table.get(key) == model.get(key)
        assert (key in table) == (key in model)
    for value in range(4):
        assert set(table.where("one", value)) == {r for r in model.values() if r[1] == value}
        assert set(table.where("many", value)) == {r for r in model.values() if value in r[2]}
        found = table.one("many", value)
        assert (found is None) == (not table.where("many", value))
        assert found is None or found in table.where("many", value)
