"""What the index knows of one chunk: decoded once, kept in the cache; rebuilt where it is damaged,
or where a merge has taken it away from a snapshot that still holds the chunk."""

import contextlib

import numpy as np
import numpy.typing as npt

from logd.format.chunk import encode_postings, encode_vocabulary
from logd.format.postings import Postings, PostingsDirectory, PostingsIndex
from logd.format.separated import SEPARATOR
from logd.format.vocabulary import (
    Targets,
    VocabularyDirectory,
    VocabularyIndex,
    VocabularyPage,
)
from logd.query.ast import Word, WordKind
from logd.store.chunk_reader import ChunkReader
from logd.store.index import IndexReader, ProjectIndex

_NO_CODES = np.zeros(0, np.int64)
_NO_TARGETS = Targets(_NO_CODES, _NO_CODES, _NO_CODES)

UInt32s = npt.NDArray[np.uint32]


class ChunkIndex:
    """Look-ups in a chunk's vocabulary and postings, for one query, in one thread. Raises
    Corruption where the chunk itself does not hold."""

    def __init__(self, reader: ChunkReader, index: ProjectIndex) -> None:
        self._reader = reader
        self._index = index
        self._transaction: contextlib.ExitStack | None = None
        self._open: IndexReader | None = None
        self._is_known = False
        self._looked_up: VocabularyIndex | None = None

    def close(self) -> None:
        """Ends the index transaction, where one was needed."""
        if self._transaction is not None:
            self._open = None
            self._transaction.close()

    def _stored(self) -> IndexReader | None:
        """None where the index does not know the chunk."""
        if self._open is None:
            self._transaction = contextlib.ExitStack()
            self._open = self._transaction.enter_context(self._index.reader())
            self._is_known = self._open.names(self._reader.row)
        return self._open if self._is_known else None

    # ------------------------------------------------------------ vocabulary

    def find(self, word: Word) -> Targets:
        """The texts that hold the word."""
        try:
            return _find(self._vocabulary(), word)
        except ValueError:  # damaged: the chunk itself still knows
            return _find(self._rebuilt_vocabulary(), word)

    def texts(self, kind: int) -> int:
        """How many texts the kind has."""
        return self._vocabulary().texts(kind)

    def text_counts(self, kind: int, level: int | None) -> UInt32s:
        """uint32[texts]: entries (of a level) that refer to each text of the kind."""

        def load() -> tuple[UInt32s, int]:
            try:
                counts = self._vocabulary().counts(kind)
            except ValueError:
                counts = self._rebuilt_vocabulary().counts(kind)
            wanted = counts.sum(axis=0, dtype=np.uint32) if level is None else counts[level]
            return wanted.astype(np.uint32, copy=False), 4 * len(wanted)

        return self._reader.cached(("text counts", kind, level), load)

    def _vocabulary(self) -> VocabularyIndex:
        if self._looked_up is None:
            directory = self._reader.cached("vocabulary", self._load_vocabulary)
            self._looked_up = (
                self._rebuilt_vocabulary()
                if directory is None
                else VocabularyIndex(
                    b"", directory, lambda index: self._vocabulary_page(directory, index)
                )
            )
        return self._looked_up

    def _stored_vocabulary(self) -> memoryview | None:
        stored = self._stored()
        return None if stored is None else stored.vocabulary(self._reader.first_seq)

    def _load_vocabulary(self) -> tuple[VocabularyDirectory | None, int]:
        """None where it is missing or damaged."""
        value = self._stored_vocabulary()
        try:
            directory = None if value is None else VocabularyDirectory(value)
        except ValueError:
            directory = None
        return directory, 0 if directory is None else directory.size_bytes

    def _vocabulary_page(self, directory: VocabularyDirectory, index: int) -> VocabularyPage:
        """Raises ValueError where it is missing or damaged."""

        def load() -> tuple[VocabularyPage, int]:
            value = self._stored_vocabulary()
            if value is None:
                raise ValueError("the vocabulary is gone")
            page = directory.page(value, index)
            return page, page.size_bytes

        return self._reader.cached(("vocabulary", index), load)

    def _rebuilt_vocabulary(self) -> VocabularyIndex:
        def load() -> tuple[VocabularyIndex, int]:
            value = rebuild_vocabulary(self._reader)
            index = VocabularyIndex(value)
            return index, len(value) + index.directory.size_bytes

        return self._reader.cached("rebuilt vocabulary", load)

    # ------------------------------------------------------------ postings

    def find_variable(self, word: bytes) -> Postings | None:
        """The postings of a folded word's hash, None where it is certain that the chunk lacks
        it."""
        try:
            found = self._find_stored(word)
        except ValueError:
            return self._rebuilt_postings().find(word)
        return found

    def _find_stored(self, word: bytes) -> Postings | None:
        """Raises ValueError where the stored postings are missing or damaged."""
        stored = self._stored()
        value = None if stored is None else stored.postings(self._reader.first_seq)
        if value is None:
            raise ValueError("the postings are gone")

        def load() -> tuple[PostingsDirectory, int]:
            directory = PostingsDirectory(value)
            return directory, directory.size_bytes

        return PostingsIndex(value, self._reader.cached("postings", load)).find(word)

    def _rebuilt_postings(self) -> PostingsIndex:
        def load() -> tuple[PostingsIndex, int]:
            value = rebuild_postings(self._reader)
            index = PostingsIndex(value)
            return index, len(value) + index.directory.size_bytes

        return self._reader.cached("rebuilt postings", load)


def _find(vocabulary: VocabularyIndex, word: Word) -> Targets:
    text = word.text.encode()
    if word.kind is WordKind.PREFIX:
        return vocabulary.find_prefix(text)
    if word.kind is WordKind.SUBSTRING:
        return vocabulary.find_substring(text)
    return vocabulary.find(text) or _NO_TARGETS


def rebuild_vocabulary(reader: ChunkReader) -> bytes:
    """The chunk's vocabulary, from its columns."""
    return encode_vocabulary(
        (
            reader.messages_column().templates.whole().blob.split(SEPARATOR),
            reader.sources().items,
            reader.tag_lists().items,
        ),
        (
            reader.template_codes().astype(np.int64),
            reader.source_codes().astype(np.int64),
            reader.tag_codes().astype(np.int64),
        ),
        reader.levels(),
    )


def rebuild_postings(reader: ChunkReader) -> bytes:
    """The chunk's variable postings, from its columns."""
    data, lengths, rows = [], [], []
    for block in range(reader.blocks()):
        variables = reader.messages_column().variables(block).joined()
        data.append(variables.data)
        lengths.append(variables.lengths.astype(np.int64))
        rows.append(reader.messages_column().layout(block).rows() + reader.block_rows(block).start)
    return encode_postings(
        b"".join(data), np.concatenate(lengths), np.concatenate(rows), reader.head().block_entries
    )
