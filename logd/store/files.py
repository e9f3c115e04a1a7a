"""The file layer: the only place that opens, writes, syncs, renames or locks files of the store.

It is passed in, so that tests can put a layer in its place that loses what was not synced, fails
on the nth call or dies before it.
"""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from logd.errors import DirectoryLocked

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_MAX_BUFFERS = 1000  # of one writev; Linux takes 1,024


class ReadableFile(Protocol):
    """An open file as its readers know it. Reads may come from several threads."""

    path: Path

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    def descriptor(self) -> int | None:
        """What another process may read it by, None where there is no such thing."""


class File(ReadableFile, Protocol):
    """An open file. Reads are positioned."""

    def append(self, buffers: Sequence[bytes]) -> None:
        """Write all buffers at the end. Raises OSError, after which the end is undefined."""

    def write(self, offset: int, buffers: Sequence[bytes]) -> None:
        """Write all buffers from `offset` on, which is not behind the end. Raises OSError, after
        which all from there on is undefined."""

    def sync(self) -> None:
        """Data and size are on the device when this returns. Raises OSError; final if it does."""

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def close(self) -> None: ...


class FileLayer(Protocol):
    def create(self, path: Path) -> File:
        """A new empty file, readable and appendable. Raises FileExistsError."""

    def open(self, path: Path) -> File:
        """An existing file, readable and appendable."""

    def sync_directory(self, path: Path) -> None:
        """The names in the directory are on the device when this returns."""

    def rename(self, source: Path, target: Path) -> None: ...

    def unlink(self, path: Path) -> None: ...

    def make_directory(self, path: Path) -> None:
        """Create it if it is missing, and sync its parent's names."""

    def list_directory(self, path: Path) -> list[str]:
        """Names, sorted; empty where there is no such directory."""

    def remove_tree(self, path: Path) -> None:
        """Remove a directory with all that is in it; nothing where there is none."""

    def free_bytes(self, path: Path) -> int:
        """Space left for an unprivileged process on the file system of an existing path."""


def write_whole(files: FileLayer, path: Path, buffers: Sequence[bytes]) -> None:
    """A new file, synced but for its name. Where that fails (OSError), nothing of it stays."""
    file = files.create(path)
    try:
        file.append(buffers)
        file.sync()
    except OSError:
        with contextlib.suppress(OSError):  # the first error tells more
            files.unlink(path)
        raise
    finally:
        file.close()


class OsFile:
    """A file of the operating system. It closes when the last reference goes: snapshots hold on
    to files that were unlinked meanwhile."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd
        self._appends = True

    def append(self, buffers: Sequence[bytes]) -> None:
        self._set_appending(True)
        for start in range(0, len(buffers), _MAX_BUFFERS):
            some = buffers[start : start + _MAX_BUFFERS]
            written = os.writev(self._fd, some)
            if written != sum(map(len, some)):
                self._append_rest(b"".join(some)[written:])

    def _append_rest(self, rest: bytes) -> None:
        view = memoryview(rest)
        while view:
            written = os.write(self._fd, view)
            if written == 0:
                raise OSError(errno.EIO, "a write made no progress", str(self.path))
            view = view[written:]

    def write(self, offset: int, buffers: Sequence[bytes]) -> None:
        self._set_appending(False)
        for start in range(0, len(buffers), _MAX_BUFFERS):
            some = buffers[start : start + _MAX_BUFFERS]
            size = sum(map(len, some))
            written = os.pwritev(self._fd, some, offset)
            if written != size:
                self._write_rest(b"".join(some)[written:], offset + written)
            offset += size

    def _write_rest(self, rest: bytes, offset: int) -> None:
        while rest:
            written = os.pwrite(self._fd, rest, offset)
            if written == 0:
                raise OSError(errno.EIO, "a write made no progress", str(self.path))
            rest = rest[written:]
            offset += written

    def _set_appending(self, appends: bool) -> None:
        """Where a descriptor appends, Linux does so whatever the offset."""
        if appends != self._appends:
            flags = fcntl.fcntl(self._fd, fcntl.F_GETFL)
            flags = flags | os.O_APPEND if appends else flags & ~os.O_APPEND
            fcntl.fcntl(self._fd, fcntl.F_SETFL, flags)
            self._appends = appends

    def sync(self) -> None:
        if self._fd < 0:  # Python would take it for a wrong argument, and raise no OSError
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), str(self.path))
        os.fdatasync(self._fd)

    def read(self, offset: int, size: int) -> bytes:
        data = os.pread(self._fd, size, offset)
        if len(data) == size or not data:
            return data
        pieces = [data]
        have = len(data)
        while have < size and (more := os.pread(self._fd, size - have, offset + have)):
            pieces.append(more)
            have += len(more)
        return b"".join(pieces)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def descriptor(self) -> int | None:
        return self._fd

    def close(self) -> None:
        fd, self._fd = self._fd, -1  # whatever comes of it, the number is another's from now on
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class OsFiles:
    """The real file layer."""

    def create(self, path: Path) -> File:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        return OsFile(path, os.open(path, flags, 0o600))

    def open(self, path: Path) -> File:
        return OsFile(path, os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC))

    def sync_directory(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        os.rename(source, target)

    def unlink(self, path: Path) -> None:
        os.unlink(path)

    def make_directory(self, path: Path) -> None:
        if path.is_dir():
            return
        if not path.parent.is_dir():
            self.make_directory(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        self.sync_directory(path.parent)

    def list_directory(self, path: Path) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def remove_tree(self, path: Path) -> None:
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            return
        self.sync_directory(path.parent)

    def free_bytes(self, path: Path) -> int:
        stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize


class ReadOnlyFiles(OsFiles):
    """The same for who only reads: files can be opened where nothing may be written."""

    def open(self, path: Path) -> File:
        return OsFile(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))


class DirectoryLock:
    """Held while a process owns a data directory; the kernel lets go of it when it ends."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """`read_only`: nothing is made; where there is no such file, as in a copy, the directory is
        locked itself. Raises DirectoryLocked if another process holds it."""
        flags = os.O_CLOEXEC | (os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT)
        is_there = not read_only or path.exists()
        self._fd = os.open(path if is_there else path.parent, flags, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            raise DirectoryLocked(
                f"{path.parent} is in use by another logd process; stop it first"
            ) from None

    def release(self) -> None:
        os.close(self._fd)
