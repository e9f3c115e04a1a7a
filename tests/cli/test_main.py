import re
import subprocess
import sys

import pytest
from command_line import environment, run_logd

import logd
from logd.cli.main import main

HEAVY = ("httpx", "trio", "quart", "hypercorn", "numpy", "lmdb", "zstandard", "asyncio")


def test_help_loads_nothing_heavy() -> None:
    shown, modules = help_and_modules()
    assert not modules & set(HEAVY)
    assert "serve" in shown


def test_a_command_loads_no_other() -> None:
    shown, modules = help_and_modules("serve")
    assert "usage: logd serve" in shown
    assert "logd.cli.serve" in modules
    assert not modules & {f"logd.cli.{other}" for other in ("quickstart", "send", "read", "user")}


def help_and_modules(*command: str) -> tuple[str, set[str]]:
    """What `logd COMMAND --help` prints, and which modules it has then."""
    program = (
        "import sys\nfrom logd.cli.main import main\n"
        f"try: main([*{command}, '--help'])\nexcept SystemExit: pass\n"
        "print(sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, set(re.findall(r"'([^']+)'", done.stderr))


@pytest.mark.parametrize(
    "command",
    ["serve", "quickstart", "user", "user add", "send", "query", "stats", "check", "reindex"],
)
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    assert f"usage: logd {command}" in capsys.readouterr().out


def test_the_help_says_what_there_is_to_choose(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    shown = capsys.readouterr().out
    assert "--log-level {debug,info,warning,error}" in shown
    assert "--profile {default,edge}" in shown


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"logd {logd.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["query", "--level", "LOUD"], ["user"]])
def test_wrong_use_is_exit_code_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("flag", "text", "expected"),
    [
        ("--batch", "many", "a number from 1 to 100000 is expected"),
        ("--batch", "0", "a number from 1 to 100000 is expected"),
        ("--flush-seconds", "soon", "a number above 0 is expected"),
        ("--retry-seconds", "nan", "a number above 0 is expected"),
    ],
)
def test_a_bad_number_says_what_is_expected(
    flag: str, text: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["send", flag, text])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"argument {flag}: {expected}\n")


def test_a_bad_option_is_one_line_and_exit_code_2() -> None:
    done = run_logd("serve", "--data", "d", "--cache-bytes", "lots")
    assert done.returncode == 2
    assert done.stderr == "logd: --cache-bytes: 'lots': Expected `int`, got `str`\n"


def test_a_bad_variable_is_one_line_and_exit_code_2() -> None:
    done = run_logd("serve", "--data", "d", env=environment({"LOGD_CACH": "1"}))
    assert done.returncode == 2
    assert done.stderr.startswith("logd: LOGD_CACH: unknown variable")
