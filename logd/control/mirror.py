"""The LMDB copy of the control records: written after the journal, never read while serving.

It is the second copy from which a damaged journal is repaired. LMDB trusts its file: a damaged
page kills the process (SIGBUS, SIGABRT) or yields wrong data. So this process opens a file only
where it has built it itself or where the seal vouches for each of its bytes; any other file is
read by a child process (`salvage`).

Every value is preceded by a CRC-32 of key and value. One more key holds the sequence number of
the last transaction and the count of records, so that a reader knows that it has got them all.
"""

import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import lmdb
import msgspec

from logd.control import disk
from logd.control.frames import Changes
from logd.control.layout import Layout
from logd.errors import Corruption
from logd.store.files import FileLayer

POSITION_KEY: Final = b"\0position"
_POSITION: Final = struct.Struct("<QQ")  # last sequence, count of records
_CHECKSUM: Final = struct.Struct("<I")
_INITIAL_MAP_BYTES: Final = 16 * 1024 * 1024  # address space, not disk


class Contents(msgspec.Struct, frozen=True):
    """All that a mirror holds: the records as of transaction `sequence`."""

    sequence: int
    records: dict[str, bytes]


MirrorReader = Callable[[Path], Contents]
"""Reads a mirror that may be damaged in any way. Raises Corruption where it is."""


class Mirror:
    """The open LMDB copy. Its methods raise lmdb.Error, after which it must be built again."""

    def __init__(self, path: Path) -> None:
        self._env = _open(path)

    @classmethod
    def build(
        cls, layout: Layout, files: FileLayer, records: Mapping[str, bytes], sequence: int
    ) -> "Mirror":
        """A mirror of these records, in place of whatever file is there. Raises OSError too.

        It is made under another name, so that a file of the real name is always complete. The old
        one goes first: should the building fail, it must not pass for the latest.
        """
        for old in (layout.new_mirror, layout.mirror):
            if disk.present(files, old):
                files.unlink(old)
        mirror = cls(layout.new_mirror)
        try:
            mirror.commit(records, sequence, len(records))
        finally:
            mirror.close()
        disk.put_in_place(files, layout.new_mirror, layout.mirror)
        return cls(layout.mirror)

    def commit(self, changes: Changes, sequence: int, count: int) -> None:
        """One durable LMDB transaction: the changes and the new position."""
        while True:
            try:
                with self._env.begin(write=True) as transaction:
                    _write(transaction, changes, sequence, count)
                return
            except lmdb.MapFullError:  # aborted; the map may grow only between transactions
                self._env.set_mapsize(2 * self._env.info()["map_size"])

    def close(self) -> None:
        self._env.close()


def read_contents(path: Path) -> Contents:
    """Every record of a mirror, checked. Raises Corruption; on damaged pages the process may die.

    For `salvage`, and for tests that know their file to be sound.
    """
    try:
        env = _open(path, readonly=True)
        try:
            with env.begin() as transaction:
                stored = [(bytes(key), bytes(value)) for key, value in transaction.cursor()]
        finally:
            env.close()
    except lmdb.Error as error:
        raise Corruption(path, 0, f"LMDB says: {error}") from error
    return _checked(path, stored)


def _checked(path: Path, stored: list[tuple[bytes, bytes]]) -> Contents:
    records: dict[str, bytes] = {}
    position: bytes | None = None
    for key, value in stored:
        payload = value[_CHECKSUM.size :]
        if value[: _CHECKSUM.size] != _CHECKSUM.pack(zlib.crc32(payload, zlib.crc32(key))):
            raise Corruption(path, 0, "a record fails its checksum")
        if key == POSITION_KEY:
            position = payload
        else:
            records[key.decode()] = payload
    if position is None:
        raise Corruption(path, 0, "the position is missing")
    sequence, count = _POSITION.unpack(position)
    if count != len(records):
        raise Corruption(path, 0, f"{len(records)} records where {count} were written")
    return Contents(sequence, records)


def _open(path: Path, readonly: bool = False) -> lmdb.Environment:
    """lock=False: one process owns the directory, and it has one writer and no readers."""
    size = path.stat().st_size if path.exists() else 0
    return lmdb.open(
        str(path),
        map_size=max(_INITIAL_MAP_BYTES, 2 * size),
        subdir=False,
        readonly=readonly,
        lock=False,
        mode=0o600,
    )


def _write(transaction: lmdb.Transaction, changes: Changes, sequence: int, count: int) -> None:
    for key, value in changes.items():
        if value is None:
            transaction.delete(key.encode())
        else:
            _put(transaction, key.encode(), value)
    _put(transaction, POSITION_KEY, _POSITION.pack(sequence, count))


def _put(transaction: lmdb.Transaction, key: bytes, value: bytes) -> None:
    transaction.put(key, _CHECKSUM.pack(zlib.crc32(value, zlib.crc32(key))) + value)
