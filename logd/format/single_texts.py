"""A few texts of a block that is kept as templates and variables (`templates.py`), without working
out where all variables of the block lie."""

from collections.abc import Sequence

import numpy as np

from logd.format.running_sums import STRETCH
from logd.format.slot_layout import SlotLayout
from logd.format.templates import PLACEHOLDER
from logd.format.variable_lengths import Lengths


def join_few_texts(
    rows: Sequence[int],
    layout: SlotLayout,
    templates: Sequence[bytes],
    data: bytes,
    lengths: Lengths,
) -> list[bytes]:
    """The texts of the entries `rows` of a block.

    `templates[i]`: that of rows[i]; `data` and `lengths`: the block's variables, in slot order.
    Raises ValueError or IndexError where these do not fit together.
    """
    if layout.variables != len(lengths.items):
        raise ValueError("the lengths are not those of the templates' variables")
    if len(data) != lengths.before[-1]:
        raise ValueError("the lengths do not add up to the data")
    out = []
    for row, template in zip(rows, templates, strict=True):
        places = layout.positions_of(row)
        pieces = [b""] * (2 * len(places) + 1)
        pieces[::2] = template.split(PLACEHOLDER)
        if places:
            pieces[1::2] = _variables(data, lengths, places)
        out.append(b"".join(pieces))
    return out


def _variables(data: bytes, lengths: Lengths, places: Sequence[int]) -> list[bytes]:
    """The variables at these places."""
    items, before = lengths.items, lengths.before
    out = []
    for place in places:
        stretch = place // STRETCH
        begin = before[stretch]
        begin += int(np.add.reduce(items[stretch * STRETCH : place], dtype=np.uint32))
        out.append(data[begin : begin + items.item(place)])
    return out
