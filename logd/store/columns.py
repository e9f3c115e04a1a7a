"""The columns of a chunk that have a number a row: times, levels, and codes into dictionaries.

Chunks of version 3 have them block by block, older ones whole: see `chunk.py`.
"""

from typing import Any, Final, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from logd.format.ascending import distinct
from logd.format.choices import NO_CHOICES, Choices, decode_choices
from logd.format.chunk import BY_TEMPLATE, decode_stored_codes
from logd.format.part_table import Part, PartRef
from logd.format.time_steps import TimeSteps, decode_block_times, decode_time_steps
from logd.store.chunk_parts import ChunkParts
from logd.store.chunk_values import Times

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.integer[Any]]

FEW_ROWS: Final = 8
"""Of a chunk: for so many no column is put in order."""
FEW_BLOCKS: Final = 4
"""Of a chunk: for rows in more of them columns are read whole."""

_OF_ENTRIES: Final = (Part.LEVELS, Part.SOURCE_CODES, Part.TAG_CODES)
_CODES: Final = (Part.ROW_CHOICES, *_OF_ENTRIES, Part.META_CODES)


class Numbers(NamedTuple):
    """Of rows: the times in ns, the levels, the codes of sources and of tag lists."""

    times: list[int]
    levels: list[int]
    sources: list[int]
    tags: list[int]


class Columns(Protocol):
    """All methods raise Corruption where the bytes do not hold."""

    def times(self) -> Times: ...

    def times_at(self, rows: Rows) -> Int64s:
        """int64[rows], ns: the times of rows, in any order."""

    def codes(self, kind: Part) -> Rows:
        """uint[count]: a column of codes, a row each."""

    def codes_of(self, kind: Part, block: int) -> Rows:
        """uint[rows of the block]: the same of a block."""

    def numbers_at(self, rows: Int64s) -> Numbers:
        """Of ascending rows."""

    def read_ahead(self) -> None:
        """What it takes for any row, besides what the rows of its block share."""


class WholeColumns:
    """Of versions 1 and 2: each column is a part."""

    def __init__(self, chunk: ChunkParts) -> None:
        self._chunk = chunk

    def times(self) -> Times:
        def load() -> tuple[Times, int]:
            steps = self._time_steps()
            return _times(steps, steps.units())

        return self._chunk.cached(Part.TIMES, load)

    def _time_steps(self) -> TimeSteps:
        def load() -> tuple[TimeSteps, int]:
            ref, raw = self._chunk.raw_part(Part.TIMES)
            try:
                count, earliest_ns = self._chunk.count, self._chunk.head().min_ts_ns
                steps = decode_time_steps(ref, raw, count, earliest_ns)
            except ValueError as error:
                raise self._chunk.corrupt(Part.TIMES, error) from None
            return steps, steps.size_bytes

        return self._chunk.cached("time steps", load)

    def times_at(self, rows: Rows) -> Int64s:
        if not 0 < len(rows) <= FEW_ROWS or self._chunk.cached_already(Part.TIMES) is not None:
            return self.times().at(rows)
        return self._time_steps().at(rows)

    def codes(self, kind: Part) -> Rows:
        grouped, stored = self._stored_codes(kind)
        if not grouped:
            return stored

        def load() -> tuple[Rows, int]:
            codes = np.empty_like(stored)
            codes[self._by_template()] = stored
            return codes, codes.nbytes

        return self._chunk.cached((kind, "rows"), load)

    def codes_of(self, kind: Part, block: int) -> Rows:
        return self.codes(kind)[self._chunk.block_rows(block)]

    def _stored_codes(self, kind: Part) -> tuple[bool, Rows]:
        """A column in the order in which it is stored; true: rows sorted by template."""

        def load() -> tuple[tuple[bool, Rows], int]:
            ref, raw = self._chunk.raw_part(kind)
            try:
                codes = decode_stored_codes(raw, self._chunk.count)
            except ValueError as error:
                raise self._chunk.corrupt(kind, error) from None
            return (ref.encoding == BY_TEMPLATE, codes), codes.nbytes

        return self._chunk.cached(kind, load)

    def _by_template(self) -> Rows:
        """uint16[count]: the rows sorted by template code."""

        def load() -> tuple[Rows, int]:
            templates = self.codes(Part.TEMPLATE_CODES)
            order = np.argsort(templates.astype(np.uint16), kind="stable")
            return order.astype(np.uint16), 2 * self._chunk.count

        return self._chunk.cached("by template", load)

    def numbers_at(self, rows: Int64s) -> Numbers:
        """For a few rows whole columns are not put in order."""
        if len(rows) > FEW_ROWS:
            codes = [self.codes(kind)[rows].tolist() for kind in _OF_ENTRIES]
        else:
            stored = list(map(self._stored_codes, _OF_ENTRIES))
            numbers = rows.tolist()
            grouped_at = self._places(numbers) if any(grouped for grouped, _ in stored) else []
            codes = [
                [codes.item(at) for at in (grouped_at if grouped else numbers)]
                for grouped, codes in stored
            ]
        return Numbers(self.times_at(rows).tolist(), *codes)

    def _places(self, rows: list[int]) -> list[int]:
        """Where each of the rows stands in a column that is sorted by template code."""
        templates = self.codes(Part.TEMPLATE_CODES)
        places = []
        for row in rows:
            code = templates.item(row)
            before = np.count_nonzero(templates[:row] == code)
            places.append(int(np.count_nonzero(templates < code)) + int(before))
        return places

    def read_ahead(self) -> None:
        """There is nothing: all rows share the columns."""


