"""A data directory without a daemon: its owner is this process, for a moment."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from logd.cli.errors import CommandError
from logd.store.files import FileLayer, OsFiles, ReadOnlyFiles
from logd.store.layout import DataLayout
from logd.store.store import lock_directory

if TYPE_CHECKING:
    from logd.control.store import Control


@contextmanager
def read(data: Path) -> Iterator[tuple[FileLayer, DataLayout]]:
    """The directory under its lock, to read it: whoever owns it, and also where nothing may be
    written. Raises as `owned` does."""
    files, layout = ReadOnlyFiles(), _existing(data)
    lock = lock_directory(files, layout, read_only=True)
    try:
        yield files, layout
    finally:
        lock.release()


def _existing(data: Path) -> DataLayout:
    layout = DataLayout(data)
    if not layout.format_file.exists():
        raise CommandError(f"{data} is not a data directory")
    return layout


@contextmanager
def owned(data: Path, *, create: bool = False) -> Iterator[DataLayout]:
    """The directory under its lock. Raises DirectoryLocked, UnsupportedFormat, CommandError."""
    layout = DataLayout(data) if create else _existing(data)
    if data.exists() and os.stat(data).st_uid != os.geteuid():
        raise CommandError(
            f"{data} belongs to another user, whose daemon could not read what is written here: "
            "start the daemon, or become that user"
        )
    lock = lock_directory(OsFiles(), layout)
    try:
        yield layout
    finally:
        lock.release()


@contextmanager
def owned_control(data: Path) -> "Iterator[Control]":
    """The control data, in a directory that is made if need be. Damage is told on stderr: it is
    mended here, so that the next daemon finds nothing to tell."""
    from logd.control.store import Control

    with (
        owned(data, create=True) as layout,
        Control.open(layout.control, clock=time.time_ns, random_bytes=os.urandom) as control,
    ):
        for sentence in control.damage:
            sys.stderr.write(f"logd: control data: {sentence}\n")
        yield control
