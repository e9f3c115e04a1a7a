"""A daemon in a process of its own, that may be killed, and producers that note its answers."""

import contextlib
import http.client
import itertools
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from command_line import command, environment

from logd.daemon.admin_client import admin_call
from logd.daemon.admin_requests import Quickstart

PATIENCE_SECONDS = 60.0
"""For what takes a second on an idle machine."""

SMALL = (
    *("--chunk-entries", "64", "--chunk-bytes", "65536"),
    *("--segment-bytes", "65536", "--min-free-disk-bytes", "0"),
)
"""Options with which a few hundred entries are frozen and merged many times."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any


class Client:
    """A kept-alive connection. Its calls raise OSError or HTTPException when the daemon dies."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: object = None) -> Answer:
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, self._headers)
        response = self._connection.getresponse()
        content = response.read()
        return Answer(response.status, json.loads(content) if content else None)

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True)
class ProjectAccess:
    project: str
    key: str


def strace_injecting(log: Path, calls: str, fault: str, *options: str) -> list[str]:
    """The beginning of a command under strace, in which these calls fail: `fault` as its `inject=`
    takes it. All other calls go on as quickly as ever: the kernel lets strace see no others."""
    strace = shutil.which("strace")
    assert strace is not None, "these tests need strace: apt install strace"
    quiet = ("-D", "-f", "--seccomp-bpf", "-qq", "-o", str(log))
    return [strace, *quiet, *options, "-e", f"trace={calls}", "-e", f"inject={calls}:{fault}"]


