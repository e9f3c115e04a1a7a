"""Texts, split into templates and variables."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from logd.format.entry_places import EntryPlaces
from logd.format.separated import join_texts
from logd.format.slot_layout import SlotLayout
from logd.format.slot_order import ClassedSlots
from logd.format.templates import TemplateCodes, VariableBlock, split_block


class Split(NamedTuple):
    """`known`: the templates of all blocks that were split with them so far."""

    block: VariableBlock
    known: TemplateCodes

    @property
    def templates(self) -> list[bytes]:
        return self.known.texts()

    @property
    def layout(self) -> SlotLayout:
        return SlotLayout(self.block.codes.astype(np.uint16), self.known.order())

    def places_of(self, rows: Iterable[int]) -> list[list[int]]:
        """Of each row the places of its variables."""
        order = self.known.order()
        classes = np.zeros(len(order.slots_in_order), np.uint8)
        classes[order.slots_in_order] = np.repeat(order.class_codes, np.diff(order.class_edges))
        codes = self.block.codes.astype(np.uint16)
        entries = EntryPlaces(codes, ClassedSlots(order.slots, classes), self.block.of)
        return [entries.positions_of(row) for row in rows]

    def templates_of(self, rows: list[int]) -> list[bytes]:
        texts = self.templates
        return [texts[code] for code in self.block.codes[rows].tolist()]

    def variables(self) -> list[str]:
        """In slot order."""
        ends = np.cumsum(self.block.lengths).tolist()
        return [
            self.block.data[end - length : end].decode()
            for end, length in zip(ends, self.block.lengths.tolist(), strict=True)
        ]


def split(texts: list[str], codes: TemplateCodes | None = None) -> Split:
    known = TemplateCodes() if codes is None else codes
    return Split(split_block(join_texts(texts), known), known)
