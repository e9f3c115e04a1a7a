"""Reading a chunk: columns on demand, through the cache; rows back into entries."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar, cast

import numpy as np
import numpy.typing as npt

from logd.entry import LEVELS, Entry, Seq
from logd.errors import Corruption, Unreadable
from logd.format.ascending import distinct
from logd.format.chunk import (
    HEAD_BYTES,
    ChunkHead,
    IdempotencyRecord,
    RecordColumns,
    decode_head,
    decode_part,
    decode_record_columns,
    decode_records,
    find_record,
    head_size,
)
from logd.format.directory import ChunkRow
from logd.format.part_table import MESSAGE_PARTS, META_PARTS, Part, PartRef
from logd.format.separated import SEPARATOR, edges
from logd.store.at_hand import CacheAlone, FileAway
from logd.store.cache import Cache
from logd.store.chunk_values import Texts, Times
from logd.store.columns import FEW_ROWS, BlockColumns, Columns, WholeColumns
from logd.store.files import ReadableFile
from logd.store.page import Check
from logd.store.split_column import SplitColumn

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.integer[Any]]

_PAGE_ROWS: Final = 256

T = TypeVar("T")


def _go_on() -> None:
    """There is no end to this work but its own."""


class ChunkReader:
    """One chunk of a segment file. All methods raise Corruption where the bytes do not hold, or
    cannot be read."""

    def __init__(self, file: ReadableFile, number: int, row: ChunkRow, cache: Cache) -> None:
        """`number` tells the open file from all others of the process."""
        self.row = row
        self._file = file
        self._cache = cache
        self._key = (number, row.offset)
        self._block_entries = 0  # not known yet
        self._has_whole_columns: bool | None = None

    def at_hand(self, check: Check) -> "ChunkReader":
        """The same chunk, of which only what is cached can be asked: NotAtHand is raised where that
        does not suffice."""
        cache = CacheAlone(self._cache, check)
        return ChunkReader(FileAway(self._file.path), self.number, self.row, cache)

    @property
    def number(self) -> int:
        """Of the open file."""
        return self._key[0]

    @property
    def descriptor(self) -> int | None:
        """Of the open file, for another process."""
        return self._file.descriptor()

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
        data = self._read(self.row.offset, self.row.head_bytes)
        try:
            head = decode_head(data)
            if (head.first_seq, head.count) != (self.row.first_seq, self.row.count):
                raise ValueError("chunk head: not the chunk that the directory names")
        except ValueError as error:
            raise Corruption(self._file.path, self.row.offset, str(error)) from None
        return head, head.parts.size_bytes

    def has_part(self, kind: Part) -> bool:
        return (kind, 0) in self.head().parts

    def raw_part(self, kind: Part, block: int = 0) -> tuple[PartRef, bytes]:
        """A part, read and checked, past the cache."""
        ref = self._ref(kind, block)
        return ref, self._decoded(ref, self._read(self.row.offset + ref.offset, ref.stored_bytes))

    def _ref(self, kind: Part, block: int) -> PartRef:
        ref = self.head().parts.get((kind, block))
        if ref is None:
            reason = f"chunk head: no part {kind.name.lower()} {block}"
            raise Corruption(self._file.path, self.row.offset, reason)
        return ref

    def _decoded(self, ref: PartRef, stored: bytes | memoryview) -> bytes:
        try:
            return decode_part(ref, stored)
        except ValueError as error:
            offset = self.row.offset + ref.offset
            raise Corruption(self._file.path, offset, str(error)) from None

    def _read(self, offset: int, size: int) -> bytes:
        """Raises Unreadable: where a disk fails at one place, the rest of the log is there."""
        try:
            return self._file.read(offset, size)
        except OSError as error:
            raise Unreadable(self._file.path, offset, error) from error

    def corrupt(self, kind: Part, error: Exception) -> Corruption:
        reason = f"part {kind.name.lower()}: {error}"
        return Corruption(self._file.path, self.row.offset, reason)

    def raw_parts(self, kinds: Sequence[Part], block: int) -> list[tuple[PartRef, bytes]]:
        """Parts of a block that lie one behind the other, read at once."""
        parts = self.head().parts
        refs = [parts.get((kind, block)) or self._ref(kind, block) for kind in kinds]
        begin = min([ref.offset for ref in refs])
        size = max([ref.offset + ref.stored_bytes for ref in refs]) - begin
        stored = memoryview(self._read(self.row.offset + begin, size))
        return [
            (ref, self._decoded(ref, stored[ref.offset - begin :][: ref.stored_bytes]))
            for ref in refs
        ]

    # ------------------------------------------------------------ columns of numbers

    @property
    def _columns(self) -> Columns:
        """Made each time: if it were kept, neither would go before the garbage is looked for."""
        if self._has_whole_columns is None:
            self._has_whole_columns = self.head().has_whole_columns
        return WholeColumns(self) if self._has_whole_columns else BlockColumns(self)

    def times(self) -> Times:
        return self._columns.times()

    def times_at(self, rows: Rows) -> Int64s:
        """int64[rows], ns: the times of ascending rows."""
        return self._columns.times_at(rows)

    def time_order(self) -> Rows | None:
        """uint16[count]: the rows by (time, sequence number); None where that is their order."""

        def load() -> tuple[Rows | None, int]:
            units = self.times().units
            if not np.any(units[1:] < units[:-1]):
                return None, 0
            order = np.argsort(units, kind="stable").astype(np.uint16)
            return order, order.nbytes

        return self._cache.get((*self._key, "order"), load)

    def levels(self) -> Rows:
        return self.codes(Part.LEVELS)

    def template_codes(self) -> Rows:
        return self.codes(Part.TEMPLATE_CODES)

    def source_codes(self) -> Rows:
        return self.codes(Part.SOURCE_CODES)

    def tag_codes(self) -> Rows:
        return self.codes(Part.TAG_CODES)

    def codes(self, kind: Part) -> Rows:
        """uint[count]: a column of codes, a row each."""
        return self._columns.codes(kind)

    def codes_of(self, kind: Part, block: int) -> Rows:
        """uint[rows of the block]: the same of a block."""
        return self._columns.codes_of(kind, block)

    def row_of_template(self, code: int) -> int | None:
        """The row of a template that only one row has; None where that takes the whole column."""
        if self.cached_already((Part.TEMPLATE_CODES, "rows")) is not None:
            return None
        block = self.messages_column().templates.first_block(code)
        if block is None:
            return None
        if block >= self.blocks():
            raise self.corrupt(Part.SLOT_COUNTS, IndexError(f"no template {code}"))
        found = np.flatnonzero(self.codes_of(Part.TEMPLATE_CODES, block) == code)
        return self.block_rows(block).start + found.item(0) if len(found) == 1 else None

    # ------------------------------------------------------------ texts

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

    def messages_column(self, *, scan: bool = False) -> SplitColumn:
        """The messages as templates and variables. `scan`: to read block after block; they are not
        put into the cache, where they would push out what the next query needs."""
        return SplitColumn(self, MESSAGE_PARTS, scan=scan)

    def metas_column(self, *, scan: bool = False) -> SplitColumn | None:
        """The metas as templates and variables; None where they are kept as they are."""
        if not self.has_part(Part.META_TEMPLATES):
            return None
        return SplitColumn(self, META_PARTS, scan=scan)

    def cached(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T:
        """A value of this chunk, through the cache."""
        return self._cache.get((*self._key, key), load)

    def cached_passing(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T:
        """The same, of a value that is seldom asked for again."""
        return self._cache.get_passing((*self._key, key), load)

    def cached_already(self, key: Hashable) -> object | None:
        """A value of this chunk if it is cached."""
        return self._cache.peek((*self._key, key))

    def cached_already_each(self, keys: Iterable[Hashable]) -> list[object | None]:
        """The same of several, looked for together."""
        return self._cache.peek_each([(*self._key, key) for key in keys])

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

    # ------------------------------------------------------------ idempotency records

    def idempotency_records(self) -> list[IdempotencyRecord]:
        return self._of_records(decode_records, self._raw_records())

    def idempotency_columns(self) -> RecordColumns:
        """What leads to them."""
        return self._of_records(decode_record_columns, self._raw_records())

    def idempotency_record(self, first_seq: Seq) -> IdempotencyRecord | None:
        """Of the request whose first entry has this number. Retries often ask for several of a
        chunk: from the second time on its records are remembered."""

        def load() -> tuple[bytes, int]:
            raw = self._raw_records()
            return raw, len(raw)

        raw = self.cached_passing((Part.IDEMPOTENCY, 0), load)
        return self._of_records(lambda raw: find_record(raw, first_seq), raw)

    def _raw_records(self) -> bytes:
        return self.raw_part(Part.IDEMPOTENCY)[1] if self.has_part(Part.IDEMPOTENCY) else b""

    def _of_records(self, decode: Callable[[bytes], T], raw: bytes) -> T:
        try:
            return decode(raw)
        except ValueError as error:
            raise self.corrupt(Part.IDEMPOTENCY, error) from None

    # ------------------------------------------------------------ all of it

    def read_ahead(self) -> None:
        """Put into the cache what it takes to read any row, but for what is large, and what the
        rows of a block share."""
        self._columns.read_ahead()
        self.sources()
        self.tag_lists()
        for column in (self.messages_column(), self.metas_column()):
            if column is not None:
                column.read_ahead()

    # ------------------------------------------------------------ blocks and rows

    @property
    def block_size(self) -> int:
        """Rows of a block, but for the last one. Asked for several times a row, so it is not looked
        up each time."""
        if not self._block_entries:
            self._block_entries = self.head().block_entries
        return self._block_entries

    def blocks(self) -> int:
        return self.head().blocks

    def block_rows(self, block: int) -> slice:
        size = self.block_size
        return slice(block * size, min((block + 1) * size, self.count))

    def messages(self, rows: Int64s) -> list[bytes]:
        """The messages of rows (ascending), as UTF-8. A single one is remembered: the row that is
        read to see whether it matches is read again for the page."""
        column = self.messages_column()
        if len(rows) != 1:
            return column.texts(rows)

        def load() -> tuple[bytes, int]:
            return _sized_text(*column.texts(rows))

        return [self.cached(("message", int(rows[0])), load)]

    def remember_messages(self, rows: Int64s, column: SplitColumn) -> None:
        """Of a few rows (ascending) that the page will likely want; `column`: the messages', with
        the rows' block at hand."""
        for row, text in zip(rows.tolist(), column.texts(rows), strict=True):
            self.cached(("message", row), partial(_sized_text, text))

    def _messages_of_page(self, rows: Int64s) -> list[bytes]:
        """Those of rows; what is not remembered need not be, as the entries are."""
        if len(rows) <= FEW_ROWS:
            known = self.cached_already_each([("message", row) for row in rows.tolist()])
            if None not in known:
                return cast(list[bytes], known)
        return self.messages_column().texts(rows)

    def per_block(self, rows: Int64s) -> list[tuple[int, Int64s]]:
        """(block, rows within it) of ascending rows."""
        size = self.block_size
        if len(rows):
            block = rows.item(0) // size
            if rows.item(-1) // size == block:
                return [(block, rows - block * size)]
        blocks = rows // size
        return [(int(b), rows[blocks == b] - int(b) * size) for b in distinct(blocks)]

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

    def entry_key(self, row: int) -> Hashable:
        """Of the remembered entry of a row."""
        return (*self._key, ("entry", row))

    def entries_already(self, keys: Iterable[Hashable]) -> list[Entry] | None:
        """Entries of this chunk and of others, if all are remembered: to look for them together is
        as quick as to look for those of one chunk."""
        found = self._cache.peek_each(keys)
        return None if None in found else cast(list[Entry], found)

    def entries(self, rows: Int64s, check: Check = _go_on) -> list[Entry]:
        """The entries of rows (ascending). Those of a page are remembered: the newest are asked for
        again and again, and to read one row costs nearly as much as to read its whole block.
        `check()` is called between slices of work and raises to end it."""
        if len(rows) > _PAGE_ROWS:
            return self._read_entries(rows, check)
        if len(rows) <= FEW_ROWS:
            return self._remembered_entries(rows, check)

        def load() -> tuple[list[Entry], int]:
            entries = self._remembered_entries(rows, check)
            return entries, rows.nbytes + sum(map(_entry_bytes, entries))

        return self.cached_passing(("entries", rows.tobytes()), load)

    def _remembered_entries(self, rows: Int64s, check: Check) -> list[Entry]:
        """One by one: the next page may hold some of them."""
        numbers = rows.tolist()
        found = self._cache.peek_each(map(self.entry_key, numbers))
        if None in found:
            missing = [row for row, entry in zip(numbers, found, strict=True) if entry is None]
            entries = self._read_entries(np.array(missing, np.int64), check)
            read = dict(zip(missing, entries, strict=True))
            found = [
                entry or self._cache.get(self.entry_key(row), partial(_sized, read[row]))
                for row, entry in zip(numbers, found, strict=True)
            ]
        return cast(list[Entry], found)

    def _read_entries(self, rows: Int64s, check: Check) -> list[Entry]:
        sources, tag_lists = self.sources().items, self.tag_lists().items
        numbers = self._columns.numbers_at(rows)
        check()
        messages = self._messages_of_page(rows)
        check()
        metas = self.meta_texts(rows)
        check()
        seqs = (rows + self.first_seq).tolist()
        columns = zip(seqs, messages, metas, *numbers, strict=True)
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
                for seq, message, meta, ts_ns, level, source, tags in columns
            ]
        except (IndexError, UnicodeDecodeError) as error:
            reason = f"its columns do not fit together: {error}"
            raise Corruption(self._file.path, self.row.offset, reason) from None


def _sized_text(text: bytes) -> tuple[bytes, int]:
    return text, len(text)


def _sized(entry: Entry) -> tuple[Entry, int]:
    return entry, _entry_bytes(entry)


def _entry_bytes(entry: Entry) -> int:
    """Memory that it takes, about."""
    texts = len(entry.message) + len(entry.source)  # a character takes up to four bytes
    return 500 + 4 * texts + len(entry.tags) + len(entry.meta)


def read_head(file: ReadableFile, offset: int) -> ChunkHead:
    """The head of the chunk at `offset`. Raises ValueError where none begins."""
    return decode_head(file.read(offset, head_size(file.read(offset, HEAD_BYTES))))
