import subprocess
import sys
from pathlib import Path

import pytest

SKIPS = {
    "mark": "import pytest\n@pytest.mark.skip\ndef test_a(): pass",
    "condition": "import pytest\n@pytest.mark.skipif(True, reason='x')\ndef test_a(): pass",
    "call": "import pytest\ndef test_a(): pytest.skip('x')",
    "fixture": "import pytest\n@pytest.fixture\ndef f(): pytest.skip('x')\ndef test_a(f): pass",
    "expected failure": "import pytest\n@pytest.mark.xfail\ndef test_a(): assert False",
    "module": "import pytest\npytest.skip('x', allow_module_level=True)",
    "import": "import pytest\npytest.importorskip('no_such_module')",
}


def run_pytest(directory: Path, test: str, *options: str) -> int:
    (directory / "test_it.py").write_text(test)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(directory),
         "-p", "no:cacheprovider", *options, str(directory)],
        env={"PYTHONPATH": str(Path(__file__).parent)}, capture_output=True, check=False,
    )  # fmt: skip
    return done.returncode


@pytest.mark.parametrize("kind", SKIPS)
def test_each_kind_of_skip_fails_the_run(tmp_path: Path, kind: str) -> None:
    assert run_pytest(tmp_path, SKIPS[kind], "-p", "no_skips") != 0


def test_what_is_not_skipped_passes(tmp_path: Path) -> None:
    assert run_pytest(tmp_path, "def test_a(): pass", "-p", "no_skips") == 0
