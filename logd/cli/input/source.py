"""The lines of files and pipes, as they come, with memory for one line at a time."""

import codecs
import os
import select
import stat
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

READ_BYTES: Final = 256 * 1024
MAX_LINE_BYTES: Final = 1024 * 1024
"""More than any entry may have (message and meta, escaped); what is longer is not kept."""

_LOOK_UP_MS: Final = 200
"""How often a wait for input ends to see whether the command is to stop."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """`text`: without its end. `whole` is False where the line was too long: it is cut."""

    number: int
    text: bytes
    whole: bool = True


def lines_of(
    fd: int, stopped: Callable[[], bool], count_bytes: Callable[[int], None]
) -> Iterator[Line | None]:
    """All lines until the end of the input or until `stopped()`; None, again and again, while
    none comes. `count_bytes` is told what has been read. Raises OSError.

    Stopped within a line of a file, it leaves out what it has of that; what a pipe has given is
    nowhere else, and the last of it a line.
    """
    splitter = _Splitter()
    waits = not stat.S_ISREG(os.fstat(fd).st_mode)
    for data in _blocks(fd, stopped, waits):
        if data is None:
            yield None
        elif data:
            count_bytes(len(data))
            yield from splitter.feed(data)
        else:
            yield from splitter.end()


def _blocks(fd: int, stopped: Callable[[], bool], waits: bool) -> Iterator[bytes | None]:
    """The last one is empty, if it comes to the end."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while not stopped():
        if waits and not poll.poll(_LOOK_UP_MS):
            yield None
            continue
        data = os.read(fd, READ_BYTES)
        yield data
        if not data:
            return
    if waits:
        yield b""


class _Splitter:
    """Blocks of any size -> numbered lines."""

    def __init__(self) -> None:
        self._number = 0
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[Line]:
        first, *others = data.split(b"\n")
        self._add(first)
        for text in others:
            yield self._line()
            self._add(text)

    def end(self) -> Iterator[Line]:
        if self._size:
            yield self._line()

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= MAX_LINE_BYTES:
            self._parts.append(part)

    def _line(self) -> Line:
        text = b"".join(self._parts)
        whole = self._size <= MAX_LINE_BYTES
        self._number += 1
        self._parts, self._size = [], 0
        if self._number == 1:
            text = text.removeprefix(codecs.BOM_UTF8)  # else it would be no JSON, and in the text
        return Line(self._number, text[:-1] if text.endswith(b"\r") else text, whole)
