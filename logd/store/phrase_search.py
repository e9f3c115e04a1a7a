"""Phrases that variables of a chunk's messages may complete, block after block."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from logd.format.ascending import among
from logd.format.slot_rows import SLOT_BITS, slot_keys
from logd.store.chunk_reader import ChunkReader
from logd.store.phrases import Gaps
from logd.store.scan import matching_variables
from logd.store.selection import Bools

_SLOT: Final = (1 << SLOT_BITS) - 1


def rows_that_complete(
    reader: ChunkReader, gaps: Sequence[Gaps], blocks: Iterable[int], check: Callable[[], None]
) -> Bools:
    """bool[count]: the rows of these blocks whose variables are the words that are missing; the
    gaps name templates by their code."""
    column = reader.messages_column(scan=True)
    wanted = np.zeros(len(column.templates().slots), np.bool_)
    for gap in gaps:
        wanted[gap.templates] = True
    ordered = [np.sort(slot_keys(gap.templates, gap.slots)) for gap in gaps]
    places = [(keys >> SLOT_BITS, keys & _SLOT) for keys in ordered]
    found = np.zeros(reader.count, np.bool_)
    for block in blocks:
        check()
        within = reader.block_rows(block)
        codes = column.codes()[within]
        if not wanted.take(codes).any():
            continue
        for gap, (templates, first) in zip(gaps, places, strict=True):
            here, steps = column.slot_rows(block).stretches(templates, first)
            for number, word in enumerate(gap.words):
                wanted_at = here + number * steps
                fits = among(wanted_at, matching_variables(column, block, word, wanted_at))
                here, steps = here[fits], steps[fits]
                if not len(here):
                    break
            if len(here):
                found[column.slot_rows(block).locate(here).rows + within.start] = True
    return found
