from pathlib import Path

from bench.start import measure


def test_a_store_of_two_days_is_started_and_asked(tmp_path: Path) -> None:
    rows = dict(measure(2, tmp_path, 20_000))
    assert rows["entries"] == "40,000"
    assert "word that occurs nowhere (0), ms: first, again" in rows
    assert "rare word (2), ms: first, again" in rows
