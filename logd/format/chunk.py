"""Chunks: up to 65,536 entries of consecutive sequence numbers as checksummed columns.

Row i is the entry of sequence number first + i. Head, little-endian:

    offset size
    0      4    marker FE 43 4B FF
    4      2    version, 3
    6      2    parts: n
    8      4    head size, 80 + 16 n
    12     4    chunk size, head and parts
    16     8    sequence number of the first entry
    24     4    entries
    28     4    entries a block
    32     8    earliest time, signed, ns since the epoch
    40     8    latest time
    48     16   entries of each level, 4 bytes each: DEBUG, INFO, WARN, ERROR
    64     8    bytes of the entries before encoding
    72     4    reserved, 0
    76     4    CRC-32 of bytes 0-75 and the part table
    80     16 n part table

then the parts, zstd frames, in the order of the table (`part_table.py`): first what is there once,
then block by block what each has. Kinds:

    1  times           a part a block (`time_steps.py`)
    3  levels          a part a block: planes; absent where part 27 stands for it
    4  sources         the distinct sources, separated text
    5  source codes    as part 3: positions in part 4
    6  tag lists       the distinct tag lists, JSON arrays, separated text
    7  tag codes       as part 3: positions in part 6
    8  templates       the distinct templates of the messages (`templates.py`), separated text, a
                       part a page of 1,024
    9  template codes  a part a block: planes, position among the templates
    10 var lengths     a part a block: in slot order (`variable_lengths.py`)
    11 var data        a part a block: the variables' bytes, in slot order (`slot_order.py`)
    12 metas           a part a block: JSON objects, separated text; absent where 14-17 stand for it
    13 idempotency     80 bytes a record: see `IdempotencyRecord`; absent where there is none
    14-17              metas as templates and variables, where that is smaller: what 8, 9, 10 and 11
                       are to the messages, but that part 15 is as part 3. Metas of one shape are
                       one template: each key's values lie together
    18 slot classes    a byte a slot of the templates of the messages (`slot_order.py`)
    19                 the same of the metas, where 14-17 are there
    20 values          dictionaries of variables of the messages that come again and again
                       (`coded_values.py`); absent where there is none
    21 value codes     a part a block; absent where 20 is
    22, 23             the same of the metas
    24 choices         what comes with each template of the messages: codes of the columns 3, 5, 7,
                       15, or of some of them (`choices.py`); absent where it is none
    25 slot counts     of the templates of the messages (`slot_counts.py`)
    26                 the same of the metas, where 14-17 are there
    27 row choices     a part a block: planes, which of part 24 each row has; absent where 24 is

So a row is read from parts of its block, and small ones.

Version 2 has no parts 24 to 27, one part 8 and one 14 of all templates, and of 1, 3, 5, 7, 9 and 15
one of all rows, in row order. Encoding 1 of 3, 5 and 7 there: sorted by template code instead, rows
of one template in row order.

Version 1 has no parts 18 to 23 either: all templates are plain. In its parts 10 and 16 are planes.
"""

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from logd.entry import LevelCounts, Seq
from logd.format import postings, vocabulary
from logd.format.block_variables import BlockVariables, Kept
from logd.format.body import Batch
from logd.format.checksum import crc32
from logd.format.choices import choose, encode_choices
from logd.format.coded_values import CodedClass, ValueDictionary, coded_classes
from logd.format.columns import decompress, from_planes, narrowest
from logd.format.folding import fold_utf8
from logd.format.part_table import (
    MESSAGE_PARTS,
    META_PARTS,
    ROW_BYTES,
    Part,
    PartRef,
    PartTable,
    SplitParts,
    encode_row,
)
from logd.format.separated import Numbering
from logd.format.split_column import Frame, SplitColumn, Texts, frame, frame_codes, frame_texts
from logd.format.time_steps import encode_times
from logd.format.variable_lengths import decode_class_sizes, decode_lengths
from logd.format.wal import Idempotency

MARKER: Final = b"\xfeCK\xff"
VERSION: Final = 3
_OLDEST: Final = 1
_LENGTHS_IN_PLANES: Final = 1
_WHOLE_COLUMNS: Final = 2
_HEAD: Final = struct.Struct("<4sHHIIQIIqq4IQI")
_CRC: Final = struct.Struct("<I")
HEAD_BYTES: Final = _HEAD.size + _CRC.size
assert HEAD_BYTES == 80
_RECORD: Final = struct.Struct("<16s16sQI4xq24x")
assert _RECORD.size == 80
_RECORD_COLUMNS: Final = np.dtype({
    "names": ["key_digest", "first_seq", "received_ns"],
    "formats": [(np.uint8, 16), "<i8", "<i8"],
    "offsets": [0, 32, 48],
    "itemsize": 80,
})  # fmt: skip

