"""The WAL part of opening a project: frames that are in no chunk become the tail again.

A torn end is cut off. The last file may hold frames that were never synced, or whose sync failed:
its frames are written to a new file and synced before any of them is shown.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from logd.entry import ProjectId, Seq
from logd.errors import Corruption, LogdError
from logd.format import wal as wal_codec
from logd.format.body import Batch, concatenate_batches, decode_body
from logd.format.chunk import IdempotencyRecord
from logd.format.wal import Form
from logd.format.wal_columns import decode_columns
from logd.store.damaged import Damaged
from logd.store.files import NO_SPACE, FileLayer, write_whole
from logd.store.freeze import slice_batch
from logd.store.layout import ProjectLayout, parse_wal_name
from logd.store.spans import Span, outside
from logd.store.tail import TailRun
from logd.store.wal import WalContent, read_wal, refuse_newer

_ENTRIES_AT_ONCE: Final = 1024
_BYTES_AT_ONCE: Final = 2 << 20


class RecoveredRun(msgspec.Struct, frozen=True):
    """A WAL file's entries; `path` goes once they are in chunks."""

    path: Path
    run: TailRun


class Replay:
    def __init__(
        self, files: FileLayer, layout: ProjectLayout, project: ProjectId, damaged: Damaged
    ) -> None:
        self._files = files
        self._layout = layout
        self._project = project
        self._damaged = damaged

    def refuse_newer(self) -> None:
        """Raises UnsupportedFormat if a newer program wrote one of the files."""
        for name in self._names():
            file = self._files.open(self._layout.wal / name)
            refuse_newer(file)
            file.close()

    def _names(self) -> list[str]:
        """In order of sequence."""
        names = self._files.list_directory(self._layout.wal)
        return [name for name in names if parse_wal_name(name) is not None]

    def read(self) -> list[WalContent]:
        """WAL files in order of sequence."""
        for name in self._files.list_directory(self._layout.wal):
            if parse_wal_name(name) is None:
                self._files.unlink(self._layout.wal / name)  # a rewrite that was not finished
        contents = []
        for name in self._names():
            file = self._files.open(self._layout.wal / name)
            contents.append(read_wal(file, self._project))
            file.close()
            self._damaged.found += contents[-1].damage
        return contents

    def replay(
        self, contents: Sequence[WalContent], frozen: Sequence[Span]
    ) -> tuple[list[RecoveredRun], Seq, Seq]:
        """(the runs of what is not frozen yet, the end of the log, the next number to give out)."""
        runs = []
        end = Seq(frozen[-1][1] if frozen else 0)
        for position, content in enumerate(contents):
            last = position == len(contents) - 1
            lost = content.torn_bytes  # only the last file was still being written
            if not last and not _goes_on(content, contents[position + 1]):
                lost += content.unwritten_bytes
            if lost and not last:
                reason = f"{lost} bytes are no frame"
                self._damaged.found.append(Corruption(content.path, content.end, reason))
            run, frames, undecodable = self._to_run(content, frozen)
            whole = not (content.damage or content.torn_bytes or undecodable)
            try:
                if not whole:
                    self._keep_what_goes(content, undecodable=undecodable)
                if run is None:
                    self._remove(content.path)
                elif last and len(frames) == len(content.frames) and not content.damage:
                    self._write(content.path, [content.data[: content.end]])
                elif last or not whole or content.unwritten_bytes:
                    self._write(content.path, self._encoded(frames))
            except OSError as error:
                if error.errno not in NO_SPACE:
                    raise
                self._sync(content.path)
            if run is not None:
                runs.append(RecoveredRun(content.path, run))
                end = max(end, run.next_seq)
        # Numbers that torn frames may have had are not given out again.
        lost_bytes = sum(content.torn_bytes for content in contents)
        if contents:
            lost_bytes += contents[-1].unwritten_bytes
        return runs, end, Seq(end + lost_bytes)

    def _keep_what_goes(self, content: WalContent, *, undecodable: bool) -> None:
        if content.damage or undecodable:
            self._damaged.keep_copy(content.path, 0)
        elif content.end:
            self._damaged.keep_copy(content.path, content.end)

    def _remove(self, path: Path) -> None:
        self._files.unlink(path)
        self._files.sync_directory(self._layout.wal)

    def _sync(self, path: Path) -> None:
        """On a full disk the file stays as it is, and reading goes on: the next opening has to
        rewrite it."""
        file = self._files.open(path)
        file.sync()
        file.close()

    def _to_run(
        self, content: WalContent, frozen: Sequence[Span]
    ) -> tuple[TailRun | None, list[wal_codec.Frame], bool]:
        """(what of the file is not frozen, its frames, whether one of them cannot be decoded)."""
        run: TailRun | None = None
        frames: list[wal_codec.Frame] = []
        frozen_end = frozen[-1][1] if frozen else 0
        waiting = [
            f for f in content.frames if f.first_seq >= frozen_end or outside(_span([f]), frozen)
        ]
        for group, batch in _together(self._decoded(content.path, waiting)):
            frames += group
            first = group[0].first_seq
            for start, stop in outside(_span(group), frozen):
                run = TailRun(Seq(start)) if run is None else run
                run.extend(Seq(start), slice_batch(batch, start - first, stop - first))
            if run is not None:
                run.records += [_record(f, f.idempotency) for f in group if f.idempotency]
        if run is not None:
            run.seal()
        return run, frames, len(frames) < len(waiting)

    def _decoded(
        self, path: Path, frames: Sequence[wal_codec.Frame]
    ) -> Iterator[tuple[wal_codec.Frame, Batch]]:
        """Without the frames that cannot be decoded."""
        for frame in frames:
            batch = self._decode(path, frame)
            if batch is not None:
                yield frame, batch

    def _decode(self, path: Path, frame: wal_codec.Frame) -> Batch | None:
        """Frames were validated before they were written: one that no longer decodes is damage."""
        try:
            if frame.form is Form.COLUMNS:
                return decode_columns(frame.body, frame.count)
            ndjson = frame.form is Form.NDJSON
            batch = decode_body(bytes(frame.body), self._project, frame.received_ns, ndjson=ndjson)
            if batch.count != frame.count:
                raise ValueError(f"holds {batch.count} entries, not {frame.count}")
        except (LogdError, ValueError) as error:
            self._damaged.found.append(Corruption(path, 0, f"frame {frame.first_seq}: {error}"))
            return None
        return batch

    def _encoded(self, frames: Sequence[wal_codec.Frame]) -> list[bytes]:
        buffers = [wal_codec.encode_header(self._project, frames[0].first_seq)]
        for frame in frames:
            buffers += wal_codec.encode_frame(frame)
        return buffers

    def _write(self, path: Path, buffers: Sequence[bytes]) -> None:
        """In a new, synced file of the same name."""
        fresh = path.with_name(path.name + ".new")
        write_whole(self._files, fresh, buffers)
        self._files.rename(fresh, path)
        self._files.sync_directory(self._layout.wal)


