"""Every path of a data directory, built and parsed in one place.

    FORMAT                                  format of the directory, one line of text
    lock                                    held by the daemon
    logd.sock                               the admin socket
    quickstart.json                         secrets of `logd quickstart`, if that was used
    control/                                users, organisations, projects, keys
    projects/<uuid>/wal/<first-seq>.wal     frames not yet frozen
    projects/<uuid>/segments/<first-seq>-<n>.seg   chunks; n tells files of one first seq apart
    projects/<uuid>/index/                  LMDB
    projects/<uuid>/damaged/                what was set aside
    projects/.deleted-<uuid>                a project on its way out

A sequence number in a name has 16 hexadecimal digits, so names sort as numbers do.
"""

import re
from pathlib import Path
from typing import Final

from logd.entry import ProjectId, Seq

FORMAT_LINE: Final = "logd data directory, format 1\n"
_FORMAT: Final = re.compile(r"logd data directory, format (\d+)\n?")
_WAL: Final = re.compile(r"([0-9a-f]{16})\.wal")
_SEGMENT: Final = re.compile(r"([0-9a-f]{16})-([0-9a-f]{4})\.seg")
_PROJECT: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DELETED_PREFIX: Final = ".deleted-"


class DataLayout:
    """The data directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.format_file = root / "FORMAT"
        self.lock = root / "lock"
        self.admin_socket = root / "logd.sock"
        self.control = root / "control"
        self.projects = root / "projects"

    def project(self, project: ProjectId) -> "ProjectLayout":
        return ProjectLayout(self.projects / project)

    def deleted(self, project: ProjectId) -> Path:
        return self.projects / f"{DELETED_PREFIX}{project}"


class ProjectLayout:
    """The directory of one project."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.wal = root / "wal"
        self.segments = root / "segments"
        self.index = root / "index"
        self.damaged = root / "damaged"

    def wal_file(self, first_seq: Seq) -> Path:
        return self.wal / f"{first_seq:016x}.wal"

    def segment_file(self, first_seq: Seq, number: int) -> Path:
        return self.segments / f"{first_seq:016x}-{number:04x}.seg"


def format_version(line: str) -> int | None:
    found = _FORMAT.fullmatch(line)
    return int(found[1]) if found else None


def parse_project_name(name: str) -> ProjectId | None:
    return ProjectId(name) if _PROJECT.fullmatch(name) else None


def parse_wal_name(name: str) -> Seq | None:
    found = _WAL.fullmatch(name)
    return Seq(int(found[1], 16)) if found else None


def parse_segment_name(name: str) -> tuple[Seq, int] | None:
    found = _SEGMENT.fullmatch(name)
    return (Seq(int(found[1], 16)), int(found[2], 16)) if found else None