MAX_ENTRIES: Final = 65_536
BLOCK_ENTRIES: Final = 4096
BLOCK_BYTES: Final = 1 << 20
_FEWEST_ENTRIES: Final = 64  # more blocks than so would cost more than large ones

BY_TEMPLATE: Final = 1
_FEW_OF_ROWS: Final = 8
_WORTH_CHOOSING: Final = 2
_WORTH_SPLITTING: Final = 0.9  # metas as templates must save this much to cost the split

Int64s = npt.NDArray[np.int64]
UInts = npt.NDArray[np.unsignedinteger[Any]]
Int32s = npt.NDArray[np.int32]
Ints = npt.NDArray[np.integer[Any]]
Rows = npt.NDArray[np.integer[Any]]


class IdempotencyRecord(msgspec.Struct, frozen=True, gc=False):
    """A request that carried an Idempotency-Key, and what it stored: `count` entries from
    `first_seq` on. `received_ns`: its receipt time."""

    idempotency: Idempotency
    first_seq: Seq
    count: int
    received_ns: int


class RecordColumns(NamedTuple):
    """What leads to idempotency records, a row each, in order of sequence: uint8[n, 16], int64[n],
    int64[n]. For many of them: an object each would take ten times the room, and longer."""

    key_digests: npt.NDArray[np.uint8]
    first_seqs: Int64s
    received_ns: Int64s


