"""A daemon that a filter of system calls confines, as its systemd unit does."""

from pathlib import Path

from daemon_process import SMALL, DaemonProcess, strace_injecting


def test_it_serves_where_it_may_not_ask_for_its_limits(tmp_path: Path) -> None:
    log = tmp_path / "strace.log"
    calls = "prlimit64,getrlimit,setrlimit,setpriority"
    daemon = DaemonProcess(tmp_path / "data", *SMALL)
    try:
        daemon.start(*strace_injecting(log, calls, "error=EPERM"))
        (access,) = daemon.quickstart(1)
        assert daemon.ingest(access, ["a", "b"]).status == 200
        assert [message for _, message in daemon.listed(access)] == ["b", "a"]
        assert [line for line in daemon.said if "limit of open files" in line]
        assert "EPERM" in log.read_text()
    finally:
        daemon.stop()
