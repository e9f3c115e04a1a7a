"""Whether an LMDB file is safe to map.

LMDB turns damage into the death of the process: a file shorter than its meta pages say is a SIGBUS
at the first access behind its end, a page of zeros an abort, a free page that is in use a slow
corruption. So before a daemon maps one, the whole structure of it is walked by a program that only
reads: 0.1 ms where little is stored, half a second for the gigabyte of a billion entries. What lies
within values has checksums of its own.
"""

import struct
from pathlib import Path
from typing import Final

import lmdb.verify

from logd.errors import Corruption

_META_PAGES: Final = (0, 4096)
_FLAGS: Final = struct.Struct("=44xH46xH")  # of the free list and of the one database, in a page
_WRITTEN_FLAGS: Final = (8, 0)  # integer keys; none


def size_bytes(path: Path) -> int:
    """0 also where the file was made and nothing more."""
    return path.stat().st_size if path.exists() else 0


def check_structure(path: Path) -> None:
    """Raises Corruption."""
    try:
        problems = lmdb.verify.verify(str(path))  # type: ignore[no-untyped-call]
    except lmdb.verify.VerifyError as error:
        raise Corruption(path, 0, f"no LMDB file: {error}") from error
    if problems:
        raise Corruption(path, 0, f"{len(problems)} faults in its structure: {problems[0]}")
    with path.open("rb") as file:
        pages = file.read(2 * 4096)
    for offset in _META_PAGES:  # LMDB believes these: other flags end the process
        if _FLAGS.unpack_from(pages, offset) != _WRITTEN_FLAGS:
            raise Corruption(path, offset, "the flags of a meta page are not as written")
