"""The documentation names what there is."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from logd.cli.main import command_line
from logd.config import EDGE, OPTIONS, Config

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_option_is_in_the_operations_page_with_its_default() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    table = [row for row in page.splitlines() if row.startswith("|")]
    rows = {name: row for row in table for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert set(OPTIONS) <= rows.keys()
    config = Config(data=Path("d"))
    for name, small in EDGE.items():
        _, _, default, edge, _ = rows[name].split("|", 4)
        assert (said(default), said(edge)) == (getattr(config, name), small), name


def said(text: str) -> object:
    word = text.strip(" `")
    return word if word.isalpha() else number(text)


def number(text: str) -> int:
    digits = int(re.sub(r"\D", "", text))
    return digits << (20 if "MiB" in text else 10 if "KiB" in text else 0)


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from parsers(command)


def test_every_command_is_in_the_page_of_the_command_line() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    for parser in parsers(command_line()):
        if parser.get_default("run") is not None:
            assert re.search(rf"^ {{4}}{parser.prog} ", page, re.MULTILINE), parser.prog
