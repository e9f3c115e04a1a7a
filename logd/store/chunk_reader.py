"""Reading a chunk: columns on demand, through the cache; rows back into entries."""

from collections.abc import Callable, Hashable
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from logd.entry import LEVELS, Entry, Seq
from logd.errors import Corruption
from logd.format.chunk import (
    HEAD_BYTES,
    MESSAGE_PARTS,
    META_PARTS,
    ChunkHead,
    IdempotencyRecord,
    Part,
    PartRef,
    SplitParts,
    count_placeholders,
    decode_codes,
    decode_head,
    decode_part,
    decode_records,
    decode_times,
    head_size,
)
from logd.format.columns import from_planes
from logd.format.directory import ChunkRow
from logd.format.separated import SEPARATOR, edges
from logd.format.templates import SlotLayout, join_texts_at
from logd.store.cache import PartCache
from logd.store.files import File

Int64s = npt.NDArray[np.int64]
T = TypeVar("T")


class Texts(msgspec.Struct, frozen=True):
    """A dictionary of a chunk: its texts by code, as UTF-8."""

    items: list[bytes]


class Templates(msgspec.Struct, frozen=True):
    """Templates by code, and int64[templates]: variables of each."""

    items: list[bytes]
    slots: Int64s


class Variables(msgspec.Struct, frozen=True):
    """The variables of a block in slot order: their bytes, and where each ends."""

    data: bytes
    ends: Int64s


