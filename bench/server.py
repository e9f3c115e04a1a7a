"""A server as a child process: started on a free port, awaited, stopped, killed."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

READY_LIMIT_S: Final = 120.0
_STOP_LIMIT_S: Final = 30.0


class ServerFailed(Exception):
    """The server ended, or was not ready in time. The message has the end of its log."""


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        assert isinstance(port, int)
        return port


class Server:
    """One run of a server, in a process group of its own so that nothing of it can stay behind."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """`environment`: None for this process' own."""
        self._log = log
        self._started = time.monotonic()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self, probe: Callable[[], bool]) -> float:
        """Seconds from the start until `probe` says yes. ServerFailed when it does not."""
        while time.monotonic() - self._started < READY_LIMIT_S:
            if probe():
                return time.monotonic() - self._started
            if self._process.poll() is not None:
                break
            time.sleep(0.005)
        tail = self._log.read_text(errors="replace")[-2_000:]
        self.kill()
        code = self._process.returncode
        raise ServerFailed(f"not ready (exit code {code}); its log ends:\n{tail}")

    def stop(self) -> None:
        """Ask it to end; kill it when it does not."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self.kill()
        self._sweep()

    def kill(self) -> None:
        """SIGKILL to the process and all that it started, at once."""
        self._sweep()
        self._process.wait()

    def _sweep(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
