"""Listening sockets that a service manager hands to the daemon's process."""

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
from command_line import command, environment

_HAND_OVER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[2], sys.argv[2:])
"""
PATIENCE_SECONDS = 60.0


@contextlib.contextmanager
def given(listening: socket.socket, data: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A daemon that is handed the socket, as systemd does it."""
    serve = command("serve", "--data", str(data), "--min-free-disk-bytes", "0", *options)
    process = subprocess.Popen(
        [sys.executable, "-c", _HAND_OVER, str(listening.fileno()), *serve],
        pass_fds=[listening.fileno()],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_a_client_waits_for_the_daemon_on_the_socket(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with given(listening, tmp_path / "data") as process:
            answer = httpx.get(f"{url}/livez", timeout=PATIENCE_SECONDS, trust_env=False)
            assert answer.json() == {"status": "alive"}
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_SECONDS) == 0


def test_plain_http_beyond_loopback_has_to_be_asked_for_here_too(tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listening:
        with given(listening, tmp_path / "data") as process:
            _, said = process.communicate(timeout=PATIENCE_SECONDS)
            assert process.returncode == 2
            assert "insecure_http" in said
            assert "serving" not in said
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with given(listening, tmp_path / "data", "--insecure-http"):
            answer = httpx.get(f"{url}/livez", timeout=PATIENCE_SECONDS, trust_env=False)
            assert answer.status_code == 200


def test_a_socket_that_is_not_of_tcp_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(tmp_path / "socket"))
        listening.listen()
        with given(listening, tmp_path / "data") as process:
            _, said = process.communicate(timeout=PATIENCE_SECONDS)
            assert process.returncode == 2
            assert "TCP" in said
