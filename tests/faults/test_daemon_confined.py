"""A daemon that a filter of system calls confines, as its systemd unit does."""

import shutil
from pathlib import Path

from daemon_process import SMALL, DaemonProcess


def test_it_serves_where_it_may_not_ask_for_its_limits(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    assert strace is not None, "this test needs strace: apt install strace"
    calls = "prlimit64,getrlimit,setrlimit,setpriority"
    prefix = ["-D", "-f", "-qq", "-o", str(tmp_path / "strace.log"), "-e", f"trace={calls}"]
    daemon = DaemonProcess(tmp_path / "data", *SMALL)
    try:
        daemon.start(strace, *prefix, "-e", f"inject={calls}:error=EPERM")
        (access,) = daemon.quickstart(1)
        assert daemon.ingest(access, ["a", "b"]).status == 200
        assert [message for _, message in daemon.listed(access)] == ["b", "a"]
        assert [line for line in daemon.said if "limit of open files" in line]
        assert "EPERM" in (tmp_path / "strace.log").read_text()
    finally:
        daemon.stop()
