"""From places in slot order back to template, slot and entry, against the layout's way there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.format.slot_rows import SlotRows
from logd.format.templates import SlotLayout


@given(st.data())
def test_it_is_the_inverse_of_the_layout(data: st.DataObject) -> None:
    slots = np.array(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=6)), np.int64)
    kinds = st.integers(0, len(slots) - 1)
    codes = np.array(data.draw(st.lists(kinds, min_size=1, max_size=12)), np.uint8)
    layout = SlotLayout(codes, slots)
    expected = {}
    for row, code in enumerate(codes.tolist()):
        for slot in range(slots[code]):
            (place,) = layout.positions(np.array([row]), np.array([slot])).tolist()
            expected[place] = (row, code, slot)
    assert sorted(expected) == list(range(layout.variables))
    where = SlotRows(codes, slots)
    every = list(expected)
    for some in (every, every[::2], every[-4:], every[-5:], *[[place] for place in every], []):
        places = where.locate(np.array(some, np.int64))
        found = zip(places.rows.tolist(), places.codes.tolist(), places.slots.tolist(), strict=True)
        assert list(found) == [expected[place] for place in some]


@given(st.data())
def test_stretches_are_the_places_of_slots_and_lead_to_the_next(data: st.DataObject) -> None:
    slots = np.array(data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=12)), np.int64)
    kinds = st.integers(0, len(slots) - 1)
    codes = np.array(data.draw(st.lists(kinds, min_size=1, max_size=12)), np.uint8)
    every = [(code, slot) for code, count in enumerate(slots.tolist()) for slot in range(count)]
    asked = [pair for pair in every if data.draw(st.booleans())]
    where = SlotRows(codes, slots)
    numbers = np.array(asked, np.int64).reshape(-1, 2)
    places, steps, rows = where.stretches(numbers[:, 0], numbers[:, 1])
    found = where.locate(places)
    wanted = [
        (row, code, slot) for code, slot in asked for row in np.flatnonzero(codes == code).tolist()
    ]
    located = zip(found.rows.tolist(), found.codes.tolist(), found.slots.tolist(), strict=True)
    assert list(located) == wanted
    assert rows.tolist() == [row for row, _, _ in wanted]
    assert places.tolist() == sorted(places.tolist())
    more = np.array([slot + 1 < slots[code] for _, code, slot in wanted], np.bool_)
    behind = where.locate((places + steps)[more])
    assert behind.rows.tolist() == found.rows[more].tolist()
    assert behind.slots.tolist() == (found.slots[more] + 1).tolist()


def test_a_code_without_a_template_is_noticed() -> None:
    with pytest.raises(IndexError):
        SlotRows(np.array([0, 2], np.uint8), np.array([1, 1], np.int64))
