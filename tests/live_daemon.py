"""The real daemon, in this process, on a loopback socket."""

import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx
import trio

from logd.config import MIB, Address, Config
from logd.daemon.admin_client import admin_call
from logd.daemon.admin_requests import AdminReply, AdminRequest, Quickstart, UserAdd
from logd.run import Running, serve

ADMIN_EMAIL = "admin@example.com"


@dataclass
class Daemon:
    """A running daemon with a server admin, who has an organisation with a project with a key.

    `url`: without a final slash. `admin`: the admin's token; `key`: the project's API key, with
    both scopes. `http`: a client of that URL. `stop.set()` stops the daemon, `stopped` says so.
    """

    url: str
    data: Path
    admin: str
    admin_id: str
    org: str
    project: str
    key: str
    http: httpx.AsyncClient
    stop: trio.Event
    stopped: trio.Event

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def command(self, request: AdminRequest) -> AdminReply:
        """As `logd user add` and its like ask."""
        return await trio.to_thread.run_sync(admin_call, self.data, request)

    async def user(self, email: str) -> tuple[str, str]:
        """(id, token) of a user, made if need be."""
        reply = await self.command(UserAdd(email))
        assert reply.error is None
        assert reply.user_id is not None
        assert reply.token is not None
        return reply.user_id, reply.token

    async def call(
        self, method: str, path: str, secret: str | None = None, **more: Any
    ) -> httpx.Response:
        """A request with that credential; without one where it is None."""
        headers = dict(more.pop("headers", {}))
        if secret is not None:
            headers["Authorization"] = f"Bearer {secret}"
        return await self.http.request(method, path, headers=headers, **more)

    def entry(self, **fields: Any) -> dict[str, Any]:
        """A valid entry of the project, in the ingest form."""
        return {
            "projectId": self.project,
            "level": "INFO",
            "message": "user 17 logged in",
            "source": "auth",
        } | fields


class DaemonFactory(Protocol):
    def __call__(
        self, data: Path | None = None, **options: Any
    ) -> AbstractAsyncContextManager[Daemon]: ...


@asynccontextmanager
async def running_daemon(
    data: Path, *, lane: bool = True, trust: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[Daemon]:
    """Stops it in the end, in an orderly way. `lane`: its door has a fast lane;
    `trust`: the TLS of its clients, where it has a certificate."""
    defaults: dict[str, Any] = {
        "listen": (Address("127.0.0.1", 0),),
        "min_free_disk_bytes": 0,
        "tail_bytes": 64 * MIB,
        "shutdown_grace_seconds": 2.0,
    }
    environ = options.pop("environ", {})
    config = Config(data=data, **(defaults | options))
    stop, stopped = trio.Event(), trio.Event()

    async def serve_and_say(task_status: trio.TaskStatus[Running]) -> None:
        await serve(config, stop, environ, lane=lane, task_status=task_status)
        stopped.set()

    async with trio.open_nursery() as nursery:
        running: Running = await nursery.start(serve_and_say)
        reply = await trio.to_thread.run_sync(
            admin_call, data, Quickstart(ADMIN_EMAIL, "Acme", "acme", "Web shop")
        )
        async with httpx.AsyncClient(
            base_url=running.urls[0],
            trust_env=False,
            timeout=30,
            verify=trust or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # empty: quicker than all
        ) as http:
            yield Daemon(
                url=running.urls[0],
                data=data,
                admin=_said(reply.token),
                admin_id=_said(reply.user_id),
                org=_said(reply.org_id),
                project=_said(reply.project_id),
                key=_said(reply.key),
                http=http,
                stop=stop,
                stopped=stopped,
            )
        stop.set()


def _said(value: str | None) -> str:
    assert value is not None
    return value