class ChunkReader:
    """One chunk of a segment file. All methods raise Corruption where the bytes do not hold."""

    def __init__(self, file: File, number: int, row: ChunkRow, cache: PartCache) -> None:
        """`number` tells the open file from all others of the process."""
        self.row = row
        self._file = file
        self._cache = cache
        self._key = (number, row.offset)

    @property
    def first_seq(self) -> Seq:
        return self.row.first_seq

    @property
    def count(self) -> int:
        return self.row.count

    # ------------------------------------------------------------ parts

    def head(self) -> ChunkHead:
        return self._cache.get((*self._key, "head"), self._load_head)

    def _load_head(self) -> tuple[ChunkHead, int]:
        data = self._file.read(self.row.offset, self.row.head_bytes)
        try:
            head = decode_head(data)
            if (head.first_seq, head.count) != (self.row.first_seq, self.row.count):
                raise ValueError("chunk head: not the chunk that the directory names")
        except ValueError as error:
            raise Corruption(self._file.path, self.row.offset, str(error)) from None
        return head, 200 * len(head.parts)

    def has_part(self, kind: Part) -> bool:
        return (kind, 0) in self.head().parts

    def raw_part(self, kind: Part, block: int = 0) -> tuple[PartRef, bytes]:
        """A part, read and checked, past the cache."""
        ref = self.head().parts.get((kind, block))
        if ref is None:
            reason = f"chunk head: no part {kind.name.lower()} {block}"
            raise Corruption(self._file.path, self.row.offset, reason)
        offset = self.row.offset + ref.offset
        try:
            return ref, decode_part(ref, self._file.read(offset, ref.stored_bytes))
        except ValueError as error:
            raise Corruption(self._file.path, offset, str(error)) from None

    def corrupt(self, kind: Part, error: ValueError) -> Corruption:
        reason = f"part {kind.name.lower()}: {error}"
        return Corruption(self._file.path, self.row.offset, reason)

    def times(self) -> Int64s:
        """int64[count], ns."""

        def load() -> tuple[Int64s, int]:
            ref, raw = self.raw_part(Part.TIMES)
            try:
                times = decode_times(ref, raw, self.head())
            except ValueError as error:
                raise self.corrupt(Part.TIMES, error) from None
            return times, times.nbytes

        return self._cache.get((*self._key, Part.TIMES), load)

    def time_order(self) -> Int64s | None:
        """int64[count]: the rows by (time, sequence number); None where that is their order."""

        def load() -> tuple[Int64s | None, int]:
            times = self.times()
            if not np.any(times[1:] < times[:-1]):
                return None, 0
            order = np.argsort(times, kind="stable")
            return order, order.nbytes

        return self._cache.get((*self._key, "order"), load)

    def levels(self) -> Int64s:
        return self.codes(Part.LEVELS)

    def template_codes(self) -> Int64s:
        return self.codes(Part.TEMPLATE_CODES)

    def source_codes(self) -> Int64s:
        return self.codes(Part.SOURCE_CODES)

    def tag_codes(self) -> Int64s:
        return self.codes(Part.TAG_CODES)

    def codes(self, kind: Part) -> Int64s:
        """int64[count]: a column of codes, a row each."""

        def load() -> tuple[Int64s, int]:
            ref, raw = self.raw_part(kind)
            try:
                codes = decode_codes(ref, raw, self.count, self._by_template)
            except ValueError as error:
                raise self.corrupt(kind, error) from None
            return codes, codes.nbytes

        return self._cache.get((*self._key, kind), load)

    def _by_template(self) -> Int64s:
        return np.argsort(self.template_codes().astype(np.uint16), kind="stable")

    def sources(self) -> Texts:
        return self._texts(Part.SOURCES)

    def tag_lists(self) -> Texts:
        return self._texts(Part.TAG_LISTS)

    def _texts(self, kind: Part) -> Texts:
        def load() -> tuple[Texts, int]:
            _, raw = self.raw_part(kind)
            items = raw.split(SEPARATOR)
            return Texts(items), len(raw) + 60 * len(items)

        return self._cache.get((*self._key, kind), load)

    def messages_column(self) -> "SplitColumn":
        """The messages as templates and variables."""
        return SplitColumn(self, MESSAGE_PARTS)

    def metas_column(self) -> "SplitColumn | None":
        """The metas as templates and variables; None where they are kept as they are."""
        return SplitColumn(self, META_PARTS) if self.has_part(Part.META_TEMPLATES) else None

    def cached(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T:
        """A value of this chunk, through the cache."""
        return self._cache.get((*self._key, key), load)

    def plain_metas(self, block: int) -> tuple[bytes, Int64s]:
        """(separated metas of the block's rows, their edges)."""

        def load() -> tuple[tuple[bytes, Int64s], int]:
            _, raw = self.raw_part(Part.METAS, block)
            rows = self.block_rows(block)
            try:
                at = edges(raw, rows.stop - rows.start)
            except ValueError as error:
                raise self.corrupt(Part.METAS, error) from None
            return (raw, at), len(raw) + at.nbytes

        return self.cached((Part.METAS, block), load)

    def idempotency_records(self) -> list[IdempotencyRecord]:
        if not self.has_part(Part.IDEMPOTENCY):
            return []
        return decode_records(self.raw_part(Part.IDEMPOTENCY)[1])

    # ------------------------------------------------------------ blocks and rows

    def blocks(self) -> int:
        return -(-self.count // self.head().block_entries)

    def block_rows(self, block: int) -> slice:
        size = self.head().block_entries
        return slice(block * size, min((block + 1) * size, self.count))

    def messages(self, rows: Int64s) -> list[bytes]:
        """The messages of rows (ascending), as UTF-8."""
        return self.messages_column().texts(rows)

    def per_block(self, rows: Int64s) -> list[tuple[int, Int64s]]:
        """(block, rows within it) of ascending rows."""
        size = self.head().block_entries
        blocks = rows // size
        return [(int(b), rows[blocks == b] - int(b) * size) for b in np.unique(blocks)]

    def meta_texts(self, rows: Int64s) -> list[bytes]:
        """The metas of rows (ascending), JSON objects."""
        column = self.metas_column()
        if column is not None:
            return column.texts(rows)
        out: list[bytes] = []
        for block, within in self.per_block(rows):
            raw, at = self.plain_metas(block)
            starts, stops = at[within].tolist(), (at[within + 1] - 1).tolist()
            out += [raw[start:stop] for start, stop in zip(starts, stops, strict=True)]
        return out

    def entries(self, rows: Int64s) -> list[Entry]:
        """The entries of rows (ascending)."""
        sources, tag_lists = self.sources().items, self.tag_lists().items
        columns = zip(
            (rows + self.first_seq).tolist(),
            self.times()[rows].tolist(),
            self.levels()[rows].tolist(),
            self.messages(rows),
            self.source_codes()[rows].tolist(),
            self.tag_codes()[rows].tolist(),
            self.meta_texts(rows),
            strict=True,
        )
        try:
            return [
                Entry(
                    seq=Seq(seq),
                    ts_ns=ts_ns,
                    level=LEVELS[level],
                    message=message.decode(),
                    source=sources[source].decode(),
                    tags=tag_lists[tags],
                    meta=meta,
                )
                for seq, ts_ns, level, message, source, tags, meta in columns
            ]
        except (IndexError, UnicodeDecodeError) as error:
            reason = f"its columns do not fit together: {error}"
            raise Corruption(self._file.path, self.row.offset, reason) from None


class SplitColumn:
    """A column of texts that is kept as templates and variables."""

    def __init__(self, reader: ChunkReader, kinds: SplitParts) -> None:
        self._reader = reader
        self._kinds = kinds

    def templates(self) -> Templates:
        def load() -> tuple[Templates, int]:
            _, raw = self._reader.raw_part(self._kinds.templates)
            items = raw.split(SEPARATOR)
            return Templates(items, count_placeholders(items)), len(raw) + 70 * len(items)

        return self._reader.cached(self._kinds.templates, load)

    def codes(self) -> Int64s:
        """int64[count]: the template of each row."""
        return self._reader.codes(self._kinds.codes)

    def layout(self, block: int) -> SlotLayout:
        def load() -> tuple[SlotLayout, int]:
            codes = self.codes()[self._reader.block_rows(block)]
            slots = self.templates().slots
            try:
                return SlotLayout(codes, slots), 16 * len(codes) + 16 * len(slots)
            except (IndexError, ValueError) as error:
                raise self._reader.corrupt(self._kinds.codes, ValueError(error)) from None

        return self._reader.cached((self._kinds.codes, "layout", block), load)

    def variables(self, block: int) -> Variables:
        def load() -> tuple[Variables, int]:
            _, data = self._reader.raw_part(self._kinds.data, block)
            _, raw = self._reader.raw_part(self._kinds.lengths, block)
            try:
                lengths = from_planes(raw, self.layout(block).variables, np.uint32)
                ends = np.cumsum(lengths.astype(np.int64))
                if (int(ends[-1]) if len(ends) else 0) != len(data):
                    raise ValueError("the lengths do not add up to the data")
            except ValueError as error:
                raise self._reader.corrupt(self._kinds.lengths, error) from None
            return Variables(data, ends), len(data) + ends.nbytes

        return self._reader.cached((self._kinds.data, block), load)

    def texts(self, rows: Int64s) -> list[bytes]:
        """The texts of rows (ascending)."""
        out: list[bytes] = []
        templates = self.templates()
        for block, within in self._reader.per_block(rows):
            layout = self.layout(block)
            variables = self.variables(block)
            texts = [templates.items[code] for code in layout.codes[within].tolist()]
            out += join_texts_at(
                within, layout, texts, templates.slots, variables.data, variables.ends
            )
        return out


def read_head(file: File, offset: int) -> ChunkHead:
    """The head of the chunk at `offset`. Raises ValueError where none begins."""
    return decode_head(file.read(offset, head_size(file.read(offset, HEAD_BYTES))))
