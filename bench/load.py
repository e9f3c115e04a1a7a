"""The load: requests from a file, over several kept-alive connections.

Large batches come from up to two processes, so that one that is blocked in a send does not hold up
the other connections; single entries from one, which costs least.
The same client drives every peer. Its processes report their own CPU time, so that a result that
the client limits can be told from one that the server limits.
"""

import select
import socket
import time
from array import array
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess
from typing import Final

from bench.children import received, start_child
from bench.http import TIMEOUT_S, Address, ResponseReader, connect, is_plain_success
from bench.wire import RequestFile

MAX_PROCESSES: Final = 2
_START_LIMIT_S: Final = 30.0
_CHILD: Final = "a load process"


@dataclass(frozen=True)
class LoadPlan:
    """Send requests [first, last) of the file until all are answered or `limit_s` is over."""

    address: Address
    requests: RequestFile
    first: int
    last: int
    connections: int
    limit_s: float


@dataclass
class LoadResult:
    """`acknowledged`: numbers of the requests answered 2xx. `seconds`: from the first byte sent
    to the last answer. `failures`: what went wrong instead of an acknowledgement."""

    acknowledged: list[int] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)
    seconds: float = 0.0
    client_cpu_s: float = 0.0
    failures: list[str] = field(default_factory=list)


class Load:
    """A running load. The worker processes are this object's children."""

    def __init__(self, plan: LoadPlan) -> None:
        count = min(MAX_PROCESSES, plan.connections) if plan.requests.batch > 1 else 1
        self._plan = plan
        self._pipes: list[Pipe] = []
        self._processes: list[BaseProcess] = []
        for number in range(count):
            process, pipe = start_child(_work, plan, number, count)
            self._pipes.append(pipe)
            self._processes.append(process)

    def go(self) -> None:
        """Wait until every connection is open, then start all processes together."""
        for pipe in self._pipes:
            if not pipe.poll(_START_LIMIT_S):
                raise TimeoutError("a load process did not start")
            received(pipe, _CHILD)
        for pipe in self._pipes:
            pipe.send("go")

    def result(self) -> LoadResult:
        """Wait for the end. TimeoutError when a process hangs."""
        parts = [self._part(pipe) for pipe in self._pipes]
        for process in self._processes:
            process.join(_START_LIMIT_S)
        total = LoadResult()
        for part in parts:
            total.acknowledged += part.acknowledged
            total.latencies_s += part.latencies_s
            total.client_cpu_s += part.client_cpu_s
            total.failures += part.failures
        total.seconds = max(p.finished for p in parts) - min(p.started for p in parts)
        return total

    def _part(self, pipe: Pipe) -> "_Part":
        if not pipe.poll(self._plan.limit_s + TIMEOUT_S + _START_LIMIT_S):
            for process in self._processes:
                process.terminate()
            raise TimeoutError("a load process did not finish")
        part = received(pipe, _CHILD)
        assert isinstance(part, _Part)
        return part


def run_load(plan: LoadPlan) -> LoadResult:
    load = Load(plan)
    load.go()
    return load.result()


@dataclass
class _Part:
    """What one process has to say. `started`, `finished`: the system-wide monotonic clock."""

    acknowledged: list[int] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)
    started: float = 0.0
    finished: float = 0.0
    client_cpu_s: float = 0.0
    failures: list[str] = field(default_factory=list)


def _work(plan: LoadPlan, number: int, count: int, pipe: Pipe) -> None:
    """The body of a process: every `count`th request, over its share of the connections."""
    mine = plan.connections // count + (number < plan.connections % count)
    sockets = [connect(plan.address) for _ in range(mine)]
    with plan.requests.path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        pipe.send("ready")
        pipe.recv()
        worker = _Worker(plan, memoryview(data), range(plan.first + number, plan.last, count))
        cpu = time.process_time()
        worker.run(sockets)
        worker.part.client_cpu_s = time.process_time() - cpu
        worker.data.release()
    pipe.send(worker.part)


class _Worker:
    """Keeps one request under way on each connection. Sockets block when written to and are
    read when epoll says so."""

    def __init__(self, plan: LoadPlan, data: memoryview, numbers: range) -> None:
        self.part = _Part()
        self.data = data
        self._address = plan.address
        self._ends: array[int] = plan.requests.ends
        self._numbers = iter(numbers)
        self._limit_s = plan.limit_s
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._pending: dict[int, tuple[int, float]] = {}

    def run(self, sockets: list[socket.socket]) -> None:
        self.part.started = time.monotonic()
        self._deadline = self.part.started + self._limit_s
        for connection in sockets:
            self._adopt(connection)
        while self._pending:
            ready = self._poll.poll(TIMEOUT_S)
            if not ready:
                self.part.failures += ["no answer"] * len(self._pending)
                break
            for descriptor, _ in ready:
                self._receive(descriptor)
        self.part.finished = time.monotonic()
        for connection in self._sockets.values():
            connection.close()
        self._poll.close()

    def _adopt(self, connection: socket.socket) -> None:
        self._sockets[connection.fileno()] = connection
        self._poll.register(connection, select.EPOLLIN)
        self._send(connection)

    def _send(self, connection: socket.socket) -> None:
        """Put the next request under way, or none when the work or the time is over."""
        now = time.monotonic()
        number = next(self._numbers, -1) if now < self._deadline else -1
        if number < 0:
            return
        start = self._ends[number - 1] if number else 0
        self._pending[connection.fileno()] = (number, now)
        try:
            connection.sendall(self.data[start : self._ends[number]])
        except OSError as error:
            self._drop(connection, type(error).__name__)

    def _receive(self, descriptor: int) -> None:
        connection = self._sockets[descriptor]
        try:
            data = connection.recv(262_144)
            if is_plain_success(data):
                number, sent = self._pending.pop(descriptor)
                self.part.latencies_s.append(time.monotonic() - sent)
                self.part.acknowledged.append(number)
                self._send(connection)
                return
            reader = ResponseReader()
            while data and not reader.feed(data):
                data = connection.recv(262_144)
        except OSError:
            data = b""
        if not data:
            if descriptor in self._pending:
                self._drop(connection, "connection lost")
            else:
                self._forget(connection)
            return
        number, sent = self._pending.pop(descriptor)
        self.part.latencies_s.append(time.monotonic() - sent)
        if 200 <= reader.status < 300:
            self.part.acknowledged.append(number)
        else:
            self.part.failures.append(f"status {reader.status}")
        if reader.closes:
            self._replace(connection)
        else:
            self._send(connection)

    def _replace(self, connection: socket.socket) -> None:
        """After an answer that announced the connection's end: the next request has a new one."""
        self._forget(connection)
        try:
            successor = connect(self._address)
        except OSError as error:
            self.part.failures.append(type(error).__name__)
        else:
            self._adopt(successor)

    def _drop(self, connection: socket.socket, reason: str) -> None:
        self.part.failures.append(reason)
        self._pending.pop(connection.fileno(), None)
        self._forget(connection)

    def _forget(self, connection: socket.socket) -> None:
        self._poll.unregister(connection)
        del self._sockets[connection.fileno()]
        connection.close()
