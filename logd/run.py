"""The composition root: the parts of the daemon are made and joined here, and nowhere else.

open    data directory, control data, logs, then the listeners: nothing is served before
serve   until asked to stop
close   the listeners first, then requests in flight, then the storage
"""

import contextlib
import logging
import os
import resource
import signal
import socket
import ssl
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import cache, partial
from typing import Any, Final

import msgspec
import trio

import logd
from logd.allocator import set_up_allocator
from logd.api.dispatch import Api
from logd.api.log_pages import LogPages
from logd.api.openapi import document
from logd.api.routes import ROUTES
from logd.api.service import Services
from logd.config import BadConfig, Config, refuse_plain_http
from logd.control.store import Control
from logd.daemon.admin import open_admin_socket, serve_admin
from logd.daemon.build_process import BuildProcess
from logd.daemon.identity import Identity
from logd.daemon.logs import Logs, open_logs
from logd.daemon.threads import in_thread
from logd.door import systemd
from logd.door.limits import limits_of
from logd.door.listener import Door, load_tls, open_listeners
from logd.errors import LogdError, Overloaded
from logd.format.chunk import BLOCK_ENTRIES
from logd.store.files import OsFiles
from logd.store.layout import DataLayout
from logd.store.limits import StoreLimits
from logd.store.store import Store, lock_directory
from logd.words import fold

log = logging.getLogger("logd")

WRONG_CONFIGURATION: Final = 2
"""The exit code by which the unit knows that another start would end like this one."""
_CHORES_SECONDS: Final = 60.0
_USUAL_DESCRIPTORS: Final = 1024
_SWITCH_SECONDS: Final = 0.0005
"""How long one thread may keep the interpreter from another: the event loop shares it with the
freezer, and with Python's 5 ms an acknowledgement would wait for its turn, several times."""


class PooledRandom:
    """Random bytes for request ids, from one call of the system for many."""

    def __init__(self) -> None:
        self._pool = b""

    def __call__(self, count: int) -> bytes:
        if len(self._pool) < count:
            self._pool = os.urandom(max(count, 4096))
        taken, self._pool = self._pool[:count], self._pool[count:]
        return taken


class Running(msgspec.Struct, frozen=True):
    """What the daemon says when it takes requests. `urls`: one an address it listens on."""

    urls: tuple[str, ...]


def run(config: Config, environ: Mapping[str, str]) -> int:
    """The daemon, until SIGTERM, SIGINT or SIGHUP. The process' exit code."""
    prepare_process(config, environ)
    code = 0
    try:
        trio.run(_run_until_signal, config, environ)
    except* BadConfig as group:
        for error in _single(group):
            log.error("cannot start: %s", error)
        code = WRONG_CONFIGURATION
    except* (LogdError, OSError) as group:
        for error in _single(group):
            log.error("cannot start: %s", error)
        code = code or 1
    return code


def _set_up_log(config: Config, environ: Mapping[str, str]) -> None:
    handler = logging.StreamHandler()
    if systemd.goes_to_journal(environ, sys.stderr.fileno()):
        handler.setFormatter(systemd.JournalFormatter())
    else:
        line = "%(asctime)s %(levelname)s %(name)s: %(message)s"
        handler.setFormatter(logging.Formatter(line))
    logging.basicConfig(level=config.log_level.upper(), handlers=[handler])


def _single(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group, nested as nurseries nest them."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _single(one)
    else:
        yield error


def prepare_process(config: Config, environ: Mapping[str, str]) -> None:
    """What the whole process needs, before `serve`."""
    _set_up_log(config, environ)
    _raise_descriptor_limit()
    set_up_allocator(thrifty=config.profile == "edge")
    sys.setswitchinterval(_SWITCH_SECONDS)


async def _run_until_signal(config: Config, environ: Mapping[str, str]) -> None:
    async with stopped_by_signals() as stop:
        await serve(config, stop, environ)


@asynccontextmanager
async def stopped_by_signals() -> AsyncIterator[trio.Event]:
    """What a signal sets that asks the process to end. The end of the terminal is one, but where
    it was ignored from the beginning, as by nohup."""
    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    stop = trio.Event()
    with trio.open_signal_receiver(*numbers) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_at_signal, signals, stop)
            yield stop
            nursery.cancel_scope.cancel()


async def _stop_at_signal(signals: AsyncIterator[int], stop: trio.Event) -> None:
    async for number in signals:
        log.info("%s: stopping", signal.Signals(number).name)
        stop.set()


async def serve(
    config: Config,
    stop: trio.Event,
    environ: Mapping[str, str],
    *,
    lane: bool = True,
    task_status: trio.TaskStatus[Running] = trio.TASK_STATUS_IGNORED,
) -> None:
    """The daemon, until `stop`. `lane`: hot requests may be answered in the fast lane; without it
    the HTTP server has them all, with the same answers.

    Raises DirectoryLocked, UnsupportedFormat, BadConfig and OSError before anything is served.
    """
    cores = len(os.sched_getaffinity(0))
    with _data_directory(config) as layout, _control(layout) as control:
        told = _tell_damage(control)
        async with _logs(config, layout, cores) as logs, trio.open_nursery() as nursery:
            identity = Identity(control, logs.desks)
            services = Services(
                identity=identity,
                ingest=logs.ingest,
                queries=logs.queries,
                pages=LogPages(),
                deputy=logs.deputy,
                random_bytes=os.urandom,
                max_body_bytes=config.max_body_bytes,
                serving=lambda: not stop.is_set(),
                openapi=_openapi,
            )
            api = Api(services)
            door = Door(
                lambda: _make_app(api, nursery),
                limits_of(config, _descriptors()),
                _tls(config),
                PooledRandom(),
                cores,
                api if lane else None,
            )
            listeners = await open_listeners(config.listen, _inherited(config, environ))
            admin = open_admin_socket(layout.admin_socket)
            nursery.start_soon(serve_admin, admin, identity)
            nursery.start_soon(_chores, identity, told)
            running = Running(tuple(_url(config, one) for one in listeners))
            log.info("serving %s on %s", config.data, ", ".join(running.urls))
            _notify(environ, systemd.READY)
            task_status.started(running)
            nursery.start_soon(_say_stopping, stop, environ)
            nursery.start_soon(_say_alive, environ)
            nursery.start_soon(_make_ready_for_other_scripts)
            await door.serve(listeners, stop)
            nursery.cancel_scope.cancel()
    log.info("stopped")


