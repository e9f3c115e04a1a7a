"""The journal file, open for writing: the truth about the control data.

`append` returns when the transaction is on the device. After a failed write or sync nothing is
known about the file's end, and the kernel may have dropped pages it could not write: the journal
is `broken` until `rewrite` has stated all records in a new file.
"""

from collections.abc import Mapping

from logd.control import disk, frames
from logd.control.layout import Layout
from logd.store.files import File, FileLayer


class Journal:
    """Appends transactions, or replaces the file by one that states the live records only."""

    def __init__(self, layout: Layout, files: FileLayer, last_sequence: int) -> None:
        """Opens nothing: `continue_file` or `rewrite` must come first."""
        self._layout = layout
        self._files = files
        self._file: File | None = None
        self.last_sequence = last_sequence
        self.size = 0

    @property
    def broken(self) -> bool:
        return self._file is None

    def continue_file(self) -> None:
        """Append to the file that is there, which a scan has found whole."""
        self._file = self._files.open(self._layout.journal)
        self.size = self._file.size()

    def append(self, changes: frames.Changes) -> None:
        """One transaction, durable on return. Raises OSError, then `broken`."""
        assert self._file is not None, "BUG: append to a broken journal"
        frame = frames.encode_frame(self.last_sequence + 1, changes)
        try:
            self._file.append([frame])
            self._file.sync()
        except OSError:
            self.close()
            raise
        self.last_sequence += 1
        self.size += len(frame)

    def rewrite(self, records: Mapping[str, bytes]) -> None:
        """A new file with these records in place of the old one, durable on return.

        Raises OSError. Until the rename the old file goes on as it was; from then on a failure
        leaves the journal `broken`, since either file may be there after a power loss.
        """
        data, last_sequence = frames.encode_all(self.last_sequence + 1, records)
        file = disk.write_new(self._files, self._layout.new_journal, data)
        self.close()
        try:
            disk.put_in_place(self._files, self._layout.new_journal, self._layout.journal)
        except OSError:
            file.close()
            raise
        self._file, self.size, self.last_sequence = file, len(data), last_sequence

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
