import codecs
import os
import threading
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from logd.cli.input.source import MAX_LINE_BYTES, READ_BYTES, Line, lines_of


def never() -> bool:
    return False


def through_pipe(*blocks: bytes) -> list[Line]:
    """What comes of these blocks, written one after the other."""
    read_end, write_end = os.pipe()

    def write() -> None:
        with os.fdopen(write_end, "wb", buffering=0) as pipe:
            for block in blocks:
                pipe.write(block)

    writer = threading.Thread(target=write)
    writer.start()
    lines = [line for line in lines_of(read_end, never, lambda count: None) if line is not None]
    writer.join()
    os.close(read_end)
    return lines


def texts(lines: list[Line]) -> list[bytes]:
    return [line.text for line in lines]


def test_lines_are_numbered_and_lose_their_ends() -> None:
    assert through_pipe(b"one\ntwo\r\n\nfour") == [
        Line(1, b"one"), Line(2, b"two"), Line(3, b""), Line(4, b"four"),
    ]  # fmt: skip


@given(st.lists(st.binary(max_size=5)))
def test_lines_do_not_depend_on_how_they_are_cut_on_the_way(blocks: list[bytes]) -> None:
    whole = b"".join(blocks)
    expected = [line.removesuffix(b"\r") for line in whole.split(b"\n")]
    expected[0] = expected[0].removeprefix(codecs.BOM_UTF8)
    if whole.endswith(b"\n") or not whole:
        expected.pop()
    assert texts(through_pipe(*blocks)) == expected


def test_a_line_over_the_limit_is_cut_and_marked_and_the_next_is_whole() -> None:
    long = b"x" * (MAX_LINE_BYTES + READ_BYTES)
    first, second = through_pipe(long + b"\nnext\n")
    assert not first.whole
    assert len(first.text) <= MAX_LINE_BYTES
    assert second == Line(2, b"next")


def test_a_line_at_the_limit_is_whole() -> None:
    (line,) = through_pipe(b"x" * MAX_LINE_BYTES + b"\n")
    assert line.whole
    assert len(line.text) == MAX_LINE_BYTES


def test_a_pause_in_a_pipe_is_told() -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"first\nhalf")
    lines = lines_of(read_end, never, lambda count: None)
    assert next(lines) == Line(1, b"first")
    assert next(lines) is None
    os.close(write_end)
    assert [line for line in lines if line] == [Line(2, b"half")]
    os.close(read_end)


def test_reading_ends_when_it_is_stopped() -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"first\nhalf")
    stopped = False
    lines = lines_of(read_end, lambda: stopped, lambda count: None)
    assert next(lines) == Line(1, b"first")
    stopped = True
    assert list(lines) == [Line(2, b"half")]
    os.close(read_end)
    os.close(write_end)


def test_a_file_that_is_stopped_within_a_line_gives_no_half_of_it(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"seven..\n" + b"line\n" * READ_BYTES)
    counts: list[int] = []
    fd = os.open(file, os.O_RDONLY)
    lines = texts([line for line in lines_of(fd, lambda: bool(counts), counts.append) if line])
    os.close(fd)
    assert sum(counts) == READ_BYTES
    assert set(lines) == {b"seven..", b"line"}


def test_a_file_that_is_read_to_its_end_gives_its_last_line(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"one\ntwo")
    fd = os.open(file, os.O_RDONLY)
    assert [line.text for line in lines_of(fd, never, lambda count: None) if line] == [
        b"one", b"two",
    ]  # fmt: skip
    os.close(fd)


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert texts(through_pipe(b"\xef\xbb\xbf{}\n\xef\xbb\xbfx\n")) == [b"{}", b"\xef\xbb\xbfx"]


def test_what_is_read_of_a_file_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"line\n" * 200_000)
    counts: list[int] = []
    count: Callable[[int], None] = counts.append
    fd = os.open(file, os.O_RDONLY)
    assert sum(1 for _ in lines_of(fd, never, count)) == 200_000
    os.close(fd)
    assert sum(counts) == 1_000_000
    assert max(counts) <= READ_BYTES
