"""A chunk back into rows, through the public functions of the format alone."""

import numpy as np
import numpy.typing as npt
from format_samples import Row

from logd.format.chunk import (
    IdempotencyRecord,
    Part,
    count_placeholders,
    decode_codes,
    decode_head,
    decode_part,
    decode_records,
    decode_times,
)
from logd.format.columns import from_planes
from logd.format.separated import SEPARATOR, edges
from logd.format.templates import SlotLayout, join_texts_at

Int64s = npt.NDArray[np.int64]


class DecodedChunk:
    """Everything that a chunk holds. Raises ValueError where a check fails."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.head = decode_head(data)
        self.raw = {key: self._part(*key) for key in self.head.parts}
        self.templates = self.raw[Part.TEMPLATES, 0].split(SEPARATOR)
        self.template_codes = self._codes(Part.TEMPLATE_CODES)
        self.rows = self._rows()
        self.records = self._records()

    def encoding(self, kind: Part) -> int:
        return self.head.parts[kind, 0].encoding

    def _part(self, kind: int, block: int) -> bytes:
        ref = self.head.parts[kind, block]
        return decode_part(ref, self._data[ref.offset : ref.offset + ref.stored_bytes])

    def _codes(self, kind: Part) -> Int64s:
        ref, raw = self.head.parts[kind, 0], self.raw[kind, 0]
        return decode_codes(ref, raw, self.head.count, self._by_template)

    def _by_template(self) -> Int64s:
        return np.argsort(self.template_codes, kind="stable")

    def _rows(self) -> list[Row]:
        head = self.head
        times = decode_times(head.parts[Part.TIMES, 0], self.raw[Part.TIMES, 0], head)
        sources = self.raw[Part.SOURCES, 0].split(SEPARATOR)
        tag_lists = self.raw[Part.TAG_LISTS, 0].split(SEPARATOR)
        blocks = [(start, self._block(index, start)) for index, start in self._starts()]
        texts = [pair for _, block in blocks for pair in block]
        return [
            Row(ts_ns, level, message.decode(), sources[source].decode(), tag_lists[tags], meta)
            for ts_ns, level, (message, meta), source, tags in zip(
                times.tolist(),
                self._codes(Part.LEVELS).tolist(),
                texts,
                self._codes(Part.SOURCE_CODES).tolist(),
                self._codes(Part.TAG_CODES).tolist(),
                strict=True,
            )
        ]

    def _starts(self) -> list[tuple[int, int]]:
        return list(enumerate(range(0, self.head.count, self.head.block_entries)))

    def _block(self, index: int, start: int) -> list[tuple[bytes, bytes]]:
        """(message, meta) of each row of a block."""
        codes = self.template_codes[start : start + self.head.block_entries]
        slots = count_placeholders(self.templates)
        layout = SlotLayout(codes, slots)
        lengths = from_planes(self.raw[Part.VAR_LENGTHS, index], layout.variables, np.uint32)
        messages = join_texts_at(
            np.arange(len(codes)),
            layout,
            [self.templates[code] for code in codes],
            slots,
            self.raw[Part.VAR_DATA, index],
            np.cumsum(lengths.astype(np.int64)),
        )
        metas = self.raw[Part.METAS, index]
        at = edges(metas, len(codes)).tolist()
        return [
            (message, metas[begin : end - 1])
            for message, begin, end in zip(messages, at, at[1:], strict=False)
        ]

    def _records(self) -> list[IdempotencyRecord]:
        raw = self.raw.get((Part.IDEMPOTENCY, 0))
        return [] if raw is None else decode_records(raw)
