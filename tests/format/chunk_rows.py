"""A chunk back into rows, through the public functions of the format alone."""

import itertools
from functools import partial

import numpy as np
import numpy.typing as npt
from format_samples import Row

from logd.format.block_variables import Kept
from logd.format.choices import decode_choices
from logd.format.chunk import (
    BY_TEMPLATE,
    ChunkHead,
    IdempotencyRecord,
    StoredVariables,
    decode_head,
    decode_kept,
    decode_part,
    decode_records,
    decode_stored_codes,
    decode_variables,
)
from logd.format.coded_values import decode_codes, decode_dictionaries
from logd.format.columns import from_planes
from logd.format.entry_places import EntryPlaces
from logd.format.part_table import MESSAGE_PARTS, META_PARTS, Part, PartRef, SplitParts
from logd.format.separated import SEPARATOR, edges
from logd.format.slot_counts import decode_slot_counts
from logd.format.slot_order import ClassedSlots
from logd.format.templates import PLACEHOLDER, joined_texts
from logd.format.time_steps import ZIGZAG, time_unit

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]


_PAGE = 1024


def decode_time_units(ref: PartRef, raw: bytes, count: int) -> UInt64s:
    """uint64[count], in row order: units of time since the chunk's earliest, of planes alone."""
    steps = from_planes(raw, count, np.uint64)
    if ref.encoding >= ZIGZAG:
        steps = (steps >> np.uint64(1)) ^ (np.uint64(0) - (steps & np.uint64(1)))
    return np.cumsum(steps, dtype=np.uint64)


def decode_block_units(ref: PartRef, raw: bytes, count: int) -> UInt64s:
    """The same of a block, which says where it begins."""
    begin = np.uint64(int.from_bytes(raw[:8], "little"))
    return decode_time_units(ref, raw[8:], count) + begin


def times_of(ref: PartRef, units: UInt64s, head: ChunkHead) -> Int64s:
    """int64[count], ns since the epoch."""
    base = np.uint64(head.min_ts_ns & 0xFFFFFFFFFFFFFFFF)
    return (units * np.uint64(time_unit(ref)) + base).view(np.int64)


