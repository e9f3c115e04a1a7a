import pytest

from logd.cli.input.values import level_of, time_of


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("debug", "DEBUG"), ("TRACE", "DEBUG"), ("Info", "INFO"), ("notice", "INFO"),
        ("WARNING", "WARN"), (" warn ", "WARN"), ("err", "ERROR"), ("FATAL", "ERROR"),
        ("0", "ERROR"), ("3", "ERROR"), ("4", "WARN"), ("5", "INFO"), ("6", "INFO"), ("7", "DEBUG"),
        ("10", "DEBUG"), ("20", "DEBUG"), ("30", "INFO"), ("40", "WARN"), ("50", "ERROR"),
        ("60", "ERROR"),
    ],
)  # fmt: skip
def test_levels_of_other_programs_are_known(text: str, level: str) -> None:
    assert level_of(text) == level


@pytest.mark.parametrize("text", ["", "loud", "8", "9", "-1", "1000", "\u0663", "3.0"])
def test_what_is_no_level_is_none(text: str) -> None:
    assert level_of(text) is None


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-31T23:59:59.123456789Z", "2026-01-31T23:59:59.123456789Z"),
        ("2026-01-31 23:59:59,5+02:00", "2026-01-31 23:59:59.5+02:00"),
        (" 2026-01-31 ", "2026-01-31"),
        ("1700000000", "2023-11-14T22:13:20.000Z"),
        ("1700000000.25", "2023-11-14T22:13:20.250Z"),
        ("1.7e9", "2023-11-14T22:13:20.000Z"),
        ("1700000000123", "2023-11-14T22:13:20.123Z"),
        ("1700000000123456", "2023-11-14T22:13:20.123456Z"),
        ("1700000000123456789", "2023-11-14T22:13:20.123456789Z"),
    ],
)
def test_times_of_other_programs_are_known(text: str, time: str) -> None:
    assert time_of(text) == time


@pytest.mark.parametrize(
    "text", ["", "now", "20260131", "12.5", "-1700000000", "nan", "inf", "1e30", "2026-02-30",
             "99999999999999999999", "1e9999", "1e1000000", "-1e1000000", "1e9999999999999999999"],
)  # fmt: skip
def test_what_is_no_time_is_none(text: str) -> None:
    assert time_of(text) is None