@contextmanager
def _data_directory(config: Config) -> Iterator[DataLayout]:
    layout = DataLayout(config.data)
    lock = lock_directory(OsFiles(), layout)
    try:
        yield layout
    finally:
        layout.admin_socket.unlink(missing_ok=True)
        lock.release()


def _control(layout: DataLayout) -> Control:
    return Control.open(layout.control, clock=time.time_ns, random_bytes=os.urandom)


def store_limits(config: Config) -> StoreLimits:
    return StoreLimits(
        chunk_entries=config.chunk_entries,
        block_entries=min(BLOCK_ENTRIES, max(256, config.chunk_entries // 4)),
        chunk_bytes=config.chunk_bytes,
        segment_bytes=config.segment_bytes,
        segment_seconds=config.segment_seconds,
        tail_bytes=config.tail_bytes,
        cache_bytes=config.cache_bytes,
        min_free_disk_bytes=config.min_free_disk_bytes,
    )


def _logs(config: Config, layout: DataLayout, cores: int) -> AbstractAsyncContextManager[Logs]:
    builder = BuildProcess(config.build_in == "process")
    store = Store(OsFiles(), layout, store_limits(config), time.time_ns, builder)
    relaxed = config.durability == "interval"
    interval_s = config.sync_interval_ms / 1000 if relaxed else None
    return open_logs(
        store,
        time.time_ns,
        config.query_threads,
        interval_s,
        builder.rest,
        config.scan_processes,
        cores,
    )


@cache
def _openapi() -> bytes:
    """Made when somebody asks: few do, and it takes a megabyte."""
    return document(ROUTES, logd.__version__)


def _make_app(api: Api, nursery: trio.Nursery) -> Any:
    """The ASGI app. Why so late: see `door/server.py`."""
    from logd.api.app import make_app

    app = make_app(api)
    app.nursery = nursery
    return app


def _tell_damage(control: Control, told: int = 0) -> int:
    """What was found damaged of the control data, but for the first `told` faults; how many there
    are. Before anything else can end the start: what was mended is not found again."""
    damage = control.damage
    for sentence in damage[told:]:
        log.error("control data: %s", sentence)
    return len(damage)


async def _chores(identity: Identity, told: int) -> None:
    """What the control data need now and then. What fails, as on a full disk, is tried again."""
    while True:
        told = _tell_damage(identity.control, told)
        await identity.purge_doomed()
        try:
            await identity.change(identity.control.flush_last_used)
        except (LogdError, OSError) as error:
            log.error("when keys were used last cannot be written: %s", error)
        await trio.sleep(_CHORES_SECONDS)


def _inherited(config: Config, environ: Mapping[str, str]) -> list[socket.socket]:
    """The sockets that the service manager opened. What holds for `listen` holds for them."""
    sockets = systemd.inherited_sockets(environ, os.getpid())
    for one in sockets:
        refuse_plain_http(config, systemd.tcp_address(one), "the socket unit")
    return sockets


async def _say_alive(environ: Mapping[str, str]) -> None:
    """From the event loop: if that stands still, so does this."""
    seconds = systemd.watchdog_seconds(environ, os.getpid())
    while seconds is not None:
        _notify(environ, systemd.ALIVE)
        await trio.sleep(seconds / 3)


async def _make_ready_for_other_scripts() -> None:
    """The table of capital letters beyond ASCII: its 20 ms belong neither into the start nor into
    the first query that needs it."""
    with contextlib.suppress(Overloaded):  # no thread: the query pays for it
        await in_thread(partial(fold, "\u00c9"))


async def _say_stopping(stop: trio.Event, environ: Mapping[str, str]) -> None:
    await stop.wait()
    _notify(environ, systemd.STOPPING)


def _notify(environ: Mapping[str, str], state: bytes) -> None:
    try:
        systemd.notify(environ, state)
    except OSError as error:
        log.warning("the service manager cannot be told %s: %s", state.decode(), error)


def _tls(config: Config) -> ssl.SSLContext | None:
    if config.tls_cert is None or config.tls_key is None:
        return None
    return load_tls(config.tls_cert, config.tls_key)


def _url(config: Config, listener: trio.SocketListener) -> str:
    host, port, *_ = listener.socket.getsockname()
    scheme = "https" if config.tls_cert else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _descriptors() -> int:
    try:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError:  # a filter of system calls may forbid the question
        return _USUAL_DESCRIPTORS
    return soft


def _raise_descriptor_limit() -> None:
    """A soft limit of 1,024, the usual default, is for programs that use select()."""
    try:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except OSError as error:
        log.warning("the limit of open files stays as it is: %s", error.strerror)
