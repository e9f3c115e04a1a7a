"""The seal of a clean stop: what the LMDB file was when it was closed, to the byte.

It is written after the last transaction and removed before the first one of the next run. Where
it is missing the last stop was not clean; where it does not match, the file was changed since.
"""

import hashlib
import struct
import zlib
from pathlib import Path
from typing import Final

import msgspec

from logd.control import disk
from logd.control.layout import Layout
from logd.store.files import FileLayer

MAGIC: Final = b"logdseal"
VERSION: Final = 1
SEAL: Final = struct.Struct("<8sIQQ32sI")  # magic, version, sequence, size, SHA-256, CRC-32
assert SEAL.size == 64


class Seal(msgspec.Struct, frozen=True):
    """A seal that was found. `matches`: the LMDB file is still what it was."""

    sequence: int
    matches: bool


def write(layout: Layout, files: FileLayer, sequence: int) -> None:
    """Seal the closed mirror at this sequence. Raises OSError."""
    size, digest = _measure(layout.mirror)
    body = SEAL.pack(MAGIC, VERSION, sequence, size, digest, 0)[:-4]
    data = body + struct.pack("<I", zlib.crc32(body))
    disk.write_new(files, layout.new_seal, data).close()
    disk.put_in_place(files, layout.new_seal, layout.seal)


def read(layout: Layout, files: FileLayer) -> Seal | None:
    """The seal, or None where there is none that is readable."""
    data = disk.read_whole(files, layout.seal)
    if data is None or len(data) != SEAL.size or zlib.crc32(data[:-4]) != SEAL.unpack(data)[-1]:
        return None
    magic, version, sequence, size, digest, _ = SEAL.unpack(data)
    if magic != MAGIC or version != VERSION:
        return None
    matches = layout.mirror.exists() and _measure(layout.mirror) == (size, digest)
    return Seal(sequence, matches)


def remove(layout: Layout, files: FileLayer) -> None:
    """Durably, since a mirror that changes under its seal looks damaged. Raises OSError."""
    if disk.present(files, layout.seal):
        files.unlink(layout.seal)
        files.sync_directory(layout.directory)


def _measure(path: Path) -> tuple[int, bytes]:
    with path.open("rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").digest()
