"""What is damaged goes where nothing reads it, and is reported: never dropped in silence."""

from pathlib import Path

from logd.errors import Corruption
from logd.store.files import FileLayer, write_whole
from logd.store.layout import ProjectLayout


class Damaged:
    """The damage that an opening of a project finds."""

    def __init__(self, files: FileLayer, layout: ProjectLayout) -> None:
        self._files = files
        self._layout = layout
        self.found: list[Corruption] = []

    def set_aside(self, path: Path) -> None:
        """Move a file or directory."""
        self._files.make_directory(self._layout.damaged)
        self._files.rename(path, self._free_name(path.name))
        self._files.sync_directory(self._layout.damaged)
        self._files.sync_directory(path.parent)

    def keep_copy(self, path: Path, start: int) -> None:
        """Of the file's bytes from `start` on; zeros are nothing to keep."""
        file = self._files.open(path)
        data = file.read(start, file.size() - start)
        file.close()
        if not data.strip(b"\0"):
            return
        self._files.make_directory(self._layout.damaged)
        write_whole(self._files, self._free_name(path.name), [data])
        self._files.sync_directory(self._layout.damaged)

    def _free_name(self, name: str) -> Path:
        taken = set(self._files.list_directory(self._layout.damaged))
        number = next(n for n in range(len(taken) + 1) if f"{name}.{n}" not in taken)
        return self._layout.damaged / f"{name}.{number}"
