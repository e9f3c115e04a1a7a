"""The LMDB index of one project. Everything in it can be rebuilt from the segments.

    "c" + first seq   a row of the chunk directory (`format/directory.py`)
    "v" + first seq   the chunk's vocabulary (`format/vocabulary.py`)
    "p" + first seq   the chunk's variable postings (`format/postings.py`)
    "m"               format version (4 bytes), then the watermark: the first sequence number that
                      is in no chunk (8 bytes), CRC-32 of both (4 bytes); an index without it is
                      not complete: its rebuilding was cut short

Sequence numbers are 8 bytes big-endian, so keys sort as numbers do. A transaction begins and ends
inside one call, in one thread.
"""

import contextlib
import errno
import os
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import lmdb
import msgspec

from logd.entry import Seq
from logd.errors import Corruption, StorageFailed, StorageFull, UnsupportedFormat
from logd.format.chunk import BuiltChunk
from logd.format.directory import ChunkRow, decode_row, encode_row
from logd.store import index_file
from logd.store.files import NO_SPACE

VERSION: Final = 1
_META_KEY: Final = b"m"
_META: Final = struct.Struct("<IQ")
_KEY: Final = struct.Struct(">cQ")
_FIRST_MAP_BYTES: Final = 64 << 20
_DATA_NAME: Final = "data.mdb"
_SHORTAGES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, *NO_SPACE)
"""Where the system lacks something for a while. They say nothing of the file."""


class IndexChange(msgspec.Struct, frozen=True):
    """One transaction: chunks that come, chunks that go (by first sequence number), and the new
    watermark, None where it stays."""

    added: Sequence[tuple[ChunkRow, BuiltChunk]] = ()
    removed: Sequence[Seq] = ()
    watermark: Seq | None = None


class IndexContent(msgspec.Struct, frozen=True):
    """What the index says at its opening. `watermark`: None where the index is not complete."""

    rows: tuple[ChunkRow, ...]
    watermark: Seq | None


