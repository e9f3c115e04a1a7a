"""Building a column of texts that is kept as templates and variables, block by block.

What a block holds is compressed as soon as it is known: of a chunk's texts only one block at a time
stands there in full.
"""

import itertools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from logd.format.block_variables import Variables
from logd.format.coded_values import ValueCoder
from logd.format.columns import compress, compress_texts, to_planes
from logd.format.separated import SEPARATOR, edges
from logd.format.slot_counts import encode_slot_counts
from logd.format.templates import TemplateCodes, VariableBlock, split_block
from logd.format.variable_lengths import encode_lengths

PAGE_TEMPLATES: Final = 1024
"""Templates of a page: whoever wants one decompresses some hundred others."""

Int32s = npt.NDArray[np.int32]
Ints = npt.NDArray[np.integer[Any]]


class Frame(NamedTuple):
    """Bytes, compressed, and how many they were."""

    raw_bytes: int
    stored: bytes


def frame(*pieces: bytes) -> Frame:
    """Of pieces that differ in their bytes, see `compress`."""
    return Frame(sum(map(len, pieces)), compress(*pieces))


def frame_texts(texts: Sequence[bytes]) -> Frame:
    """Of the texts of a dictionary."""
    raw = SEPARATOR.join(texts)
    return Frame(len(raw), compress_texts(raw))


def frame_codes(codes: Ints) -> Frame:
    """The planes of numbers from 0 to 2^32 - 1."""
    return frame(*to_planes(codes.astype(np.uint32)))


class Texts:
    """`count` separated texts (at least one), less than 2 GiB of them."""

    def __init__(self, blob: bytes, count: int) -> None:
        self._blob = blob
        self._edges = edges(blob, count).astype(np.int32)
        self._count = count

    def largest(self, entries: int) -> int:
        """Bytes of the largest block of so many texts."""
        ends = self._edges[[*range(0, self._count, entries), self._count]]
        return int(np.diff(ends).max())

    def block(self, begin: int, end: int) -> bytes:
        """Texts `begin` to `end`, at least one, separated."""
        return self._blob[int(self._edges[begin]) : int(self._edges[end]) - 1]


class SplitColumn:
    """`lengths` and `data`: of the variables, a frame a block."""

    def __init__(self) -> None:
        self.lengths: list[Frame] = []
        self.data: list[Frame] = []
        self._templates = TemplateCodes()
        self._known: list[int] = []
        self._codes: list[Int32s] = []
        self._values = ValueCoder()

    def add(self, texts: bytes) -> VariableBlock:
        """A block of separated texts, at least one."""
        split = split_block(texts, self._templates)
        self._codes.append(split.codes)
        self._known.append(len(self._templates))
        kept = self._values.take(Variables(split.data, split.lengths), split.of)
        ends = np.zeros(len(split.lengths) + 1, np.int64)
        np.cumsum(split.lengths, out=ends[1:])
        lengths = np.concatenate([split.lengths[begin:end] for begin, end in kept.spans])
        edges = list(itertools.accumulate([end - begin for begin, end in kept.spans], initial=0))
        self.lengths.append(frame(*encode_lengths(lengths, split.of, kept.are_coded, edges)))
        pieces = [split.data[ends.item(begin) : ends.item(end)] for begin, end in kept.spans]
        self.data.append(frame(*pieces))
        return split

    def values(self) -> tuple[Frame | None, list[Frame]]:
        """(the dictionaries of values, of each block the codes); None and none where there are no
        such."""
        dictionaries, codes = self._values.encode()
        return frame(*dictionaries) if dictionaries else None, [frame(*of) for of in codes]

    def templates(self) -> list[bytes]:
        return self._templates.texts()

    def codes(self) -> Int32s:
        """int32[texts]: the template of each."""
        return np.concatenate(self._codes)

    def dictionary(self) -> tuple[list[Frame], Frame, Frame]:
        """(the templates, a page each; the numbers and the classes of their slots)."""
        texts = self.templates()
        pages = [texts[at : at + PAGE_TEMPLATES] for at in range(0, len(texts), PAGE_TEMPLATES)]
        counts = encode_slot_counts(self._known, self._templates.slots)
        classes = self._templates.classes().tobytes()
        return list(map(frame_texts, pages)), frame(*counts), frame(classes)

    def stored_bytes(self) -> int:
        """About: as if which template a row has were not known from another column's."""
        dictionaries, codes = self.values()
        pages, counts, classes = self.dictionary()
        frames = [*pages, counts, classes, *self.lengths, *self.data, *codes]
        frames += map(frame_codes, self._codes)
        if dictionaries is not None:
            frames.append(dictionaries)
        return sum(len(each.stored) for each in frames)
