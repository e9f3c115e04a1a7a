"""What every question asks of a chunk, read before somebody asks."""

import contextlib

import numpy as np

from logd.query.ast import Word, WordKind
from logd.store.chunk_index import ChunkIndex
from logd.store.chunk_reader import ChunkReader
from logd.store.index import ProjectIndex
from logd.store.page import Check

_BLOCKS = 8
_ANY_WORD = Word("0", WordKind.EXACT)


def read_ahead(
    chunk: ChunkReader, index: ProjectIndex, check: Check, *, with_entries: bool
) -> None:
    """Put into the cache what it takes to read any row and to look up any word; `with_entries`:
    read one of each of the newest blocks, too, which puts the code to work. `check()` is called
    between slices of work and raises to end it. Raises Corruption."""
    chunk.read_ahead()
    check()
    with contextlib.closing(ChunkIndex(chunk, index)) as words:
        words.find(_ANY_WORD)
        words.find_variable(_ANY_WORD.text.encode())
    blocks = chunk.blocks()
    for block in range(max(blocks - _BLOCKS, 0), blocks) if with_entries else ():
        chunk.entries(np.array([chunk.block_rows(block).stop - 1]), check)
