"""The HTTP server behind the lane: Hypercorn, the app, and what lies between.

Together with the web framework it is a third of the process' memory at rest, and most of the time
its start takes. So `listener.py` imports it when the first connection needs it.
"""

from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework

from logd.door.http1 import HttpConnection, make_hypercorn_config
from logd.door.limits import Limits
from logd.door.memory import BodyMemory
from logd.door.shell import Shell
from logd.door.stream import GuardedStream
from logd.entry import RandomBytes


class HttpServer:
    """Serves an ASGI app on connections."""

    def __init__(
        self, app: ASGIFramework, limits: Limits, memory: BodyMemory, random_bytes: RandomBytes
    ) -> None:
        self._app = ASGIWrapper(Shell(app, memory, limits.stall_seconds, random_bytes))
        self._config = make_hypercorn_config()
        self._context = WorkerContext(None)
        self._limits = limits
        self._random_bytes = random_bytes

    async def serve(self, stream: GuardedStream, head_seconds: float) -> None:
        """A connection, until it ends. `head_seconds`: for its first request's head, from the
        first byte that is read here. Raises OSError where the client is gone already."""
        connection = HttpConnection(
            self._app,
            self._config,
            self._context,
            stream,
            self._limits.head_seconds,
            head_seconds,
            self._random_bytes,
        )
        await connection.run()

    async def stop(self) -> None:
        """Connections that wait for a request end now, the others after their answer."""
        await self._context.terminated.set()