class DecodedChunk:
    """Everything that a chunk holds. Raises ValueError where a check fails."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.head = decode_head(data)
        self.raw = {key: self._part(*key) for key in self.head.parts}
        self.templates = self._templates(MESSAGE_PARTS)
        self.template_codes = self._codes(Part.TEMPLATE_CODES)
        self.rows = self._rows()
        self.records = self._records()

    def encoding(self, kind: Part, block: int = 0) -> int:
        return self.head.parts[kind, block].encoding

    def of_blocks(self, kind: Part) -> list[bytes]:
        """What each block has of a kind."""
        return [self.raw[kind, index] for index in range(len(self._blocks()))]

    def stored_codes(self, kind: Part) -> list[list[int]]:
        """The numbers that each block has in a column: codes of templates, or choices."""
        return [
            decode_stored_codes(raw, block.stop - block.start).tolist()
            for raw, block in zip(self.of_blocks(kind), self._blocks(), strict=True)
        ]

    def _part(self, kind: int, block: int) -> bytes:
        ref = self.head.parts[kind, block]
        return decode_part(ref, self._data[ref.offset : ref.offset + ref.stored_bytes])

    def _codes(self, kind: Part) -> Int64s:
        if self.head.has_whole_columns:
            return self._whole_codes(kind)
        choices = decode_choices(self.raw[Part.CHOICES, 0]) if self._chooses else None
        if choices is None or kind not in choices.codes:
            return self._concatenated(kind)
        assert (kind, 0) not in self.raw
        places = choices.places(self.template_codes, self._concatenated(Part.ROW_CHOICES))
        return choices.codes[kind].take(places).astype(np.int64)

    @property
    def _chooses(self) -> bool:
        assert ((Part.CHOICES, 0) in self.raw) == ((Part.ROW_CHOICES, 0) in self.raw)
        return (Part.CHOICES, 0) in self.raw

    def _concatenated(self, kind: Part) -> Int64s:
        return np.array(list(itertools.chain(*self.stored_codes(kind))), np.int64)

    def _whole_codes(self, kind: Part) -> Int64s:
        ref, raw = self.head.parts[kind, 0], self.raw[kind, 0]
        codes = decode_stored_codes(raw, self.head.count).astype(np.int64)
        if ref.encoding != BY_TEMPLATE:
            return codes
        out = np.empty_like(codes)
        out[self._by_template()] = codes
        return out

    def _by_template(self) -> Int64s:
        return np.argsort(self.template_codes, kind="stable")

    def _times(self) -> Int64s:
        head = self.head
        if head.has_whole_columns:
            ref, raw = head.parts[Part.TIMES, 0], self.raw[Part.TIMES, 0]
            return times_of(ref, decode_time_units(ref, raw, head.count), head)
        out = []
        for index, block in enumerate(self._blocks()):
            ref, raw = head.parts[Part.TIMES, index], self.raw[Part.TIMES, index]
            units = decode_block_units(ref, raw, block.stop - block.start)
            out.append(times_of(ref, units, head))
        return np.concatenate(out)

    def _rows(self) -> list[Row]:
        sources = self.raw[Part.SOURCES, 0].split(SEPARATOR)
        tag_lists = self.raw[Part.TAG_LISTS, 0].split(SEPARATOR)
        return [
            Row(ts_ns, level, message.decode(), sources[source].decode(), tag_lists[tags], meta)
            for ts_ns, level, message, source, tags, meta in zip(
                self._times().tolist(),
                self._codes(Part.LEVELS).tolist(),
                self._split_texts(MESSAGE_PARTS),
                self._codes(Part.SOURCE_CODES).tolist(),
                self._codes(Part.TAG_CODES).tolist(),
                self._metas(),
                strict=True,
            )
        ]

    def _blocks(self) -> list[slice]:
        size, count = self.head.block_entries, self.head.count
        return [slice(start, min(start + size, count)) for start in range(0, count, size)]

    def _metas(self) -> list[bytes]:
        if (META_PARTS.templates, 0) in self.raw:
            assert (Part.METAS, 0) not in self.raw
            return self._split_texts(META_PARTS)
        out = []
        for index, block in enumerate(self._blocks()):
            raw = self.raw[Part.METAS, index]
            at = edges(raw, block.stop - block.start).tolist()
            out += [raw[begin : end - 1] for begin, end in itertools.pairwise(at)]
        return out

    def _templates(self, kinds: SplitParts) -> list[bytes]:
        numbers = sorted(number for kind, number in self.raw if kind == kinds.templates)
        pages = [self.raw[kinds.templates, number].split(SEPARATOR) for number in numbers]
        assert numbers == list(range(len(pages)))
        if self.head.has_whole_columns:
            assert len(pages) == 1
        else:
            assert {len(page) for page in pages[:-1]} <= {_PAGE}
            assert 1 <= len(pages[-1]) <= _PAGE
        return list(itertools.chain(*pages))

    def _check_slot_counts(self, kinds: SplitParts, slots: Int64s, codes: Int64s) -> None:
        """What they say could be worked out from the templates and codes."""
        raw = self.raw.get((kinds.counts, 0))
        assert (raw is None) == self.head.has_whole_columns
        if raw is None:
            return
        stored = decode_slot_counts(raw, self.head.blocks)
        assert stored.slots.tolist() == slots.tolist()
        _, first_rows = np.unique(codes, return_index=True)
        blocks = [row // self.head.block_entries for row in first_rows.tolist()]
        assert [stored.first_block(code) for code in range(len(slots))] == blocks

    def _split_texts(self, kinds: SplitParts) -> list[bytes]:
        """The texts of all rows, of a column that is kept as templates and variables."""
        templates = self._templates(kinds)
        slots = np.array([text.count(PLACEHOLDER) for text in templates], np.int64)
        classes = self.raw.get((kinds.classes, 0), b"")
        assert bool(classes) <= (self.head.version > 1)
        values = self.raw.get((kinds.values, 0))
        dictionaries = [] if values is None else decode_dictionaries(values)
        codes = self._codes(kinds.codes)
        self._check_slot_counts(kinds, slots, codes)
        classed = ClassedSlots(slots, np.frombuffer(classes, np.uint8))
        out = []
        for index, block in enumerate(self._blocks()):
            entries = EntryPlaces(codes[block], classed)
            stored = StoredVariables(
                self.raw[kinds.lengths, index],
                partial(self._kept, kinds, index, int(slots[codes[block]].sum())),
                dictionaries,
                partial(decode_codes, self.raw.get((kinds.value_codes, index), b"")),
            )
            variables = decode_variables(self.head.version, stored)
            places = [entries.positions_of(row) for row in range(len(entries.codes))]
            out += joined_texts(
                [templates[code] for code in entries.codes],
                list(map(len, places)),
                variables.texts(list(itertools.chain.from_iterable(places))),
            )
        return out

    def _kept(self, kinds: SplitParts, block: int, count: int, coded: int) -> Kept:
        lengths, data = self.raw[kinds.lengths, block], self.raw[kinds.data, block]
        return decode_kept(self.head.version, lengths, data, count - coded)

    def _records(self) -> list[IdempotencyRecord]:
        raw = self.raw.get((Part.IDEMPOTENCY, 0))
        return [] if raw is None else decode_records(raw)
