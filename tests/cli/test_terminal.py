import io

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.cli.entry_lines import EntryLines
from logd.cli.progress import Progress
from logd.cli.terminal import escaped, escaped_json, wants_colour


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def log(message: str, **more: object) -> msgspec.Raw:
    entry = {
        "id": "log_1", "projectId": "p", "level": "WARN", "message": message, "source": "s",
        "ts": "2026-01-01T00:00:00.000Z", "tags": [], "meta": {},
    }  # fmt: skip
    return msgspec.Raw(msgspec.json.encode(entry | more))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("naïve 日本 👍", "naïve 日本 👍"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("two\nlines\ttab\r", r"two\nlines\ttab\r"),
        ("\x9b31m\x7f\0", r"\x9b31m\x7f\x00"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
    ],
)
def test_what_could_steer_a_terminal_is_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


@given(st.text())
def test_nothing_escaped_breaks_a_line_or_begins_a_sequence(text: str) -> None:
    shown = escaped(text)
    assert len(shown.splitlines()) <= 1
    assert "\x1b" not in shown
    assert "\x9b" not in shown


@given(st.dictionaries(st.text(max_size=3), st.text(st.characters(exclude_categories=["Cs"]))))
def test_escaped_json_is_the_same_value(value: dict[str, str]) -> None:
    value = {key.encode("utf-8", "ignore").decode(): text for key, text in value.items()}
    shown = escaped_json(msgspec.json.encode(value).decode())
    assert msgspec.json.decode(shown) == value
    assert escaped(shown) == shown


def test_an_entry_is_one_line_with_its_tags() -> None:
    lines = EntryLines(json=False, terminal=False, colour=False)
    shown = lines.line(log("evil\n2026 INFO", tags=["a", "b\x1b"]))
    assert shown == r"2026-01-01T00:00:00.000Z WARN  s                evil\n2026 INFO #a #b\x1b"


def test_colours_are_of_the_level_and_end() -> None:
    shown = EntryLines(json=False, terminal=True, colour=True).line(log("m"))
    assert "\x1b[33mWARN \x1b[0m" in shown
    assert shown.count("\x1b[") == 4


def test_json_is_as_it_came_except_on_a_terminal() -> None:
    entry = log("csi \x9b31m")
    assert EntryLines(json=True, terminal=False, colour=False).line(entry) == bytes(entry).decode()
    shown = EntryLines(json=True, terminal=True, colour=False).line(entry)
    assert r"\u009b31m" in shown
    assert msgspec.json.decode(shown) == msgspec.json.decode(entry)


@pytest.mark.parametrize("terminal", [False, True])
def test_json_is_one_line_however_it_was_sent(terminal: bool) -> None:
    plain = log("a\nb", tags=["c"])
    spread = msgspec.Raw(msgspec.json.format(plain, indent=2).replace(b"\n", b"\r\n\t"))
    shown = EntryLines(json=True, terminal=terminal, colour=False).line(spread)
    assert len(shown.splitlines()) == 1
    assert msgspec.json.decode(shown) == msgspec.json.decode(plain)


def test_colour_needs_a_terminal_and_nobody_who_is_against_it() -> None:
    assert wants_colour(Terminal(), None)
    assert not wants_colour(Terminal(), "1")
    assert not wants_colour(io.StringIO(), None)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_progress_shows_part_count_and_rate_at_most_ten_times_a_second() -> None:
    screen, clock = Terminal(), Clock()
    progress = Progress(screen, 1000, clock)
    clock.seconds = 2.0
    progress.count(500)
    progress.draw(1000)
    progress.draw(1001)
    assert screen.getvalue() == "\r\x1b[K[############............]  50%  1,000 stored, 500/s"


def test_progress_without_a_known_end_has_no_bar() -> None:
    screen, clock = Terminal(), Clock()
    progress = Progress(screen, None, clock)
    clock.seconds = 1.0
    progress.draw(7)
    assert screen.getvalue() == "\r\x1b[K7 stored, 7/s"


def test_a_line_takes_the_place_of_the_progress() -> None:
    screen = Terminal()
    progress = Progress(screen, None, Clock())
    progress.draw(1)
    progress.say("bad line")
    assert screen.getvalue().endswith("\r\x1b[Kbad line\n")


def test_progress_is_silent_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    progress = Progress(stream, 1000, Clock())
    progress.draw(1)
    progress.clear()
    assert stream.getvalue() == ""
