import logging
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from scripted_daemon import KEY, PROJECT, Cut, ScriptedDaemon, problem

from logd.client import ClientError, LogdHandler


@pytest.fixture
def scripted() -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon() as daemon:
        yield daemon


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.Logger("shop.cart")
    yield logger
    for handler in logger.handlers:
        handler.close()


def attach(logger: logging.Logger, scripted: ScriptedDaemon, **options: Any) -> LogdHandler:
    handler = LogdHandler(scripted.url, KEY, PROJECT, **options)
    logger.addHandler(handler)
    return handler


def test_a_record_becomes_an_entry(logger: logging.Logger, scripted: ScriptedDaemon) -> None:
    handler = attach(logger, scripted, tags=["prod"])
    logger.warning("cart %d is empty", 7, extra={"user": "ann", "items": [1, 2]})
    handler.flush()
    (entry,) = scripted.stored
    assert entry["level"] == "WARN"
    assert entry["message"] == "cart 7 is empty"
    assert entry["source"] == "shop.cart"
    assert entry["tags"] == ["prod"]
    assert entry["projectId"] == PROJECT
    assert entry["timestamp"].endswith("Z")
    assert entry["meta"]["user"] == "ann"
    assert entry["meta"]["items"] == [1, 2]
    assert entry["meta"]["function"] == "test_a_record_becomes_an_entry"
    assert entry["meta"]["process"] == os.getpid()


@pytest.mark.parametrize(
    ("number", "level"),
    [(5, "DEBUG"), (10, "DEBUG"), (20, "INFO"), (29, "INFO"), (30, "WARN"), (40, "ERROR"),
     (50, "ERROR")],
)  # fmt: skip
def test_levels_are_mapped(
    logger: logging.Logger, scripted: ScriptedDaemon, number: int, level: str
) -> None:
    handler = attach(logger, scripted)
    logger.log(number, "at a level")
    handler.flush()
    assert [entry["level"] for entry in scripted.stored] == [level]


def test_an_exception_is_part_of_the_message(
    logger: logging.Logger, scripted: ScriptedDaemon
) -> None:
    handler = attach(logger, scripted)
    try:
        raise ValueError("no such cart")
    except ValueError:
        logger.exception("failed")
    handler.flush()
    assert scripted.messages[0].startswith("failed\nTraceback")
    assert scripted.messages[0].endswith("ValueError: no such cart")


def test_the_moment_of_logging_decides_what_is_sent(
    logger: logging.Logger, scripted: ScriptedDaemon
) -> None:
    handler = attach(logger, scripted, flush_seconds=60)
    cart = ["apple"]
    logger.info("cart: %s", cart)
    cart.append("pear")
    handler.flush()
    assert scripted.messages == ["cart: ['apple']"]


def test_a_message_over_the_limit_is_cut_and_marked(
    logger: logging.Logger, scripted: ScriptedDaemon
) -> None:
    handler = attach(logger, scripted)
    logger.info("é" * 5000)
    handler.flush()
    assert scripted.messages == ["é" * 4096]
    assert scripted.stored[0]["meta"]["truncated"] is True


def test_extra_values_over_the_limit_are_left_out_and_that_is_marked(
    logger: logging.Logger, scripted: ScriptedDaemon
) -> None:
    handler = attach(logger, scripted)
    logger.info("big", extra={"dump": "x" * 70_000})
    handler.flush()
    assert "dump" not in scripted.stored[0]["meta"]
    assert scripted.stored[0]["meta"]["truncated"] is True


def test_values_without_json_are_sent_as_their_repr(
    logger: logging.Logger, scripted: ScriptedDaemon
) -> None:
    handler = attach(logger, scripted)
    logger.info("odd \ud800", extra={"where": object, "bad": "\udfff"})
    handler.flush()
    assert scripted.messages == ["odd \\ud800"]
    assert scripted.stored[0]["meta"]["where"] == "<class 'object'>"
    assert scripted.stored[0]["meta"]["bad"] == "'\\udfff'"


class Unspeakable:
    def __repr__(self) -> str:
        raise AttributeError("not set up yet")


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def test_values_without_a_repr_cost_no_record(
    logger: logging.Logger, scripted: ScriptedDaemon
) -> None:
    handler = attach(logger, scripted)
    deep = nested(200_000)  # how deep is too deep, differs between versions of Python
    extra: dict[Any, object] = {"odd": Unspeakable(), "deep": deep, "big": 10**5000, 7: 1}
    logger.info("all the same", extra=extra)
    handler.flush()
    assert scripted.messages == ["all the same"]
    meta = scripted.stored[0]["meta"]
    assert meta["odd"] == "<Unspeakable: its repr raises AttributeError>"
    assert meta["deep"] == "<list: its repr raises RecursionError>"
    assert meta["big"] == "<int: its repr raises ValueError>"
    assert meta["7"] == 1


def test_many_records_go_in_few_requests(logger: logging.Logger, scripted: ScriptedDaemon) -> None:
    handler = attach(logger, scripted, flush_seconds=60)
    for number in range(2500):
        logger.info("n%d", number)
    handler.flush()
    assert scripted.messages == [f"n{number}" for number in range(2500)]
    assert len(scripted.requests) <= 4


