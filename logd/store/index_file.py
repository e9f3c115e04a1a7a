"""Whether an LMDB file is safe to map.

LMDB turns damage into the death of the process: a file shorter than its meta pages say is a
SIGBUS at the first access behind its end, a page of zeros an abort. So before a daemon maps one,
its size is held against both meta pages, and after anything but a clean close a child process
opens it and walks it first. Run as a program, this module is that child.
"""

import contextlib
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

_PAGE: Final = 4096
_META: Final = struct.Struct("<IIQQ")  # magic, version, fixed address, map size; after the header
_MAGIC: Final = 0xBEEFC0DE
_HEADER_BYTES: Final = 16
_LAST_PAGE_OFFSET: Final = _HEADER_BYTES + 24 + 2 * 48
_PROBE_SECONDS: Final = 60


def is_plausible(path: Path) -> bool:
    """Both meta pages name LMDB, and the file is as long as the newer one says."""
    try:
        with path.open("rb") as file:
            pages = file.read(2 * _PAGE)
            size = file.seek(0, os.SEEK_END)
    except OSError:
        return False
    if len(pages) < 2 * _PAGE:
        return False
    metas = [_meta(pages[:_PAGE]), _meta(pages[_PAGE:])]
    known = [meta for meta in metas if meta is not None]
    if len(known) != 2:
        return False
    _, last_page = max(known)
    return size >= (last_page + 1) * _PAGE


def _meta(page: bytes) -> tuple[int, int] | None:
    """(transaction, last page) of a meta page."""
    magic, *_ = _META.unpack_from(page, _HEADER_BYTES)
    if magic != _MAGIC:
        return None
    last_page, transaction = struct.unpack_from("<QQ", page, _LAST_PAGE_OFFSET)
    return transaction, last_page


def survives_probe(directory: Path) -> bool:
    """A child process can open, walk and write to the environment without dying."""
    command = [sys.executable, "-I", __file__, str(directory)]
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=False)
        return done.returncode == 0
    return False


def _probe(directory: str) -> None:
    import lmdb

    size = os.stat(os.path.join(directory, "data.mdb")).st_size
    environment = lmdb.open(directory, map_size=2 * size + (1 << 24), max_dbs=0, lock=False)
    with environment.begin(buffers=True) as transaction:
        for key, value in transaction.cursor():
            bytes(key)
            bytes(value[:16])
            bytes(value[-16:])
    with environment.begin(write=True) as transaction:
        transaction.put(b"\xff probe", bytes(1 << 16))
        transaction.abort()
    environment.close()


if __name__ == "__main__":
    _probe(sys.argv[1])
