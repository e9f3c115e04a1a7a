"""A column of texts that is kept as templates and variables: what is decoded of it, on demand."""

from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from typing import Any, Final, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from logd.format.ascending import distinct
from logd.format.block_variables import BlockVariables, Kept
from logd.format.chunk import ChunkHead, StoredVariables, decode_kept, decode_variables
from logd.format.coded_values import (
    CodedClass,
    ValueDictionary,
    decode_codes,
    decode_dictionaries,
)
from logd.format.entry_places import EntryPlaces
from logd.format.part_table import Part, SplitParts
from logd.format.slot_layout import Places, SlotLayout
from logd.format.slot_order import ClassedSlots, SlotOrder
from logd.format.templates import joined_texts
from logd.store.chunk_parts import ChunkParts
from logd.store.columns import FEW_BLOCKS
from logd.store.stored_templates import PagedTemplates, StoredTemplates, WholeTemplates

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.integer[Any]]
UInts = npt.NDArray[np.unsignedinteger[Any]]

_FEW_ROWS: Final = 8
_FEW_PLACES: Final = 16
_LARGE_BYTES: Final = 64 << 10

T = TypeVar("T")


class Parts(ChunkParts, Protocol):
    """The chunk whose column it is."""

    def codes(self, kind: Part) -> Rows: ...
    def codes_of(self, kind: Part, block: int) -> Rows: ...
    def per_block(self, rows: Int64s) -> list[tuple[int, Int64s]]: ...


