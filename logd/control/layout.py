"""Every path of the control directory."""

from pathlib import Path
from typing import Final

_ASIDE: Final = ".damaged-"


class Layout:
    """What the files in the control directory are called.

    A `.new` file takes the name before it when it is complete; left over, it means nothing.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.journal = directory / "journal.log"
        self.new_journal = directory / "journal.log.new"
        self.mirror = directory / "control.mdb"
        self.new_mirror = directory / "control.mdb.new"
        self.seal = directory / "clean"
        self.new_seal = directory / "clean.new"

    def set_aside(self, path: Path, at_ns: int) -> Path:
        """Where a damaged file is kept for the operator. Nothing reads it again."""
        return path.with_name(f"{path.name}{_ASIDE}{at_ns}")

    def is_set_aside(self, name: str) -> bool:
        """Whether a file of the directory is one of those."""
        return _ASIDE in name