class _ReaderGate:
    """The map may only grow while no transaction is open in this process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._closing = False

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._closing)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def none(self) -> Iterator[None]:
        """Waits for the readers inside and keeps new ones out meanwhile."""
        with self._changed:
            self._closing = True
            try:
                self._changed.wait_for(lambda: self._inside == 0)
                yield
            finally:
                self._closing = False
                self._changed.notify_all()

    @contextlib.contextmanager
    def none_at_once(self) -> Iterator[bool]:
        """The same, but does not wait: false where somebody is inside."""
        with self._changed:
            yield not (self._inside or self._closing)


class ProjectIndex:
    """An open index. Reads may come from several threads; one thread at a time applies changes."""

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        """Open or create it; `read_only`: nothing is written, not even a lock, so nobody else may
        have it open. Raises Corruption if it must be rebuilt, UnsupportedFormat if a newer program
        wrote it (nothing was written then), OSError if it can be had another time."""
        self._directory = directory
        self._readers = _ReaderGate()
        self._writing = threading.Lock()
        if index_file.size_bytes(directory / _DATA_NAME):
            index_file.check_structure(directory / _DATA_NAME)
            self._environment = self._opened(read_only=True)
            try:
                self._check_version()
            finally:
                self._environment.close()
        self._environment = self._opened(read_only=read_only)

    def _opened(self, *, read_only: bool) -> lmdb.Environment:
        path = self._directory / _DATA_NAME
        try:
            return lmdb.open(
                str(self._directory),
                map_size=max(_FIRST_MAP_BYTES, 2 * index_file.size_bytes(path)),
                max_dbs=0,
                readonly=read_only,
                lock=not read_only,
            )
        except lmdb.Error as error:
            if error.code in _SHORTAGES:
                raise OSError(error.code, os.strerror(error.code), str(path)) from error
            raise Corruption(path, 0, f"LMDB cannot open it: {error}") from error

    def _check_version(self) -> None:
        with self._transaction() as transaction:
            value = transaction.get(_META_KEY)
        if value is None:
            return
        version, _ = _decode_meta(self._directory / _DATA_NAME, value)
        if version > VERSION:
            raise UnsupportedFormat(f"{self._directory} has index format {version}: too new")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator["lmdb.Transaction[bytes]"]:
        """A reading one, at the opening. Raises Corruption where LMDB finds its file damaged."""
        try:
            with self._environment.begin() as transaction:
                yield transaction
        except lmdb.Error as error:
            raise Corruption(self._directory / _DATA_NAME, 0, f"LMDB: {error}") from error

    def content(self) -> IndexContent:
        """The directory, by first sequence number. Raises Corruption."""
        path = self._directory / _DATA_NAME
        rows = []
        with self._transaction() as transaction:
            value = transaction.get(_META_KEY)
            cursor = transaction.cursor()
            if cursor.set_range(b"c"):
                for key, row in cursor:
                    if key[:1] != b"c":
                        break
                    try:
                        rows.append(_decode_row(key, row))
                    except ValueError as error:
                        raise Corruption(path, 0, str(error)) from None
        watermark = None if value is None else Seq(_decode_meta(path, value)[1])
        return IndexContent(tuple(rows), watermark)

    def apply(self, change: IndexChange) -> None:
        """All of the change, or nothing of it. Raises StorageFull or StorageFailed."""
        while True:
            try:
                with self._writing:
                    if self._put_whole(change):
                        return
                    with self._readers.none():
                        self._map(2 * self._environment.info()["map_size"])
            except lmdb.DiskError as error:
                raise StorageFull("no space is left for the index") from error
            except lmdb.Error as error:
                raise StorageFailed(f"the index could not be written: {error}") from error

    def _map(self, size_bytes: int) -> None:
        """Map the file anew, while nobody reads or writes."""
        self._environment.set_mapsize(size_bytes)

    def let_go(self) -> None:
        """Pages of the file that were looked at count as memory of the process as long as they are
        mapped. Now they do not; the system keeps them, and they are mapped again when they are
        needed. Where somebody reads or writes nothing happens. Raises StorageFailed."""
        if not self._writing.acquire(blocking=False):
            return
        try:
            with self._readers.none_at_once() as is_unused:
                if is_unused:
                    self._map(self._environment.info()["map_size"])
        except lmdb.Error as error:
            raise StorageFailed(f"the index could not be mapped: {error}") from error
        finally:
            self._writing.release()

    def _put_whole(self, change: IndexChange) -> bool:
        """In one transaction; false where the map has no room for it, and nothing was put."""
        try:
            with self._environment.begin(write=True) as transaction:
                self._put(transaction, change)
        except lmdb.MapFullError:
            return False
        return True

    def _put(self, transaction: lmdb.Transaction, change: IndexChange) -> None:
        for seq in change.removed:
            for kind in (b"c", b"v", b"p"):
                transaction.delete(_KEY.pack(kind, seq))
        for row, built in change.added:
            transaction.put(_KEY.pack(b"c", row.first_seq), encode_row(row))
            transaction.put(_KEY.pack(b"v", row.first_seq), built.vocabulary)
            transaction.put(_KEY.pack(b"p", row.first_seq), built.postings)
        if change.watermark is not None:
            fixed = _META.pack(VERSION, change.watermark)
            transaction.put(_META_KEY, fixed + struct.pack("<I", zlib.crc32(fixed)))

    @contextlib.contextmanager
    def reader(self) -> Iterator["IndexReader"]:
        """A view of one moment, for the thread that opened it; values die with it."""
        with self._readers.one(), self._environment.begin(buffers=True) as transaction:
            yield IndexReader(transaction)

    def close(self) -> None:
        self._environment.close()


class IndexReader:
    def __init__(self, transaction: lmdb.Transaction) -> None:
        self._transaction = transaction

    def names(self, row: ChunkRow) -> bool:
        """Whether the directory has this row: a merge puts another chunk at the same number."""
        value = self._get(b"c", row.first_seq)
        return value is not None and value == encode_row(row)

    def vocabulary(self, first_seq: Seq) -> memoryview | None:
        return self._get(b"v", first_seq)

    def postings(self, first_seq: Seq) -> memoryview | None:
        return self._get(b"p", first_seq)

    def _get(self, kind: bytes, first_seq: Seq) -> memoryview | None:
        """None where it is missing, or where LMDB finds its pages damaged."""
        try:
            value = self._transaction.get(_KEY.pack(kind, first_seq))
        except lmdb.Error:
            return None
        return None if value is None else memoryview(value)


def _decode_meta(path: Path, value: bytes) -> tuple[int, int]:
    if len(value) != _META.size + 4:
        raise Corruption(path, 0, "the meta record has a wrong size")
    if zlib.crc32(value[: _META.size]) != struct.unpack_from("<I", value, _META.size)[0]:
        raise Corruption(path, 0, "the meta record's checksum does not match")
    version, watermark = _META.unpack_from(value)
    return version, watermark


def _decode_row(key: bytes, value: bytes) -> ChunkRow:
    """Raises ValueError."""
    row = decode_row(value)
    if key != _KEY.pack(b"c", row.first_seq):
        raise ValueError("directory row: it stands under the key of another")
    return row