class ChunkHead(msgspec.Struct, frozen=True):
    """What is known of a chunk without its columns. Times in ns; `parts` by (kind, block)."""

    version: int
    first_seq: Seq
    count: int
    block_entries: int
    min_ts_ns: int
    max_ts_ns: int
    level_counts: LevelCounts
    source_bytes: int
    head_bytes: int
    chunk_bytes: int
    parts: PartTable

    @property
    def next_seq(self) -> Seq:
        return Seq(self.first_seq + self.count)

    @property
    def blocks(self) -> int:
        return -(-self.count // self.block_entries)

    @property
    def has_whole_columns(self) -> bool:
        """Its columns of numbers are a part each, not one a block."""
        return self.version <= _WHOLE_COLUMNS


class BuiltChunk(msgspec.Struct, frozen=True):
    """A chunk ready to be appended, and what the index stores of it."""

    head: ChunkHead
    records: tuple[IdempotencyRecord, ...]
    data: bytes
    vocabulary: bytes
    postings: bytes


# ---------------------------------------------------------------- building


def build_chunk(
    batch: Batch,
    first_seq: Seq,
    records: Sequence[IdempotencyRecord] = (),
    block_entries: int = BLOCK_ENTRIES,
    block_bytes: int = BLOCK_BYTES,
) -> BuiltChunk:
    """The chunk of 1 to 65,536 entries, numbered from `first_seq` in the batch's order.

    `block_entries`: at most so many a block; fewer, where a block would hold more than
    `block_bytes` of messages or metas. Memory is needed in proportion to a block, not to the chunk,
    on top of what the chunk itself takes; a column of the batch goes when it is encoded, unless
    somebody else holds on to it.
    """
    count, source_bytes, ts, levels = batch.count, batch.size_bytes, batch.ts, batch.levels
    sources, source_codes = _dictionary(batch.sources)
    tag_lists, tag_codes = _dictionary(batch.tags)
    messages, metas = Texts(batch.messages, count), Texts(batch.metas, count)
    del batch
    while block_entries > _FEWEST_ENTRIES and block_bytes < max(
        messages.largest(block_entries), metas.largest(block_entries)
    ):
        block_entries //= 2
    spans = [(begin, min(begin + block_entries, count)) for begin in range(0, count, block_entries)]
    meta_parts, meta_codes = _meta_parts(metas, spans)
    del metas
    column, variables = _split_messages(messages, spans, block_entries)
    del messages
    codes, templates = column.codes(), column.templates()
    level_codes = np.frombuffer(levels, np.uint8)
    columns: dict[Part, Ints] = {
        Part.LEVELS: level_codes,
        Part.SOURCE_CODES: source_codes,
        Part.TAG_CODES: tag_codes,
    }
    if meta_codes is not None:
        columns[Part.META_CODES] = meta_codes
    parts = [
        _EncodedPart(Part.SOURCES, 0, 0, frame_texts(sources)),
        _EncodedPart(Part.TAG_LISTS, 0, 0, frame_texts(tag_lists)),
        *_times(ts, spans),
        *_by_block(Part.TEMPLATE_CODES, codes, spans),
        *_code_parts(columns, codes, len(templates), spans),
        *_split_parts(MESSAGE_PARTS, column),
        *meta_parts,
    ]
    if records:
        parts.append(_EncodedPart(Part.IDEMPOTENCY, 0, 0, frame(_encode_records(records))))
    parts.sort(key=_place)
    words = encode_vocabulary(
        (templates, sources, tag_lists), (codes, source_codes, tag_codes), level_codes
    )
    level_counts = np.bincount(level_codes, minlength=4).tolist()
    fixed = (first_seq, count, block_entries, int(ts.min()), int(ts.max()), *level_counts)
    head, data = _assemble((*fixed, source_bytes), parts)
    return BuiltChunk(head, tuple(records), data, words, variables)


def encode_vocabulary(
    texts: tuple[Sequence[bytes], Sequence[bytes], Sequence[bytes]],
    codes: tuple[Ints, Ints, Ints],
    levels: Ints,
) -> bytes:
    """What the index stores of a chunk's dictionaries: templates, sources and tag lists, the codes
    that refer to them and the levels, a row each."""
    templates, sources, tag_lists = texts
    return vocabulary.encode_vocabulary(
        [templates, sources, [_tag_words(text) for text in tag_lists]],
        [_level_counts(c, levels, len(t)) for c, t in zip(codes, texts, strict=True)],
    )


def encode_postings(data: bytes, lengths: Ints, rows: Ints, block_entries: int) -> bytes:
    """What the index stores of a chunk's variables: as they stand, one behind the other."""
    return postings.encode_postings(fold_utf8(data), lengths, rows, block_entries)


class _EncodedPart(msgspec.Struct, frozen=True):
    kind: Part
    encoding: int
    block: int
    frame: Frame


_Spans = Sequence[tuple[int, int]]


def _split_messages(
    messages: Texts, spans: _Spans, block_entries: int
) -> tuple[SplitColumn, bytes]:
    """The column, and its postings."""
    column, index = SplitColumn(), postings.PostingsBuilder(block_entries)
    for begin, end in spans:
        block = column.add(messages.block(begin, end))
        index.add(fold_utf8(block.data), block.lengths, block.rows + np.int32(begin))
    return column, index.encode()


def _meta_parts(metas: Texts, spans: _Spans) -> tuple[list[_EncodedPart], Int32s | None]:
    """Split or plain: the first block is tried both ways. And the templates of all rows where they
    are split."""
    column = SplitColumn()
    column.add(metas.block(*spans[0]))
    plain = frame(metas.block(*spans[0]))
    if column.stored_bytes() > _WORTH_SPLITTING * len(plain.stored):
        rest = [frame(metas.block(*span)) for span in spans[1:]]
        return _numbered(Part.METAS, [plain, *rest]), None
    for span in spans[1:]:
        column.add(metas.block(*span))
    return _split_parts(META_PARTS, column), column.codes()


def _split_parts(kinds: SplitParts, column: SplitColumn) -> list[_EncodedPart]:
    """All but the codes."""
    pages, counts, classes = column.dictionary()
    dictionaries, value_codes = column.values()
    values = [] if dictionaries is None else [_EncodedPart(kinds.values, 0, 0, dictionaries)]
    return [
        *_numbered(kinds.templates, pages),
        _EncodedPart(kinds.counts, 0, 0, counts),
        _EncodedPart(kinds.classes, 0, 0, classes),
        *values,
        *_numbered(kinds.lengths, column.lengths),
        *_numbered(kinds.value_codes, value_codes),
        *_numbered(kinds.data, column.data),
    ]


def _by_block(kind: Part, codes: Ints, spans: _Spans) -> list[_EncodedPart]:
    return _numbered(kind, [frame_codes(codes[slice(*span)]) for span in spans])


def _code_parts(
    columns: dict[Part, Ints], codes: Int32s, templates: int, spans: _Spans
) -> list[_EncodedPart]:
    """`codes`: the templates of all rows. A column with very many different codes says little about
    the rows to come, and would make all choices different."""
    most = len(codes) // _FEW_OF_ROWS + 1
    followers = {kind: column for kind, column in columns.items() if int(column.max()) < most}
    parts: list[_EncodedPart] = []
    if followers:
        chosen = choose(codes, templates, followers)
        if int(chosen.counts.sum()) <= most + len(codes) // _WORTH_CHOOSING:
            parts.append(_EncodedPart(Part.CHOICES, 0, 0, frame(*encode_choices(chosen))))
            parts += _by_block(Part.ROW_CHOICES, chosen.choices, spans)
            columns = {kind: column for kind, column in columns.items() if kind not in followers}
    for kind, column in columns.items():
        parts += _by_block(kind, column, spans)
    return parts


_ONCE: Final = frozenset({
    Part.SOURCES, Part.TAG_LISTS, Part.CHOICES, Part.IDEMPOTENCY,
    Part.TEMPLATES, Part.SLOT_COUNTS, Part.SLOT_CLASSES, Part.VALUES,
    Part.META_TEMPLATES, Part.META_SLOT_COUNTS, Part.META_SLOT_CLASSES, Part.META_VALUES,
})  # fmt: skip


def _place(part: _EncodedPart) -> tuple[bool, int]:
    """Where it is put: the parts of a block lie together, as whoever reads a row reads most."""
    return (False, 0) if part.kind in _ONCE else (True, part.block)


def _numbered(kind: Part, frames: Sequence[Frame]) -> list[_EncodedPart]:
    return [_EncodedPart(kind, 0, block, each) for block, each in enumerate(frames)]


def _dictionary(blob: bytes) -> tuple[list[bytes], Int32s]:
    """(distinct texts in order of appearance, int32[n] the code of each text)."""
    numbering = Numbering()
    codes = numbering.encode(blob).astype(np.int32)
    return list(numbering), codes


def _times(ts: Int64s, spans: _Spans) -> list[_EncodedPart]:
    return [
        _EncodedPart(Part.TIMES, encoding, block, frame(*pieces))
        for block, (encoding, pieces) in enumerate(encode_times(ts, spans))
    ]


_tags_decoder: Final = msgspec.json.Decoder(list[str])


def _tag_words(text: bytes) -> bytes:
    """The tags of a list as one text in which words of two tags do not touch."""
    return " ".join(_tags_decoder.decode(text)).encode()


def _level_counts(codes: Ints, levels: Ints, texts: int) -> Int64s:
    flat = np.bincount(levels.astype(np.int64) * texts + codes, minlength=4 * texts)
    return flat.reshape(4, texts)


def _encode_records(records: Sequence[IdempotencyRecord]) -> bytes:
    return b"".join(
        [
            _RECORD.pack(
                r.idempotency.key_digest,
                r.idempotency.request_digest,
                r.first_seq,
                r.count,
                r.received_ns,
            )
            for r in records
        ]
    )


def _assemble(fields: tuple[int, ...], parts: Sequence[_EncodedPart]) -> tuple[ChunkHead, bytes]:
    """`fields`: those of the head from the first sequence number on."""
    frames = [part.frame.stored for part in parts]
    table = b"".join(
        [
            encode_row(p.kind, p.encoding, p.block, (p.frame.raw_bytes, len(f), crc32(f)))
            for p, f in zip(parts, frames, strict=True)
        ]
    )
    fixed = _HEAD.pack(
        MARKER,
        VERSION,
        len(parts),
        HEAD_BYTES + len(table),
        HEAD_BYTES + len(table) + sum(map(len, frames)),
        *fields,
        0,
    )
    data = b"".join([fixed, _CRC.pack(crc32(table, crc32(fixed))), table, *frames])
    return decode_head(data), data


# ---------------------------------------------------------------- reading


def head_size(data: bytes) -> int:
    """Bytes of the head that begins with `data` (at least HEAD_BYTES). Raises ValueError.

    So many are read before the checksum can tell, so a damaged size must not say any number.
    """
    if len(data) < HEAD_BYTES or data[:4] != MARKER:
        raise ValueError("no chunk begins here")
    _, _, part_count, size, *_ = _HEAD.unpack_from(data)
    if size != HEAD_BYTES + part_count * ROW_BYTES:
        raise ValueError("chunk head: its size does not hold")
    return int(size)


def decode_head(data: bytes) -> ChunkHead:
    """The head at the beginning of `data`. Raises ValueError where it does not hold."""
    size = head_size(data)
    (
        _, version, _, _, chunk_bytes, first_seq, count, block_entries,
        min_ts_ns, max_ts_ns, debug, info, warn, error, source_bytes, _,
    ) = _HEAD.unpack_from(data)  # fmt: skip
    if size > len(data):
        raise ValueError("chunk head: it is cut short")
    table = data[HEAD_BYTES:size]
    crc = crc32(table, crc32(data[: _HEAD.size]))
    if crc != _CRC.unpack_from(data, _HEAD.size)[0]:
        raise ValueError("chunk head: checksum does not match")
    if not _OLDEST <= version <= VERSION:
        raise ValueError(
            f"chunk head: version {version}, this program reads {_OLDEST} to {VERSION}"
        )
    if not (1 <= count <= MAX_ENTRIES and block_entries):
        raise ValueError(f"chunk head: {count} entries, {block_entries} a block")
    parts = PartTable(table, size)
    if parts.end != chunk_bytes:
        raise ValueError("chunk head: the parts do not add up to its size")
    return ChunkHead(
        version=version,
        first_seq=Seq(first_seq),
        count=count,
        block_entries=block_entries,
        min_ts_ns=min_ts_ns,
        max_ts_ns=max_ts_ns,
        level_counts=(debug, info, warn, error),
        source_bytes=source_bytes,
        head_bytes=size,
        chunk_bytes=chunk_bytes,
        parts=parts,
    )


def decode_part(ref: PartRef, stored: bytes | memoryview) -> bytes:
    """The raw bytes of a part. Raises ValueError where its checksum does not match."""
    if len(stored) != ref.stored_bytes or crc32(stored) != ref.crc:
        raise ValueError("chunk part: checksum does not match")
    return decompress(stored, ref.raw_bytes)


LoadCodes = Callable[[Sequence[CodedClass]], Sequence[UInts]]
"""The codes of a block's variables of these classes: `decode_codes` of part 21 or 23."""


LoadKept = Callable[[int], Kept]
"""All variables but so many, which are codes: `decode_kept`."""


class StoredVariables(NamedTuple):
    """What a chunk stores of a block's variables: part 10 or 16, decompressed, and what gives the
    others where they are asked for. Where the chunk has `dictionaries` of values, `load_codes`."""

    lengths: bytes
    load_kept: LoadKept
    dictionaries: Sequence[ValueDictionary]
    load_codes: LoadCodes


def decode_kept(version: int, lengths: bytes, data: bytes, count: int) -> Kept:
    """The `count` variables that are no codes, in a chunk of this version. Raises ValueError where
    they do not hold."""
    if version <= _LENGTHS_IN_PLANES:
        width = max(1, len(lengths) // max(count, 1))
        return Kept(data, from_planes(lengths, count, narrowest(min(width, 8))))
    return Kept(data, decode_lengths(lengths, count))


def decode_variables(version: int, stored: StoredVariables) -> BlockVariables:
    """The variables of a block, in a chunk of this version. Raises ValueError or IndexError where
    they do not hold."""
    if version <= _LENGTHS_IN_PLANES:
        return BlockVariables(partial(stored.load_kept, 0))
    of, are_coded = decode_class_sizes(stored.lengths)
    classes = coded_classes(of, are_coded, stored.dictionaries)
    coded = [some for each in classes for some in each.variables()]
    load_kept = partial(stored.load_kept, sum(some.size for some in coded))
    return BlockVariables(load_kept, coded, partial(stored.load_codes, classes), of)


def decode_stored_codes(raw: bytes, count: int) -> UInts:
    """uint[count], as narrow as stored: codes in the order in which they are stored."""
    return from_planes(raw, count, narrowest(len(raw) // count))


def decode_records(raw: bytes) -> list[IdempotencyRecord]:
    """Raises ValueError where they do not fill the bytes."""
    _check_records(raw)
    return [
        IdempotencyRecord(Idempotency(key, request), Seq(first_seq), count, received_ns)
        for key, request, first_seq, count, received_ns in _RECORD.iter_unpack(raw)
    ]


def decode_record_columns(raw: bytes) -> RecordColumns:
    """Views of the bytes. Raises ValueError where records do not fill them."""
    _check_records(raw)
    rows = np.frombuffer(raw, _RECORD_COLUMNS)
    return RecordColumns(rows["key_digest"], rows["first_seq"], rows["received_ns"])


def find_record(raw: bytes, first_seq: Seq) -> IdempotencyRecord | None:
    """Of the request whose first entry has this number, if it has one. Raises ValueError where
    records do not fill the bytes."""
    found = np.flatnonzero(decode_record_columns(raw).first_seqs == first_seq)
    if not len(found):
        return None
    begin = found.item(0) * _RECORD.size
    return decode_records(raw[begin : begin + _RECORD.size])[0]


def _check_records(raw: bytes) -> None:
    if len(raw) % _RECORD.size:
        raise ValueError(f"{len(raw)} bytes of idempotency records")
