"""What a daemon says where the journal listens, and elsewhere."""

import os
import re
import subprocess
from pathlib import Path

from command_line import command, environment

PATIENCE_SECONDS = 60.0


def lines_said(tmp_path: Path, *, in_journal: bool) -> list[str]:
    """Of a daemon that cannot start: it says so, and ends."""
    (tmp_path / "data").write_text("a file where the directory should be")
    reading, writing = os.pipe()
    status = os.fstat(writing)
    inode = status.st_ino if in_journal else status.st_ino + 1
    process = subprocess.Popen(
        command("serve", "--data", str(tmp_path / "data")),
        stderr=writing,
        env=environment() | {"JOURNAL_STREAM": f"{status.st_dev}:{inode}"},
    )
    os.close(writing)
    with open(reading) as said, process:
        found = said.read().splitlines()
        assert process.wait(PATIENCE_SECONDS) == 1
    assert found
    return found


def test_the_journal_is_told_the_priority_and_no_time(tmp_path: Path) -> None:
    for line in lines_said(tmp_path, in_journal=True):
        assert re.fullmatch(r"<3>logd\S*: .*", line)


def test_anybody_else_is_told_the_time(tmp_path: Path) -> None:
    for line in lines_said(tmp_path, in_journal=False):
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \S+ ERROR logd\S*: .*", line)
