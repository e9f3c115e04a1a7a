"""Clients in threads of their own, each over one connection: what the event loop's deputy meets."""

import json
import os
import time
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection
from random import Random

import pytest
import trio
from live_daemon import Daemon, DaemonFactory

CLIENTS = 6
REQUESTS = 120
LIMIT_SECONDS = 60


class Client:
    """Sends entries, and now and then asks for the newest, or sends what is refused. `stored`: the
    ids it was told; `early`: those that it could not read when it had been told."""

    def __init__(self, daemon: Daemon, number: int) -> None:
        self.stored: list[str] = []
        self.early: list[str] = []
        self.refused: list[int] = []
        self._random = Random(number)
        self._daemon = daemon
        self._number = number

    def work(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._daemon.port, timeout=LIMIT_SECONDS)
        try:
            for count in range(REQUESTS):
                self._store(connection, count)
                chance = self._random.random()
                if chance < 0.1:
                    self._read(connection)
                elif chance < 0.2:
                    status, _ = self._send(connection, level="LOUD")
                    self.refused.append(status)
                elif chance < 0.3:
                    time.sleep(self._random.random() / 500)
        finally:
            connection.close()

    def _send(self, connection: HTTPConnection, **fields: str) -> tuple[int, bytes]:
        body = json.dumps(self._daemon.entry(**fields))
        return self._ask(connection, "POST", "/v1/ingest", body)

    def _ask(
        self, connection: HTTPConnection, method: str, path: str, body: str | None = None
    ) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self._daemon.key}"}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def _store(self, connection: HTTPConnection, count: int) -> None:
        status, text = self._send(connection, message=f"client {self._number} says {count}")
        assert status == 200
        (one,) = json.loads(text)["ids"]
        self.stored.append(one)

    def _read(self, connection: HTTPConnection) -> None:
        path = f"/v1/projects/{self._daemon.project}/logs/{self.stored[-1]}"
        status, text = self._ask(connection, "GET", path)
        if status != 200 or f"client {self._number} " not in json.loads(text)["message"]:
            self.early.append(self.stored[-1])


def _quick(_descriptor: int) -> None:
    """A disk that the event loop waits for."""


def _now_and_then_slow() -> Callable[[int], None]:
    """One that it sometimes waits for in vain."""
    random = Random(7)

    def sync(_descriptor: int) -> None:
        if random.random() < 0.2:
            time.sleep(random.random() / 300)

    return sync


@pytest.mark.parametrize("disk", ["quick", "now and then slow"])
async def test_each_client_is_answered_for_what_it_sent_and_finds_it(
    make_daemon: DaemonFactory, monkeypatch: pytest.MonkeyPatch, disk: str
) -> None:
    monkeypatch.setattr(os, "fdatasync", _quick if disk == "quick" else _now_and_then_slow())
    async with make_daemon() as daemon:
        await daemon.call("POST", "/v1/ingest", daemon.key, json=daemon.entry(message="first"))
        clients = [Client(daemon, number) for number in range(CLIENTS)]
        with trio.fail_after(LIMIT_SECONDS):
            async with trio.open_nursery() as nursery:
                for client in clients:
                    nursery.start_soon(partial(trio.to_thread.run_sync, client.work))
        path = f"/v1/projects/{daemon.project}/logs"
        query = {"search": "client says", "limit": 1000}
        found = (await daemon.call("GET", path, daemon.key, params=query)).json()
    messages = {log["id"]: log["message"] for log in found["logs"]}
    assert found["total"] == len(messages) == CLIENTS * REQUESTS
    for number, client in enumerate(clients):
        assert client.early == []
        assert set(client.refused) == {400}
        sent = [f"client {number} says {count}" for count in range(REQUESTS)]
        assert [messages[one] for one in client.stored] == sent