def test_records_are_sent_without_a_flush(logger: logging.Logger, scripted: ScriptedDaemon) -> None:
    attach(logger, scripted, flush_seconds=0.01)
    logger.info("by itself")
    scripted.wait_for_requests(1)
    assert scripted.messages == ["by itself"]


def test_a_daemon_that_comes_back_gets_everything_once(
    logger: logging.Logger, scripted: ScriptedDaemon
) -> None:
    scripted.script.extend([Cut.AFTER_WORK, problem(503, "overloaded", "later")])
    handler = attach(logger, scripted)
    logger.info("patient")
    handler.flush()
    assert scripted.messages == ["patient"]
    assert handler.dropped == 0


def test_a_full_queue_drops_and_counts(
    logger: logging.Logger, scripted: ScriptedDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = attach(logger, scripted, capacity=3, flush_seconds=60)
    for number in range(5):
        logger.info("n%d", number)
    handler.flush()
    assert scripted.messages == ["n0", "n1", "n2"]
    assert handler.dropped == 2
    assert capsys.readouterr().err == "logd: log records are lost: the queue is full\n"


def test_a_refused_key_drops_counts_and_says_so(
    logger: logging.Logger, scripted: ScriptedDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = LogdHandler(scripted.url, "ldk_wrong", PROJECT)
    logger.addHandler(handler)
    logger.info("one")
    handler.flush()
    logger.info("two")
    handler.flush()
    assert handler.dropped == 2
    assert capsys.readouterr().err.count("log records are lost: refused (401)") == 1


def test_records_that_the_http_library_makes_of_our_requests_are_not_sent(
    scripted: ScriptedDaemon,
) -> None:
    handler = LogdHandler(scripted.url, KEY, PROJECT)
    noisy = logging.getLogger("httpx")
    noisy.addHandler(handler)
    noisy.setLevel(logging.DEBUG)
    try:
        noisy.info("mine")
        handler.flush()
        handler.flush()
    finally:
        noisy.setLevel(logging.NOTSET)
        noisy.removeHandler(handler)
        handler.close()
    assert scripted.messages == ["mine"]


def test_a_bad_log_call_raises_nothing(
    logger: logging.Logger, scripted: ScriptedDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = attach(logger, scripted)
    logger.info("%d", "not a number")
    logger.info("next")
    handler.flush()
    assert scripted.messages == ["next"]
    assert "Logging error" in capsys.readouterr().err


def test_closing_sends_what_waits_and_ends_the_thread(scripted: ScriptedDaemon) -> None:
    handler = LogdHandler(scripted.url, KEY, PROJECT, flush_seconds=60)
    logger = logging.Logger("short")
    logger.addHandler(handler)
    logger.info("last words")
    handler.close()
    assert scripted.messages == ["last words"]
    assert "logd-handler" not in {thread.name for thread in threading.enumerate()}


def join_senders() -> None:
    for thread in threading.enumerate():
        if thread.name == "logd-handler":
            thread.join()


def test_closing_does_not_wait_for_a_daemon_that_is_gone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gone = ScriptedDaemon()
    gone.close()
    handler = LogdHandler(gone.url, KEY, PROJECT, exit_seconds=0.05)
    logger = logging.Logger("lost")
    logger.addHandler(handler)
    logger.info("never sent")
    handler.close()
    join_senders()
    assert handler.dropped == 1
    assert "log records are lost" in capsys.readouterr().err


def test_the_end_of_a_program_waits_once_for_a_daemon_that_is_gone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = ScriptedDaemon()
    gone.close()
    handler = LogdHandler(gone.url, KEY, PROJECT, exit_seconds=0.05)
    flush, flushes = handler.flush, 0

    def counted() -> None:
        nonlocal flushes
        flushes += 1
        flush()

    monkeypatch.setattr(handler, "flush", counted)
    handler.handle(logging.makeLogRecord({"name": "lost", "levelno": 20, "msg": "never sent"}))
    logging.shutdown([weakref.ref(handler)])
    join_senders()
    assert flushes == 1
    assert handler.dropped == 1
    assert "log records are lost" in capsys.readouterr().err


def test_an_address_that_is_none_is_refused_where_the_handler_is_made() -> None:
    with pytest.raises(ClientError):
        LogdHandler("nowhere", KEY, PROJECT)


PROGRAM = """
import logging, os, sys
from logd.client import LogdHandler
handler = LogdHandler(sys.argv[1], sys.argv[2], sys.argv[3], flush_seconds=60)
logging.getLogger().addHandler(handler)
logging.getLogger().setLevel(logging.DEBUG)
logging.info("parent")
if os.fork() == 0:
    logging.info("child")
    logging.shutdown()
    os._exit(0)
os.wait()
"""


def test_a_program_and_its_fork_lose_nothing_at_their_end(scripted: ScriptedDaemon) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM,
         scripted.url, KEY, PROJECT],
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(scripted.messages) == ["child", "parent"]
