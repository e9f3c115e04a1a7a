"""The WAL of one project on disk: one file is written at a time, synced once a group.

Small groups are written over zeros that were written, and synced, before: such a sync changes
nothing but data, where one that makes the file longer changes what the file system knows of it
too. When the file is closed, what is left of the zeros goes.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from logd.entry import ProjectId, Seq
from logd.errors import Corruption, StorageFailed, StorageFull, UnsupportedFormat
from logd.format import wal as codec
from logd.store.files import NO_SPACE, File, FileLayer
from logd.store.spans import Span

_SMALL_GROUP_BYTES: Final = 32_768
_FEW_GROUPS: Final = 8  # that are small, one after the other, are not worth it
_RESERVE_BYTES: Final = 262_144


class WalWriter:
    """The file that takes frames now."""

    def __init__(self, files: FileLayer, path: Path, project: ProjectId, first_seq: Seq) -> None:
        """A new file, durable with its name. Raises StorageFull or StorageFailed."""
        self.path = path
        self.first_seq = first_seq
        try:
            self._file: File = files.create(path)
        except OSError as error:
            raise _storage_error(error) from error
        try:
            self._file.append([codec.encode_header(project, first_seq)])
            self._file.sync()
            files.sync_directory(path.parent)
        except OSError as error:
            self._give_up(files)
            raise _storage_error(error) from error
        self.size_bytes = codec.HEADER_BYTES
        self._reserved_bytes = codec.HEADER_BYTES
        self._small_groups = 0

    def _give_up(self, files: FileLayer) -> None:
        """The next attempt makes the same file."""
        self._file.close()
        with contextlib.suppress(OSError):  # it is about to be reported that the disk fails
            files.unlink(self.path)

    def append(self, buffers: Sequence[bytes], *, sync: bool) -> None:
        """The buffers of whole frames are durable when this returns; without `sync`, written.

        Raises StorageFull: nothing of them is in the file. Raises StorageFailed: the file is
        undefined from its last good end on and must not be used again; a failed sync may have
        dropped the pages, so it is never tried twice.
        """
        end = self.size_bytes + sum(map(len, buffers))
        try:
            if not (sync and self._reserve(buffers, end)):
                self._write(buffers)
                self._reserved_bytes = max(self._reserved_bytes, end)
        except OSError as error:
            self._take_back(error)
        if sync:
            self.sync()
        self.size_bytes = end

    def _reserve(self, buffers: Sequence[bytes], end: int) -> bool:
        """Write a small group that reaches beyond the zeros together with more of these; whether
        that was done. Raises OSError."""
        if end - self.size_bytes > _SMALL_GROUP_BYTES:
            self._small_groups = 0
            return False
        self._small_groups += 1
        if end <= self._reserved_bytes or self._small_groups <= _FEW_GROUPS:
            return False
        try:
            self._write([*buffers, bytes(_RESERVE_BYTES)])
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            self._truncate()  # there may be room for the group alone
            return False
        self._reserved_bytes = end + _RESERVE_BYTES
        return True

    def _write(self, buffers: Sequence[bytes]) -> None:
        """Behind the last frame. Raises OSError."""
        if self._reserved_bytes > self.size_bytes:
            self._file.write(self.size_bytes, buffers)
        else:
            self._file.append(buffers)

    def _truncate(self) -> None:
        """Raises OSError."""
        self._file.truncate(self.size_bytes)
        self._reserved_bytes = self.size_bytes

    def sync(self) -> None:
        """Raises StorageFailed."""
        try:
            self._file.sync()
        except OSError as error:
            raise StorageFailed(f"the WAL could not be synced: {error.strerror}") from error

    def _take_back(self, error: OSError) -> None:
        failure = _storage_error(error)
        if isinstance(failure, StorageFull):
            try:
                self._truncate()
            except OSError as second:
                raise StorageFailed("the WAL could not be taken back") from second
        raise failure from error

    def close(self) -> None:
        if self._reserved_bytes > self.size_bytes:
            with contextlib.suppress(OSError):  # zeros behind the last frame mean nothing
                self._truncate()
        self._file.close()


def _storage_error(error: OSError) -> StorageFull | StorageFailed:
    if error.errno in NO_SPACE:
        return StorageFull("no space is left on the device")
    return StorageFailed(f"the WAL could not be written: {error.strerror}")


class WalContent(msgspec.Struct, frozen=True):
    """What a WAL file holds. `data`: all of it; `frames`: by sequence number, and `spans` those
    numbers; `end`: where the last valid frame ends; `damage`: each place at which something is not
    a frame, `torn_bytes` at the end, where nothing valid follows, apart, and apart from these
    `unwritten_bytes`, all of them zero."""

    path: Path
    data: bytes
    frames: tuple[codec.Frame, ...]
    spans: tuple[Span, ...]
    end: int
    damage: tuple[Corruption, ...]
    torn_bytes: int
    unwritten_bytes: int = 0


def refuse_newer(file: File) -> None:
    """Raises UnsupportedFormat if a newer program wrote the file."""
    with contextlib.suppress(ValueError):  # a damaged header says nothing
        _, _, version = codec.decode_header(file.read(0, codec.HEADER_BYTES))
        if version > codec.VERSION:
            raise UnsupportedFormat(f"{file.path} has WAL format {version}: too new")


def read_wal(file: File, project: ProjectId) -> WalContent:
    """Raises UnsupportedFormat if a newer program wrote the file; damage is part of the answer."""
    refuse_newer(file)
    data = file.read(0, file.size())
    try:
        owner, _, _ = codec.decode_header(data)
    except ValueError as error:
        return _headless(file.path, data, error)
    if owner != project:
        damage = Corruption(file.path, 16, "the file belongs to another project")
        return WalContent(file.path, data, (), (), 0, (damage,), 0)
    return _collect(file.path, data, codec.HEADER_BYTES)


def _headless(path: Path, data: bytes, error: ValueError) -> WalContent:
    """A file that never got its header holds nothing; one with a damaged header still frames."""
    if len(data) < codec.HEADER_BYTES:
        return WalContent(path, data, (), (), 0, (), len(data))
    content = _collect(path, data, codec.HEADER_BYTES)
    damage = Corruption(path, 0, str(error))
    return msgspec.structs.replace(content, damage=(damage, *content.damage))


def _collect(path: Path, data: bytes, start: int) -> WalContent:
    found_at: list[tuple[int, codec.Frame]] = []
    damage: list[Corruption] = []
    torn = unwritten = 0
    for offset, found in codec.decode_frames(data, start):
        if isinstance(found, codec.Frame):
            found_at.append((offset, found))
        elif found.torn:
            if data.count(0, offset) == found.length:
                unwritten = found.length
            else:
                torn = found.length
        else:
            damage.append(Corruption(path, offset, f"{found.length} bytes are no frame"))
    end = len(data) - torn - unwritten
    frames = _each_once(path, found_at, damage)
    spans = tuple(_spans(frames))
    return WalContent(path, data, tuple(frames), spans, end, tuple(damage), torn, unwritten)


def _each_once(
    path: Path, found: Sequence[tuple[int, codec.Frame]], damage: list[Corruption]
) -> list[codec.Frame]:
    """The frames, found at these offsets, by sequence number. A disk that writes to a wrong place
    may leave one twice: what holds numbers of another is damage, or its entries would show
    twice."""
    frames: list[codec.Frame] = []
    end = 0
    for offset, frame in sorted(found, key=lambda each: each[1].first_seq):
        if frame.first_seq < end:
            reason = f"frame {frame.first_seq} has entries of another"
            damage.append(Corruption(path, offset, reason))
            continue
        frames.append(frame)
        end = frame.first_seq + frame.count
    return frames


def _spans(frames: Sequence[codec.Frame]) -> Iterator[Span]:
    """Frames that follow each other are one."""
    start = stop = -1
    for frame in frames:
        if frame.first_seq != stop:
            if stop >= 0:
                yield start, stop
            start = frame.first_seq
        stop = frame.first_seq + frame.count
    if stop >= 0:
        yield start, stop
