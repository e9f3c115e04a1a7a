"""Whole small files on the file layer: there or not, read at once, replaced in one step."""

from pathlib import Path

from logd.store.files import File, FileLayer


def present(files: FileLayer, path: Path) -> bool:
    return path.name in files.list_directory(path.parent)


def read_whole(files: FileLayer, path: Path) -> bytes | None:
    """The file's bytes, or None where there is no such file."""
    if not present(files, path):
        return None
    file = files.open(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def write_new(files: FileLayer, path: Path, data: bytes) -> File:
    """A file with these bytes, synced (its name is not yet), still open. Replaces a left-over."""
    if present(files, path):
        files.unlink(path)
    file = files.create(path)
    try:
        file.append([data])
        file.sync()
    except OSError:
        file.close()
        raise
    return file


def put_in_place(files: FileLayer, new: Path, path: Path) -> None:
    """The complete file `new` becomes `path`, durably."""
    files.rename(new, path)
    files.sync_directory(path.parent)
