import re
import subprocess
import sys

import pytest
from command_line import environment, run_logd

import logd
from logd.cli.main import main

HEAVY = ("httpx", "trio", "quart", "hypercorn", "numpy", "lmdb", "zstandard", "asyncio")


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\nfrom logd.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {f"'{name}'" for name in HEAVY} & set(re.findall(r"'[^']+'", done.stderr))
    assert "serve" in done.stdout


@pytest.mark.parametrize(
    "command",
    ["serve", "quickstart", "user", "user add", "send", "query", "stats", "check", "reindex"],
)
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    assert f"usage: logd {command}" in capsys.readouterr().out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"logd {logd.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["query", "--level", "LOUD"], ["user"]])
def test_wrong_use_is_exit_code_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_a_bad_option_is_one_line_and_exit_code_2() -> None:
    done = run_logd("serve", "--data", "d", "--cache-bytes", "lots")
    assert done.returncode == 2
    assert done.stderr == "logd: --cache-bytes: Expected `int`, got `str`\n"


def test_a_bad_variable_is_one_line_and_exit_code_2() -> None:
    done = run_logd("serve", "--data", "d", env=environment({"LOGD_CACH": "1"}))
    assert done.returncode == 2
    assert done.stderr.startswith("logd: LOGD_CACH: unknown variable")
