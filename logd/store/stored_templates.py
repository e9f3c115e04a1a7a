"""The templates of a column of texts, as chunks store them.

Chunks of version 3 have them in pages, and how many slots each has; older ones in one part, and the
slots have to be counted: see `chunk.py`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from logd.format.part_table import Part, SplitParts
from logd.format.separated import SEPARATOR, edges
from logd.format.slot_counts import SlotCounts, decode_slot_counts
from logd.format.split_column import PAGE_TEMPLATES
from logd.store.chunk_parts import ChunkParts
from logd.store.chunk_values import Templates, decode_templates

Int64s = npt.NDArray[np.int64]
UInts = npt.NDArray[np.unsignedinteger[Any]]


class StoredTemplates(Protocol):
    """All methods raise Corruption where the bytes do not hold."""

    def whole(self) -> Templates:
        """All of them."""

    def slots(self) -> UInts | Int64s:
        """int or uint[templates]: the variables of each."""

    def pages(self, codes: Int64s | None) -> Iterator[tuple[Int64s, list[bytes]]]:
        """(codes, the templates of these), some at a time: of ascending codes, None for all."""

    def few(self, codes: Sequence[int]) -> list[bytes]:
        """Of a few codes. Raises ValueError or IndexError where there is none."""

    def first_block(self, code: int) -> int | None:
        """The first block that has the template, where that is stored; past the last one where no
        block has."""


class WholeTemplates:
    """Of versions 1 and 2."""

    def __init__(self, chunk: ChunkParts, kinds: SplitParts) -> None:
        self._chunk = chunk
        self._kind = kinds.templates
        self._known: Templates | None = None

    def whole(self) -> Templates:
        if self._known is None:
            self._known = _joined(self._chunk, self._kind, range(1))
        return self._known

    def slots(self) -> Int64s:
        return self.whole().slots

    def pages(self, codes: Int64s | None) -> Iterator[tuple[Int64s, list[bytes]]]:
        templates = self.whole()
        wanted = np.arange(len(templates.edges) - 1) if codes is None else codes
        yield wanted, templates.texts(wanted)

    def few(self, codes: Sequence[int]) -> list[bytes]:
        return list(map(self.whole().text, codes))

    def first_block(self, code: int) -> None:
        return None


class PagedTemplates:
    """From version 3 on. A page is kept from the second time on that it is asked for: one of them
    has what a row takes."""

    def __init__(self, chunk: ChunkParts, kinds: SplitParts) -> None:
        self._chunk = chunk
        self._kinds = kinds
        self._known: Templates | None = None
        self._known_counts: SlotCounts | None = None

    def whole(self) -> Templates:
        if self._known is None:
            self._known = _joined(self._chunk, self._kinds.templates, self._pages())
        return self._known

    def slots(self) -> UInts:
        return self._counts().slots

    def pages(self, codes: Int64s | None) -> Iterator[tuple[Int64s, list[bytes]]]:
        for page in self._pages():
            first = page * PAGE_TEMPLATES
            if codes is None:
                texts = self._page(page).split(SEPARATOR)
                yield np.arange(first, first + len(texts)), texts
                continue
            low, high = np.searchsorted(codes, [first, first + PAGE_TEMPLATES]).tolist()
            if low < high:
                mine = codes[low:high]
                yield mine, self._some_of_page(page, mine - first)

    def _some_of_page(self, page: int, places: Int64s) -> list[bytes]:
        """To look for where they begin takes half as long as to cut out all."""
        texts = self._page(page)
        try:
            at = edges(texts, min(len(self.slots()) - page * PAGE_TEMPLATES, PAGE_TEMPLATES))
        except ValueError as error:
            raise self._chunk.corrupt(self._kinds.templates, error) from None
        begins, ends = at.take(places).tolist(), at.take(places + 1).tolist()
        return [texts[begin : end - 1] for begin, end in zip(begins, ends, strict=True)]

    def few(self, codes: Sequence[int]) -> list[bytes]:
        places = [divmod(code, PAGE_TEMPLATES) for code in codes]
        return [self._page(page).split(SEPARATOR, at + 1)[at] for page, at in places]

    def first_block(self, code: int) -> int:
        return self._counts().first_block(code)

    def _pages(self) -> range:
        return range(-(-len(self.slots()) // PAGE_TEMPLATES))

    def _page(self, page: int) -> bytes:
        """Templates, separated."""

        def load() -> tuple[bytes, int]:
            _, raw = self._chunk.raw_part(self._kinds.templates, page)
            return raw, len(raw)

        return self._chunk.cached_passing((self._kinds.templates, page), load)

    def _counts(self) -> SlotCounts:
        chunk, kind = self._chunk, self._kinds.counts

        def load() -> tuple[SlotCounts, int]:
            _, raw = chunk.raw_part(kind)
            try:
                found = decode_slot_counts(raw, chunk.head().blocks)
            except ValueError as error:
                raise chunk.corrupt(kind, error) from None
            return found, found.size_bytes

        if self._known_counts is None:  # asked for several times a row
            self._known_counts = chunk.cached(kind, load)
        return self._known_counts


def _joined(chunk: ChunkParts, kind: Part, pages: range) -> Templates:
    """The templates of all pages."""

    def load() -> tuple[Templates, int]:
        templates = decode_templates(
            SEPARATOR.join([chunk.raw_part(kind, page)[1] for page in pages])
        )
        return templates, templates.size_bytes

    return chunk.cached(kind, load)