class DaemonProcess:
    """`start` returns when it takes requests. Its log goes to `said`."""

    def __init__(self, data: Path, *options: str) -> None:
        self.data = data
        self._options = options
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self.said: list[str] = []
        self.port = 0

    def start(self, *prefix: str) -> None:
        """`prefix`: a command to run it under, such as strace. Fails where it does not start."""
        arguments = ("serve", "--data", str(self.data), "--listen", "127.0.0.1:0", *self._options)
        self._process = subprocess.Popen(
            [*prefix, *command(*arguments)],
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        serving = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(self._process, serving))
        self._reader.start()
        assert serving.wait(PATIENCE_SECONDS), self.said
        assert self.port, self.said

    def _read(self, process: subprocess.Popen[str], serving: threading.Event) -> None:
        assert process.stderr is not None
        self.port = 0
        with process.stderr:
            for line in process.stderr:
                self.said.append(line)
                if "serving" in line:
                    self.port = int(line.rpartition(":")[2])
                    serving.set()
        serving.set()

    def kill(self) -> None:
        """As the power does."""
        self._send(signal.SIGKILL)
        self.wait()

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """The exit code, once it has ended."""
        assert self._process is not None
        assert self._reader is not None
        code = self._process.wait(seconds)
        self._reader.join()
        return code

    def stop(self) -> None:
        """If it runs."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    # ------------------------------------------------------------ as its users

    def client(self, key: str) -> Client:
        return Client(self.port, key)

    def quickstart(self, projects: int) -> list[ProjectAccess]:
        """New projects of one organisation, with a key each."""
        reply = admin_call(self.data, Quickstart("a@example.com", "Acme", "acme", "First"))
        assert reply.token is not None
        with contextlib.closing(self.client(reply.token)) as client:
            return [self._project(client, f"P{n}", str(reply.org_id)) for n in range(projects)]

    def _project(self, client: Client, name: str, org: str) -> ProjectAccess:
        project = client.call("POST", f"/v1/orgs/{org}/projects", {"name": name}).body["id"]
        key = client.call("POST", f"/v1/projects/{project}/keys", {"name": "key"}).body["key"]
        return ProjectAccess(project, key)

    def ingest(self, access: ProjectAccess, messages: Sequence[str]) -> Answer:
        with contextlib.closing(self.client(access.key)) as client:
            return client.call("POST", "/v1/ingest", batch(access.project, messages))

    def listed(self, access: ProjectAccess) -> list[tuple[str, str]]:
        """(id, message) of every entry."""
        found: list[tuple[str, str]] = []
        path = f"/v1/projects/{access.project}/logs?limit=1000"
        cursor = ""
        with contextlib.closing(self.client(access.key)) as client:
            while True:
                answer = client.call("GET", path + cursor)
                assert answer.status == 200, answer
                page = answer.body
                assert not page.get("partial")
                found += [(entry["id"], entry["message"]) for entry in page["logs"]]
                if page["nextCursor"] is None:
                    assert page["total"] == len(found)
                    return found
                cursor = "&cursor=" + page["nextCursor"]


def batch(project: str, messages: Sequence[str]) -> list[dict[str, str]]:
    entry = {"projectId": project, "level": "INFO", "source": "test"}
    return [entry | {"message": message} for message in messages]


@contextlib.contextmanager
def running(data: Path, *options: str) -> Iterator[DaemonProcess]:
    daemon = DaemonProcess(data, *options)
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.stop()


class Producers:
    """Threads that send batches of unlike sizes. A batch that was answered with 200 is noted with
    its ids; any other may have been stored as a whole or not at all."""

    def __init__(self, daemon: DaemonProcess, access: ProjectAccess, count: int = 4) -> None:
        self._daemon = daemon
        self._access = access
        self._running = threading.Event()
        self._ended = False
        self._changed = threading.Condition()
        self.acknowledged: list[tuple[list[str], list[str]]] = []
        self.refused: list[Answer] = []
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(count)]

    def __enter__(self) -> "Producers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ended = True
        self._running.set()
        for thread in self._threads:
            thread.join()

    def resume(self) -> None:
        """The daemon takes requests."""
        self._running.set()

    def pause(self) -> None:
        """The daemon is about to go: nobody tries again before `resume`."""
        self._running.clear()

    def wait_for(self, batches: int) -> None:
        """Until so many more were acknowledged."""
        with self._changed:
            wanted = len(self.acknowledged) + batches
            done = self._changed.wait_for(
                lambda: len(self.acknowledged) >= wanted, PATIENCE_SECONDS
            )
        assert done, (self.refused[-3:], self._daemon.said[-20:])

    def _run(self, producer: int) -> None:
        numbers = itertools.count()
        while self._running.wait() and not self._ended:
            client = self._daemon.client(self._access.key)
            with (
                contextlib.closing(client),
                contextlib.suppress(OSError, http.client.HTTPException),
            ):
                while self._running.is_set() and not self._ended:
                    self._send(client, producer, next(numbers))

    def _send(self, client: Client, producer: int, number: int) -> None:
        size = (1, 3, 17, 1, 40)[number % 5]
        messages = [f"{producer}-{number}-{size} {n}" for n in range(size)]
        answer = client.call("POST", "/v1/ingest", batch(self._access.project, messages))
        with self._changed:
            if answer.status == 200:
                self.acknowledged.append((answer.body["ids"], messages))
            else:
                self.refused.append(answer)
            self._changed.notify_all()

    def verify(self) -> None:
        """Nothing acknowledged is lost or changed, nothing is there twice, no batch is there in
        part."""
        found = self._daemon.listed(self._access)
        by_id = dict(found)
        assert len(by_id) == len(found)
        for ids, messages in self.acknowledged:
            assert [by_id.get(one) for one in ids] == messages
        of_batch: dict[str, int] = {}
        for _, message in found:
            name = message.split()[0]
            of_batch[name] = of_batch.get(name, 0) + 1
        assert len({message for _, message in found}) == len(found)
        assert all(count == int(name.split("-")[2]) for name, count in of_batch.items())


def names_and_sizes(root: Path) -> dict[str, tuple[int, int]]:
    """Size and time of the last change of every file."""
    return {
        str(path): (stat.st_size, stat.st_mtime_ns)
        for path in root.rglob("*")
        if not path.is_dir()
        for stat in [os.stat(path)]
    }
