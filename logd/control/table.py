"""An immutable table with secondary indexes: rows by key, and groups of rows by what they share.

A reader that holds a table sees one state of it for ever; `changed` makes the next one. It copies
the outer maps (the control data are small) and shares the groups that did not change.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, TypeVar

Row = TypeVar("Row")

Grouping = Callable[[Row], tuple[Hashable, ...]]
"""Of a row: the values it is found by. Most rows have one."""

_Groups = dict[Hashable, dict[str, Row]]


class Table(Generic[Row]):
    """Rows by a text key, and by the values that each named index finds in them."""

    def __init__(self, **indexes: Grouping[Row]) -> None:
        self._indexes: Mapping[str, Grouping[Row]] = indexes
        self._rows: dict[str, Row] = {}
        self._groups: dict[str, _Groups[Row]] = {name: {} for name in indexes}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def get(self, key: str) -> Row | None:
        return self._rows.get(key)

    def where(self, index: str, value: Hashable) -> tuple[Row, ...]:
        """The rows that `index` finds by this value, in no particular order."""
        return tuple(self._groups[index].get(value, {}).values())

    def one(self, index: str, value: Hashable) -> Row | None:
        """The row that a unique index finds by this value."""
        group = self._groups[index].get(value)
        return next(iter(group.values())) if group else None

    def changed(self, rows: Mapping[str, Row | None]) -> "Table[Row]":
        """The table in which each of these keys has the given row, or none."""
        draft = _Draft(self._rows, self._groups)
        for key, row in rows.items():
            draft.replace(self._indexes, key, row)
        table = Table(**self._indexes)
        table._rows, table._groups = draft.rows, draft.groups
        return table


class _Draft(Generic[Row]):
    """The maps of the table to be: outer maps copied at once, groups on the first change."""

    def __init__(self, rows: Mapping[str, Row], groups: Mapping[str, _Groups[Row]]) -> None:
        self.rows = dict(rows)
        self.groups = {index: dict(by_value) for index, by_value in groups.items()}
        self._own: set[tuple[str, Hashable]] = set()

    def replace(self, indexes: Mapping[str, Grouping[Row]], key: str, row: Row | None) -> None:
        old = self.rows.pop(key, None) if row is None else self.rows.get(key)
        for index, values_of in indexes.items():
            for value in values_of(old) if old is not None else ():
                self._remove(index, value, key)
            for value in values_of(row) if row is not None else ():
                self._group(index, value)[key] = row  # type: ignore[assignment]
        if row is not None:
            self.rows[key] = row

    def _remove(self, index: str, value: Hashable, key: str) -> None:
        group = self._group(index, value)
        group.pop(key, None)
        if not group:
            del self.groups[index][value]

    def _group(self, index: str, value: Hashable) -> dict[str, Row]:
        by_value = self.groups[index]
        if (index, value) not in self._own:
            self._own.add((index, value))
            by_value[value] = dict(by_value.get(value, ()))
        return by_value.setdefault(value, {})
