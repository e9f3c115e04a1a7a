"""Verifying the control directory, for a daemon that is not running."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from logd.control import disk, frames, records, seal
from logd.control.frames import Scan
from logd.control.layout import Layout
from logd.control.mirror import Contents, MirrorReader
from logd.control.recovery import Recovered, recover
from logd.control.salvage import read_in_child
from logd.errors import Corruption
from logd.store.files import FileLayer


class ControlReport(msgspec.Struct, frozen=True):
    """`problems`: one line each, empty if all is well. `records`: how many there are."""

    problems: tuple[str, ...]
    records: int


def check_control(
    files: FileLayer, directory: Path, read_mirror: MirrorReader = read_in_child
) -> ControlReport:
    """Read every byte: the journal's checksums, the LMDB copy and its seal against it, each record
    back into its fields. Writes nothing. Raises UnsupportedFormat.

    What the next opening would say of the journal is said in its words.
    """
    layout = Layout(directory)
    data = disk.read_whole(files, layout.journal)
    journal = None if data is None else frames.scan(data)
    problems = list(_set_aside(files, layout))
    if data is not None and journal is not None and journal.tail is not None and journal.tail.torn:
        torn = len(data) - journal.tail.offset
        problems.append(f"the journal ends in {torn} bytes of an unfinished transaction")
    copy: Contents | None = None
    if disk.present(files, layout.mirror):
        try:
            copy = read_mirror(layout.mirror)
        except Corruption as corruption:
            problems.append(f"the LMDB copy cannot be used: {corruption.reason}")
    elif journal is not None:
        problems.append("the LMDB copy is missing")
    recovered = recover(journal, copy)
    problems += recovered.damage
    if journal is not None and journal.whole:
        problems += _compare(journal, recovered, copy)
    problems += _check_seal(files, layout, recovered.sequence)
    problems += _unreadable(recovered)
    return ControlReport(tuple(problems), len(recovered.records))


def _set_aside(files: FileLayer, layout: Layout) -> Iterator[str]:
    for name in files.list_directory(layout.directory):
        if layout.is_set_aside(name):
            yield f"{layout.directory / name} was set aside"


def _compare(journal: Scan, recovered: Recovered, copy: Contents | None) -> Iterator[str]:
    """A copy that is behind is what a crash leaves, and catches up at the next opening."""
    if copy is None or copy.sequence != journal.last_sequence:
        return
    if copy.records != recovered.records:
        yield f"the LMDB copy differs from the journal at transaction {copy.sequence}"


def _check_seal(files: FileLayer, layout: Layout, sequence: int) -> Iterator[str]:
    """Without a seal the last stop was not clean, which is no damage."""
    if not disk.present(files, layout.seal):
        return
    found = seal.read(layout, files)
    if found is None:
        yield f"{layout.seal} cannot be read"
    elif not found.matches:
        yield "the LMDB copy was changed or removed after a clean stop"
    elif found.sequence != sequence:
        yield f"the last clean stop was at transaction {found.sequence}, the last is {sequence}"


def _unreadable(recovered: Recovered) -> Iterator[str]:
    for key, value in recovered.records.items():
        try:
            records.decode(key, value)
        except (msgspec.MsgspecError, ValueError) as error:
            yield f"the record {key} cannot be read: {error}"