class SplitColumn:
    """A column of texts that is kept as templates and variables."""

    def __init__(self, reader: Parts, kinds: SplitParts, *, scan: bool) -> None:
        self._reader = reader
        self._kinds = kinds
        self._scan = scan
        self._block = -1
        self._of_this_block: dict[Hashable, object] = {}
        self._laid_out: tuple[int, SlotLayout] | None = None
        self._placed: tuple[int, EntryPlaces] | None = None
        self._templates: StoredTemplates | None = None
        self._known_head: ChunkHead | None = None
        self._codes: Rows | None = None
        self._block_codes: tuple[int, Rows] | None = None
        self._slot_order: SlotOrder | None = None
        self._slots: ClassedSlots | None = None
        self._known_values: list[ValueDictionary] | None = None

    @property
    def _head(self) -> ChunkHead:
        """Asked for several times a row, so it is not looked up each time."""
        if self._known_head is None:
            self._known_head = self._reader.head()
        return self._known_head

    def _of_block(
        self, key: Hashable, block: int, load: Callable[[], tuple[T, int]], *, few: bool = False
    ) -> T:
        """`few`: for a few rows, seldom followed by others of the block. What would be kept costs
        memory that no cache holds, and that is dearer than to load it once more."""
        if block != self._block:
            self._block, self._of_this_block = block, {}
        found = self._of_this_block.get(key)
        if found is None:
            if self._scan:
                found = self._reader.cached_already((key, block))
                found = load()[0] if found is None else found
            else:
                cached = self._reader.cached_passing if few else self._reader.cached
                found = cached((key, block), load)
            self._of_this_block[key] = found
        return cast(T, found)  # a key always stands for one type

    @property
    def templates(self) -> StoredTemplates:
        if self._templates is None:
            kind = WholeTemplates if self._head.has_whole_columns else PagedTemplates
            self._templates = kind(self._reader, self._kinds)
        return self._templates

    def codes(self) -> Rows:
        """uint[count]: the template of each row."""
        if self._codes is None:
            self._codes = self._reader.codes(self._kinds.codes)
        return self._codes

    def _codes_of(self, block: int) -> Rows:
        """uint[rows of the block]: the template of each."""
        if self._codes is not None:
            return self._codes[self._reader.block_rows(block)]
        if self._block_codes is None or self._block_codes[0] != block:
            self._block_codes = block, self._reader.codes_of(self._kinds.codes, block)
        return self._block_codes[1]

    def _classes(self) -> Bytes:
        """uint8[k]: those of the slots of the first templates."""

        def load() -> tuple[Bytes, int]:
            if not self._reader.has_part(self._kinds.classes):
                return np.zeros(0, np.uint8), 0
            _, raw = self._reader.raw_part(self._kinds.classes)
            return np.frombuffer(raw, np.uint8), len(raw)

        return self._reader.cached(self._kinds.classes, load)

    def _order(self) -> SlotOrder:
        def load() -> tuple[SlotOrder, int]:
            try:
                order = SlotOrder(
                    self.templates.slots().astype(np.int64, copy=False), self._classes()
                )
            except ValueError as error:
                raise self._reader.corrupt(self._kinds.classes, error) from None
            return order, order.size_bytes

        if self._slot_order is None:
            self._slot_order = self._reader.cached(("slot order", self._kinds.classes), load)
        return self._slot_order

    def layout(self, block: int) -> SlotLayout:
        """Where the block's variables lie, and what rows they belong to. It takes more memory than
        time, so it is not kept beyond the block."""
        if self._laid_out is None or self._laid_out[0] != block:
            codes, of = self._codes_of(block), self.variables(block, few=True).of
            try:
                sizes = None if of is None else self._order().sizes_by_class(of.classes, of.sizes)
                self._laid_out = block, SlotLayout(codes, self._order(), sizes)
            except (IndexError, ValueError) as error:
                raise self._reader.corrupt(self._kinds.codes, ValueError(error)) from None
        return self._laid_out[1]

    def _entry_places(self, block: int) -> EntryPlaces:
        """The same, for a few rows."""
        if self._placed is None or self._placed[0] != block:
            of = self.variables(block, few=True).of
            self._placed = block, EntryPlaces(self._codes_of(block), self._classed_slots(), of)
        return self._placed[1]

    def _classed_slots(self) -> ClassedSlots:
        def load() -> tuple[ClassedSlots, int]:
            slots = ClassedSlots(self.templates.slots(), self._classes())
            return slots, slots.size_bytes

        if self._slots is None:
            self._slots = self._reader.cached(("classed slots", self._kinds.classes), load)
        return self._slots

    def rows_of_variables(self, block: int, places: Int64s) -> Int64s:
        """The block's rows that the variables at these places belong to, ascending."""
        if len(places) > _FEW_ROWS:
            return distinct(self.layout(block).rows_at(places))
        try:
            entries = self._entry_places(block)
            return np.array(sorted({entries.row_at(place) for place in places.tolist()}), np.int64)
        except (IndexError, ValueError) as error:
            raise self._reader.corrupt(self._kinds.codes, ValueError(error)) from None

    def locate(self, block: int, places: Int64s) -> Places:
        """What the variables at these places of the block are."""
        if len(places) > _FEW_PLACES:
            return self.layout(block).locate(places)
        try:
            entries = self._entry_places(block)
            found = np.array([entries.locate(place) for place in places.tolist()], np.int64)
        except (IndexError, ValueError) as error:
            raise self._reader.corrupt(self._kinds.codes, ValueError(error)) from None
        return Places(*found.reshape(-1, 3).T)

    def class_of(self, code: int, number: int) -> int | None:
        """Of a template's slot; None of a plain one."""
        return self._classed_slots().class_of(code, number)

    def variables(self, block: int, *, few: bool = False) -> BlockVariables:
        """Of a block, in slot order. `few`: to read a few rows. A scan reads those in the data, and
        the codes, when they are asked for: often it asks for one of the two."""

        def load() -> tuple[BlockVariables, int]:
            stored = self._stored_for_scan(block) if self._scan else self._stored(block)
            try:
                found = decode_variables(self._head.version, stored)
            except (IndexError, ValueError) as error:
                raise self._reader.corrupt(self._kinds.lengths, ValueError(error)) from None
            if self._scan:
                return found, 0
            _ = found.kept, found.codes  # what is kept must not hold on to the reader, and its file
            return found, found.size_bytes

        return self._of_block(self._kinds.data, block, load, few=few)

    def _stored_for_scan(self, block: int) -> StoredVariables:
        kinds, reader = self._kinds, self._reader
        _, lengths = reader.raw_part(kinds.lengths, block)

        def load_kept(coded: int) -> Kept:
            return self._decoded_kept(block, lengths, reader.raw_part(kinds.data, block)[1], coded)

        def load_codes(classes: Sequence[CodedClass]) -> Sequence[UInts]:
            return self._decoded_codes(reader.raw_part(kinds.value_codes, block)[1], classes)

        return StoredVariables(lengths, load_kept, self._dictionaries(), load_codes)

    def _stored(self, block: int) -> StoredVariables:
        """All that it takes is read at once."""
        kinds, reader, dictionaries = self._kinds, self._reader, self._dictionaries()
        wanted, codes = [kinds.lengths, kinds.data], b""
        if dictionaries:
            wanted.append(kinds.value_codes)
        if self._head.has_whole_columns:  # they do not lie together
            parts = [reader.raw_part(kind, block)[1] for kind in wanted]
        else:
            parts = [raw for _, raw in reader.raw_parts(wanted, block)]
        lengths, data = parts[:2]
        if dictionaries:
            codes = parts[2]
        return StoredVariables(
            lengths,
            lambda coded: self._decoded_kept(block, lengths, data, coded),
            dictionaries,
            lambda classes: self._decoded_codes(codes, classes),
        )

    def _decoded_kept(self, block: int, lengths: bytes, data: bytes, coded: int) -> Kept:
        try:
            slots = self.templates.slots().take(self._codes_of(block))
            count = int(np.add.reduce(slots, dtype=np.int64)) - coded
            return decode_kept(self._head.version, lengths, data, count)
        except (IndexError, ValueError) as error:
            raise self._reader.corrupt(self._kinds.lengths, ValueError(error)) from None

    def _decoded_codes(self, raw: bytes, classes: Sequence[CodedClass]) -> Sequence[UInts]:
        try:
            return decode_codes(raw, classes)
        except (IndexError, ValueError) as error:
            raise self._reader.corrupt(self._kinds.value_codes, ValueError(error)) from None

    def _dictionaries(self) -> list[ValueDictionary]:
        """Of values; none where the chunk has none."""
        kind, reader = self._kinds.values, self._reader

        def load() -> tuple[list[ValueDictionary], int]:
            if not reader.has_part(kind):
                return [], 0
            _, raw = reader.raw_part(kind)
            try:
                found = decode_dictionaries(raw)
            except ValueError as error:
                raise reader.corrupt(kind, error) from None
            return found, sum(some.size_bytes for some in found)

        if self._known_values is None:  # a search remembers what it found among them
            self._known_values = reader.cached(kind, load)
        return self._known_values

    def read_ahead(self) -> None:
        """What it takes to find the variables of any row, but for what is large."""
        self._classed_slots()
        values = self._head.parts.get((self._kinds.values, 0))
        if values is not None and values.raw_bytes <= _LARGE_BYTES:
            self._dictionaries()

    def texts(self, rows: Int64s) -> list[bytes]:
        """The texts of rows (ascending)."""
        out: list[bytes] = []
        per_block = self._reader.per_block(rows)
        if len(per_block) > FEW_BLOCKS:
            self.codes()
        for block, within in per_block:
            few = len(within) <= _FEW_ROWS
            out += self._few_texts(block, within) if few else self._many_texts(block, within)
        return out

    def _many_texts(self, block: int, within: Int64s) -> list[bytes]:
        stored, layout = self.variables(block), self.layout(block)
        counts = layout.variables_of(within)
        entry = np.repeat(np.arange(len(within)), counts)
        numbers = np.arange(len(entry)) - (np.cumsum(counts) - counts).take(entry)
        places = layout.positions(within[entry], numbers)
        data, lengths = stored.joined()
        edges = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=edges[1:])
        begins, ends = edges.take(places).tolist(), edges[1:].take(places).tolist()
        variables = [data[begin:end] for begin, end in zip(begins, ends, strict=True)]
        templates = self.templates.whole().texts(layout.codes[within].astype(np.int64))
        return joined_texts(templates, counts.tolist(), variables)

    def _few_texts(self, block: int, within: Int64s) -> list[bytes]:
        """Without working out where every variable of the block lies."""
        rows = within.tolist()
        try:
            entries = self._entry_places(block)
            places = [entries.positions_of(row) for row in rows]
            variables = self.variables(block, few=True).texts(list(chain.from_iterable(places)))
            texts = self.templates.few([entries.codes.item(row) for row in rows])
            return joined_texts(texts, list(map(len, places)), variables)
        except (IndexError, ValueError) as error:
            raise self._reader.corrupt(self._kinds.lengths, ValueError(error)) from None
