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
    BY_TEMPLATE,
    HEAD_BYTES,
    MESSAGE_PARTS,
    META_PARTS,
    ChunkHead,
    IdempotencyRecord,
    Part,
    PartRef,
    decode_head,
    decode_part,
    decode_records,
    decode_stored_codes,
    head_size,
)
from logd.format.directory import ChunkRow
from logd.format.separated import SEPARATOR, edges
from logd.format.time_steps import TimeSteps, decode_time_steps
from logd.store.at_hand import CacheAlone, FileAway
from logd.store.cache import Cache
from logd.store.chunk_values import Texts, Times
from logd.store.files import ReadableFile
from logd.store.page import Check
from logd.store.split_column import SplitColumn

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.integer[Any]]

FEW_ROWS: Final = 8
"""Of a chunk: for so many no column is put in order, and their entries are remembered one by one;
those of more as a page."""
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
        stored = self._read(offset, ref.stored_bytes)
        try:
            return ref, decode_part(ref, stored)
        except ValueError as error:
            raise Corruption(self._file.path, offset, str(error)) from None

    def _read(self, offset: int, size: int) -> bytes:
        """Raises Unreadable: where a disk fails at one place, the rest of the log is there."""
        try:
            return self._file.read(offset, size)
        except OSError as error:
            raise Unreadable(self._file.path, offset, error) from error

    def corrupt(self, kind: Part, error: ValueError) -> Corruption:
        reason = f"part {kind.name.lower()}: {error}"
        return Corruption(self._file.path, self.row.offset, reason)

    def times(self) -> Times:
        def load() -> tuple[Times, int]:
            steps = self._time_steps()
            units = steps.units()
            if int(units.max()) < 1 << 32:
                units = units.astype(np.uint32)
            return Times(steps.earliest_ns, steps.unit_ns, units), units.nbytes

        return self.cached(Part.TIMES, load)

    def _time_steps(self) -> TimeSteps:
        def load() -> tuple[TimeSteps, int]:
            ref, raw = self.raw_part(Part.TIMES)
            try:
                steps = decode_time_steps(ref, raw, self.count, self.head().min_ts_ns)
            except ValueError as error:
                raise self.corrupt(Part.TIMES, error) from None
            return steps, steps.size_bytes

        return self._cache.get((*self._key, "time steps"), load)

    def times_at(self, rows: Rows) -> Int64s:
        """int64[rows], ns: the times of ascending rows."""
        if not 0 < len(rows) <= FEW_ROWS or self.cached_already(Part.TIMES) is not None:
            return self.times().at(rows)
        return self._time_steps().at(rows)

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
        grouped, stored = self._stored_codes(kind)
        if not grouped:
            return stored

        def load() -> tuple[Rows, int]:
            codes = np.empty_like(stored)
            codes[self._by_template()] = stored
            return codes, codes.nbytes

        return self._cache.get((*self._key, kind, "rows"), load)

    def _stored_codes(self, kind: Part) -> tuple[bool, Rows]:
        """A column in the order in which it is stored; true: rows sorted by template."""

        def load() -> tuple[tuple[bool, Rows], int]:
            ref, raw = self.raw_part(kind)
            try:
                codes = decode_stored_codes(raw, self.count)
            except ValueError as error:
                raise self.corrupt(kind, error) from None
            return (ref.encoding == BY_TEMPLATE, codes), codes.nbytes

        return self._cache.get((*self._key, kind), load)

    def _by_template(self) -> Rows:
        """uint16[count]: the rows sorted by template code."""

        def load() -> tuple[Rows, int]:
            order = np.argsort(self.template_codes().astype(np.uint16), kind="stable")
            return order.astype(np.uint16), 2 * self.count

        return self._cache.get((*self._key, "by template"), load)

    def _codes_at(self, kinds: Sequence[Part], rows: Int64s) -> list[list[int]]:
        """Of each column the codes of rows. For a few rows whole columns are not put in order."""
        if len(rows) > FEW_ROWS:
            return [self.codes(kind)[rows].tolist() for kind in kinds]
        stored = list(map(self._stored_codes, kinds))
        numbers = rows.tolist()
        grouped_at = self._places(numbers) if any(grouped for grouped, _ in stored) else []
        return [
            [codes.item(at) for at in (grouped_at if grouped else numbers)]
            for grouped, codes in stored
        ]

    def _places(self, rows: list[int]) -> list[int]:
        """Where each of the rows stands in a column that is sorted by template code."""
        templates = self.template_codes()
        places = []
        for row in rows:
            code = templates.item(row)
            before = np.count_nonzero(templates[:row] == code)
            places.append(int(np.count_nonzero(templates < code)) + int(before))
        return places

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

    def idempotency_records(self) -> list[IdempotencyRecord]:
        if not self.has_part(Part.IDEMPOTENCY):
            return []
        _, raw = self.raw_part(Part.IDEMPOTENCY)
        try:
            return decode_records(raw)
        except ValueError as error:
            raise self.corrupt(Part.IDEMPOTENCY, error) from None

    # ------------------------------------------------------------ blocks and rows

    @property
    def _block_size(self) -> int:
        """Rows of a block. Asked for several times a row, so it is not looked up each time."""
        if not self._block_entries:
            self._block_entries = self.head().block_entries
        return self._block_entries

    def blocks(self) -> int:
        return -(-self.count // self._block_size)

    def block_rows(self, block: int) -> slice:
        size = self._block_size
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
        size = self._block_size
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
        coded = (Part.LEVELS, Part.SOURCE_CODES, Part.TAG_CODES)
        levels, source_codes, tag_codes = self._codes_at(coded, rows)
        check()
        times = self.times_at(rows).tolist()
        check()
        messages = self._messages_of_page(rows)
        check()
        metas = self.meta_texts(rows)
        check()
        seqs = (rows + self.first_seq).tolist()
        columns = zip(seqs, times, levels, messages, source_codes, tag_codes, metas, strict=True)
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