def _goes_on(content: WalContent, following: WalContent) -> bool:
    """Whether nothing is missing between two files: zeros at the end of the first are room that
    was not used."""
    last = content.frames[-1] if content.frames else None
    return last is not None and last.first_seq + last.count == parse_wal_name(following.path.name)


def _together(
    decoded: Iterable[tuple[wal_codec.Frame, Batch]],
) -> Iterator[tuple[list[wal_codec.Frame], Batch]]:
    """Frames that follow each other without a gap, as long as they are small, as one."""
    frames: list[wal_codec.Frame] = []
    batches: list[Batch] = []
    end = entries = size_bytes = 0
    for frame, batch in decoded:
        entries += frame.count
        size_bytes += len(frame.body)
        if frames and (
            frame.first_seq != end or entries > _ENTRIES_AT_ONCE or size_bytes > _BYTES_AT_ONCE
        ):
            yield frames, concatenate_batches(batches)
            frames, batches = [], []
            entries, size_bytes = frame.count, len(frame.body)
        frames.append(frame)
        batches.append(batch)
        end = frame.first_seq + frame.count
    if frames:
        yield frames, concatenate_batches(batches)


def _span(frames: Sequence[wal_codec.Frame]) -> Span:
    return frames[0].first_seq, frames[-1].first_seq + frames[-1].count


def _record(frame: wal_codec.Frame, idempotency: wal_codec.Idempotency) -> IdempotencyRecord:
    return IdempotencyRecord(idempotency, frame.first_seq, frame.count, frame.received_ns)
