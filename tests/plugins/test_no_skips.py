import re
import subprocess
import sys
from pathlib import Path

SKIPPING_TESTS = {
    "mark": "import pytest\n@pytest.mark.skip\ndef test_a(): pass",
    "condition": "import pytest\n@pytest.mark.skipif(True, reason='x')\ndef test_a(): pass",
    "call": "import pytest\ndef test_a(): pytest.skip('x')",
    "fixture": "import pytest\n@pytest.fixture\ndef f(): pytest.skip('x')\ndef test_a(f): pass",
    "expected_failure": "import pytest\n@pytest.mark.xfail\ndef test_a(): assert False",
}
SKIPPING_MODULES = {
    "module": "import pytest\npytest.skip('x', allow_module_level=True)",
    "import": "import pytest\npytest.importorskip('no_such_module')",
}
PASSING = {"passing": "def test_a(): pass"}


def counts_of(directory: Path, tests: dict[str, str]) -> tuple[int, dict[str, int]]:
    """Exit code, and how many tests ended how, of a run with the plug-in."""
    for name, text in tests.items():
        (directory / f"test_{name}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(directory),
         "-p", "no:cacheprovider", "-p", "no_skips", "--continue-on-collection-errors",
         str(directory)],
        env={"PYTHONPATH": str(Path(__file__).parent)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    closing = done.stdout.splitlines()[-1]
    return done.returncode, {how: int(n) for n, how in re.findall(r"(\d+) ([a-z]+)", closing)}


def test_each_kind_of_skip_fails(tmp_path: Path) -> None:
    code, counts = counts_of(tmp_path, {**SKIPPING_TESTS, **SKIPPING_MODULES, **PASSING})
    assert code == 1
    assert counts.keys() == {"failed", "errors", "passed"}
    assert counts["failed"] + counts["errors"] == len(SKIPPING_TESTS) + len(SKIPPING_MODULES)


def test_what_is_not_skipped_passes(tmp_path: Path) -> None:
    assert counts_of(tmp_path, PASSING) == (0, {"passed": 1})