class _Block(NamedTuple):
    """The columns of a block: the templates of its rows, where among the codes of `Choices` theirs
    are, and the columns that do not follow from the templates."""

    times: TimeSteps
    templates: Rows
    places: Rows
    others: dict[Part, Rows]


class BlockColumns:
    """From version 3 on: of each column a part a block. For a few rows only the blocks that they
    are in are read."""

    def __init__(self, chunk: ChunkParts) -> None:
        self._chunk = chunk
        self._size = chunk.block_size

    def times(self) -> Times:
        def load() -> tuple[Times, int]:
            steps = [self._decode_times(*self._chunk.raw_part(Part.TIMES, block), block)
                     for block in range(self._blocks)]  # fmt: skip
            return _times(steps[0], np.concatenate([some.units() for some in steps]))

        return self._chunk.cached(Part.TIMES, load)

    def times_at(self, rows: Rows) -> Int64s:
        per_block = self._few_blocks(rows)
        if per_block is None:
            return self.times().at(rows)
        if len(rows) > FEW_ROWS and self._chunk.cached_already(Part.TIMES) is not None:
            return self.times().at(rows)
        out = np.empty(len(rows), np.int64)
        for block, at, within in per_block:
            out[at] = self._block(block).times.at(within)
        return out

    def codes(self, kind: Part) -> Rows:
        def load() -> tuple[Rows, int]:
            of_choices = self._choices().codes.get(kind)
            codes = (
                self._whole(kind)
                if of_choices is None
                else self._taken(kind, of_choices, self._places())
            )
            return codes, codes.nbytes

        return self._chunk.cached((kind, "rows"), load)

    def _whole(self, kind: Part) -> Rows:
        stored = [
            self._decode(kind, self._chunk.raw_part(kind, block)[1], block)
            for block in range(self._blocks)
        ]
        return stored[0] if len(stored) == 1 else np.concatenate(stored)

    def _places(self) -> Rows:
        """uint[count]: where among the codes of `Choices` those of each row are."""

        def load() -> tuple[Rows, int]:
            templates = self.codes(Part.TEMPLATE_CODES)
            places = self._chosen(templates, self._whole(Part.ROW_CHOICES))
            return places, places.nbytes

        return self._chunk.cached(Part.ROW_CHOICES, load)

    def _chosen(self, templates: Rows, choices: Rows) -> Rows:
        try:
            return self._choices().places(templates, choices)
        except IndexError as error:
            raise self._chunk.corrupt(Part.TEMPLATE_CODES, error) from None

    def _taken(self, kind: Part, codes: Rows, places: Rows) -> Rows:
        try:
            return codes.take(places)
        except IndexError as error:
            raise self._chunk.corrupt(kind, error) from None

    def codes_of(self, kind: Part, block: int) -> Rows:
        whole = self._chunk.cached_already((kind, "rows"))
        if whole is not None:
            return cast(Rows, whole)[self._chunk.block_rows(block)]
        of_block = self._block(block)
        if kind is Part.TEMPLATE_CODES:
            return of_block.templates
        of_choices = self._choices().codes.get(kind)
        if of_choices is None:
            return of_block.others[kind]
        return self._taken(kind, of_choices, of_block.places)

    def numbers_at(self, rows: Int64s) -> Numbers:
        per_block = self._few_blocks(rows)
        if per_block is None:
            codes = [self.codes(kind)[rows].tolist() for kind in _OF_ENTRIES]
            return Numbers(self.times().at(rows).tolist(), *codes)
        found = Numbers([], [], [], [])
        choices = self._choices().codes
        for block, _, within in per_block:
            of_block, numbers = self._block(block), within.tolist()
            found.times.extend(of_block.times.at(within).tolist())
            places = of_block.places.take(within) if choices else within
            for kind, column in zip(_OF_ENTRIES, found[1:], strict=True):
                of_choices = choices.get(kind)
                if of_choices is None:
                    column += map(of_block.others[kind].item, numbers)
                else:
                    column += self._taken(kind, of_choices, places).tolist()
        return found

    def read_ahead(self) -> None:
        self._choices()

    @property
    def _blocks(self) -> int:
        return self._chunk.head().blocks

    def _few_blocks(self, rows: Rows) -> list[tuple[int, slice | Rows, Rows]] | None:
        """(block, which of the rows are in it, these within the block), by block; None where many
        blocks have some."""
        if len(rows) == 1:
            block, within = divmod(rows.item(), self._size)
            return [(block, slice(1), np.array([within]))]
        blocks = rows // self._size
        few = distinct(blocks).tolist()
        if not 0 < len(few) <= FEW_BLOCKS:
            return None
        found: list[tuple[int, slice | Rows, Rows]] = []
        for block in few:
            at = np.flatnonzero(blocks == block)
            found.append((block, at, rows.take(at) - block * self._size))
        return found

    def _block(self, block: int) -> _Block:
        def load() -> tuple[_Block, int]:
            choices = self._choices()
            kinds = [kind for kind in _CODES if self._chunk.has_part(kind)]
            stored = self._chunk.raw_parts([Part.TIMES, Part.TEMPLATE_CODES, *kinds], block)
            times = self._decode_times(*stored[0], block)
            templates = self._decode(Part.TEMPLATE_CODES, stored[1][1], block)
            columns = {
                kind: self._decode(kind, raw, block)
                for kind, (_, raw) in zip(kinds, stored[2:], strict=True)
            }
            places = templates
            if choices.codes:
                places = self._chosen(templates, columns.pop(Part.ROW_CHOICES))
            size = times.size_bytes + templates.nbytes + places.nbytes
            size += sum(some.nbytes for some in columns.values())
            return _Block(times, templates, places, columns), size

        return self._chunk.cached(("columns", block), load)

    def _decode(self, kind: Part, raw: bytes, block: int) -> Rows:
        try:
            return decode_stored_codes(raw, self._rows_of(block))
        except ValueError as error:
            raise self._chunk.corrupt(kind, error) from None

    def _decode_times(self, ref: PartRef, raw: bytes, block: int) -> TimeSteps:
        try:
            earliest_ns = self._chunk.head().min_ts_ns
            return decode_block_times(ref, raw, self._rows_of(block), earliest_ns)
        except ValueError as error:
            raise self._chunk.corrupt(Part.TIMES, error) from None

    def _rows_of(self, block: int) -> int:
        rows = self._chunk.block_rows(block)
        return int(rows.stop - rows.start)

    def _choices(self) -> Choices:
        def load() -> tuple[Choices, int]:
            if not self._chunk.has_part(Part.CHOICES):
                return NO_CHOICES, 0
            _, raw = self._chunk.raw_part(Part.CHOICES)
            try:
                choices = decode_choices(raw)
            except ValueError as error:
                raise self._chunk.corrupt(Part.CHOICES, error) from None
            return choices, choices.size_bytes

        return self._chunk.cached(Part.CHOICES, load)


def _times(steps: TimeSteps, units: npt.NDArray[np.uint64]) -> tuple[Times, int]:
    """`steps`: those of the column, or of one of its blocks."""
    narrow: npt.NDArray[np.unsignedinteger[Any]] = units
    if int(units.max()) < 1 << 32:
        narrow = units.astype(np.uint32)
    return Times(steps.earliest_ns, steps.unit_ns, narrow), narrow.nbytes
