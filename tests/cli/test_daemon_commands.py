"""The commands that run a daemon, or work on its directory: with the real one, as a process."""

import errno
import os
import re
import signal
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import httpx
import pytest
import trustme
from command_line import TIMEOUT_SECONDS, command, environment, run_logd
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from logd.cli.main import main

StrPath = str | os.PathLike[str]
UNIT = Path(__file__).parents[2] / "systemd" / "logd.service"
ANY_PORT = ["--listen", "127.0.0.1:0"]


class Served:
    """A command that serves. `output`: what it said until it was ready."""

    def __init__(self, process: "subprocess.Popen[str]", output: str) -> None:
        self.process = process
        self.output = output

    @property
    def url(self) -> str:
        found = re.search(r"http://127\.0\.0\.1:\d+", self.output)
        assert found is not None
        return found[0]

    def rest(self) -> str:
        """What it said after it was ready, up to its end."""
        return cast(IO[str], self.process.stdout).read()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_SECONDS)


@contextmanager
def serving(*arguments: str, ready: str, directory: Path) -> Iterator[Served]:
    """Until the line that contains `ready` has come; ends the process in the end."""
    with subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=directory, env=environment(),
    ) as process:  # fmt: skip
        try:
            yield Served(process, _until(ready, cast(IO[str], process.stdout)))
        finally:
            process.kill()


def _until(ready: str, stream: IO[str]) -> str:
    output = ""
    while ready not in output:
        line = stream.readline()
        assert line, f"ended before it was ready: {output}"
        output += line
    return output


@contextmanager
def daemon(data: Path, *options: str) -> Iterator[Served]:
    arguments = ["serve", "--data", str(data), *ANY_PORT, *options]
    with serving(*arguments, ready="serving", directory=data.parent) as served:
        yield served


@contextmanager
def quickstart(directory: Path, *options: str) -> Iterator[Served]:
    arguments: Sequence[str] = ["quickstart", *ANY_PORT, *options]
    with serving(*arguments, ready="Ctrl-C stops", directory=directory) as served:
        yield served


def exported(output: str) -> dict[str, str]:
    """The variables of the welcome's `export` line."""
    (line,) = re.findall(r"^ *export (.*)$", output, re.MULTILINE)
    return dict(part.split("=", 1) for part in line.split())


def token_of(output: str) -> str:
    (token,) = set(re.findall(r"ldu_\w+", output))
    return str(token)


def me(url: str, token: str) -> httpx.Response:
    return httpx.get(
        f"{url}/v1/orgs/mine", headers={"Authorization": f"Bearer {token}"}, trust_env=False
    )


# ---------------------------------------------------------------- quickstart


def test_quickstart_is_ready_to_be_used_with_what_it_prints(tmp_path: Path) -> None:
    with quickstart(tmp_path) as served:
        env = environment(exported(served.output))
        assert run_logd("send", env=env, stdin="disk full\nall well\n").returncode == 0
        found = run_logd("query", "disk", env=env)
        assert found.stdout.endswith("disk full\n")
        assert run_logd("stats", env=env).stdout.split()[-2:] == ["total", "2"]
        (org,) = me(served.url, token_of(served.output)).json()
        assert org["role"] == "admin"
        assert httpx.get(f"{served.url}/v1/openapi.json", trust_env=False).status_code == 200
        assert served.stop(signal.SIGINT) == 0
    assert (tmp_path / "logd-data" / "FORMAT").exists()


def test_a_second_quickstart_shows_the_same_secrets_and_logs(tmp_path: Path) -> None:
    with quickstart(tmp_path) as served:
        first = exported(served.output), token_of(served.output)
        run_logd("send", env=environment(first[0]), stdin="kept\n")
        served.stop()
    with quickstart(tmp_path) as served:
        again = exported(served.output), token_of(served.output)
        assert run_logd("query", env=environment(again[0])).stdout.endswith("kept\n")
    assert again[1] == first[1]
    assert again[0]["LOGD_KEY"] == first[0]["LOGD_KEY"]
    assert again[0]["LOGD_PROJECT"] == first[0]["LOGD_PROJECT"]


def test_quickstart_takes_the_level_of_the_log(tmp_path: Path) -> None:
    with quickstart(tmp_path) as served:
        assert "INFO logd: serving logd-data on http" in served.output
        served.stop()
    with quickstart(tmp_path, "--log-level", "error") as served:
        assert "INFO logd" not in served.output
        served.stop(signal.SIGHUP)
        assert served.rest() == ""


def test_quickstart_keeps_its_secrets_for_their_owner_only(tmp_path: Path) -> None:
    with quickstart(tmp_path) as served:
        key = exported(served.output)["LOGD_KEY"]
    file = tmp_path / "logd-data" / "quickstart.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key in file.read_text()


def test_quickstart_issues_new_secrets_where_the_kept_ones_are_lost_or_void(tmp_path: Path) -> None:
    file = tmp_path / "logd-data" / "quickstart.json"
    seen = []
    for spoil in (
        lambda: None,
        file.unlink,
        lambda: file.write_bytes(file.read_bytes()[:-5]),
        lambda: file.write_bytes(file.read_bytes().replace(b"ldu_", b"\xff\xfe__")),
        lambda: file.write_text(file.read_text().replace("ldk_", "ldk_X")),
    ):
        spoil()
        with quickstart(tmp_path) as served:
            seen.append(exported(served.output))
            served.stop()
    with quickstart(tmp_path, "--new-secrets") as served:
        seen.append(exported(served.output))
        assert run_logd("stats", env=environment(seen[-1])).returncode == 0
    assert len({variables["LOGD_KEY"] for variables in seen}) == 6
    assert len({variables["LOGD_PROJECT"] for variables in seen}) == 1


# ---------------------------------------------------------------- users


def test_the_first_user_can_be_made_before_the_daemon_ran(tmp_path: Path) -> None:
    data = tmp_path / "data"
    made = run_logd("user", "add", "ann@example.com", "--data", str(data))
    assert (made.returncode, made.stderr) == (0, "")
    assert re.fullmatch(r"ldu_\w+\n", made.stdout)
    with daemon(data) as served:
        assert me(served.url, made.stdout.strip()).status_code == 200


def test_users_can_be_made_while_the_daemon_runs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with daemon(data) as served:
        tokens = [
            run_logd("user", "add", email, env=environment({"LOGD_DATA": str(data)})).stdout.strip()
            for email in ("ann@example.com", "ann@example.com", "bob@example.com")
        ]
        assert len(set(tokens)) == 3
        assert [me(served.url, token).status_code for token in tokens] == [200, 200, 200]


def test_a_bad_address_is_one_line(tmp_path: Path) -> None:
    made = run_logd("user", "add", "no address", "--data", str(tmp_path / "data"))
    assert (made.returncode, made.stdout) == (1, "")
    assert made.stderr == "logd: email: not an email address (ASCII, one @)\n"


def test_a_directory_that_belongs_to_another_user_is_named(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with daemon(data) as served:
        data.chmod(0)
        try:
            made = run_without_privileges("user", "add", "ann@example.com", "--data", str(data))
        finally:
            data.chmod(0o700)
        assert (made.returncode, made.stdout) == (1, "")
        assert made.stderr == f"logd: {data}/logd.sock: Permission denied\n"
        served.stop()
    journal = data / "control" / "journal.log"
    journal.chmod(0)
    started = run_without_privileges("serve", "--data", str(data), *ANY_PORT)
    assert started.returncode == 1
    assert started.stderr.endswith(f"control data: {journal}: Permission denied\n")


def run_without_privileges(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Where the tests run as root, without what lets it into any file."""
    drop = "--bounding-set=-dac_override,-dac_read_search"
    words = ["setpriv", drop, *command(*arguments)] if os.geteuid() == 0 else command(*arguments)
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


# ---------------------------------------------------------------- serve


def test_a_data_directory_has_one_daemon(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with daemon(data):
        for arguments in (["serve", *ANY_PORT], ["check"], ["reindex"]):
            second = run_logd(*arguments, "--data", str(data))
            assert second.returncode == 1
            (line,) = second.stderr.splitlines()
            assert "in use by another logd process" in line


def test_the_unit_does_not_try_again_where_an_option_is_wrong(tmp_path: Path) -> None:
    made = run_logd("serve", "--data", str(tmp_path), "--max-body-bytes", "much")
    assert made.stdout == ""
    (line,) = made.stderr.splitlines()
    assert "--max-body-bytes" in line
    assert f"RestartPreventExitStatus={made.returncode}\n" in UNIT.read_text()


@pytest.mark.parametrize("command", ["serve", "quickstart"])
def test_an_address_in_use_is_one_line_that_names_it(tmp_path: Path, command: str) -> None:
    with daemon(tmp_path / "data") as served:
        taken = served.url.removeprefix("http://")
        second = run_logd(command, "--data", str(tmp_path / "other"), "--listen", taken)
    assert second.returncode == 1
    assert "Traceback" not in second.stderr
    assert "ddress already in use" in second.stderr.splitlines()[-1]
    assert taken in second.stderr.splitlines()[-1]


def tls_files(directory: Path) -> dict[str, Path]:
    """By what they are: a certificate, its key, that key encrypted, another key."""
    issued, other = trustme.CA().issue_cert("localhost"), trustme.CA().issue_cert("localhost")
    plain = load_pem_private_key(issued.private_key_pem.bytes(), None)
    locked = plain.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pass phrase")
    )
    contents = {
        "certificate": issued.cert_chain_pems[0].bytes(),
        "key": issued.private_key_pem.bytes(),
        "locked": locked,
        "other": other.private_key_pem.bytes(),
    }
    for name, content in contents.items():
        (directory / name).write_bytes(content)
    return {name: directory / name for name in [*contents, "missing"]}


@pytest.mark.parametrize(
    ("certificate", "key", "says"),
    [
        ("missing", "key", "tls_cert: {missing}: No such file or directory"),
        ("certificate", "missing", "tls_key: {missing}: No such file or directory"),
        ("certificate", "locked", "tls_key: {locked} is encrypted"),
        ("certificate", "other", "{certificate} and {other} are no certificate and its key"),
        ("key", "certificate", "{key} and {certificate} are no certificate and its key"),
    ],
)
def test_what_is_wrong_with_certificate_or_key_is_one_line(
    tmp_path: Path, certificate: str, key: str, says: str
) -> None:
    files = tls_files(tmp_path)
    options = ["--tls-cert", str(files[certificate]), "--tls-key", str(files[key])]
    made = run_logd("serve", "--data", str(tmp_path / "data"), *ANY_PORT, *options)
    (line,) = made.stderr.splitlines()
    assert says.format_map(files) in line
    assert f"RestartPreventExitStatus={made.returncode}\n" in UNIT.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stopped_daemon_ends_with_0(tmp_path: Path, number: signal.Signals) -> None:
    with daemon(tmp_path / "data") as served:
        assert served.stop(number) == 0
        assert f"{number.name}: stopping" in served.rest()
    assert not (tmp_path / "data" / "logd.sock").exists()


def test_the_end_of_the_terminal_ends_no_daemon_that_was_told_to_ignore_it(tmp_path: Path) -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with daemon(tmp_path / "data") as served:
            served.process.send_signal(signal.SIGHUP)
            assert httpx.get(f"{served.url}/livez", trust_env=False).status_code == 200
            assert served.stop() == 0
            assert "SIGHUP" not in served.rest()
    finally:
        signal.signal(signal.SIGHUP, previous)


# ---------------------------------------------------------------- check, reindex


def test_a_sound_directory_checks_without_problems_before_and_after_reindex(tmp_path: Path) -> None:
    with quickstart(tmp_path, "--chunk-entries", "2000") as served:
        env = environment(exported(served.output))
        lines = "".join(f"request {number} took {number % 977} ms\n" for number in range(5000))
        assert run_logd("send", env=env, stdin=lines).returncode == 0
        served.stop()
    data = str(tmp_path / "logd-data")
    for arguments in (["check"], ["reindex"], ["check"]):
        done = run_logd(*arguments, "--data", data)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "no problems" in done.stdout
    with quickstart(tmp_path) as served:
        found = run_logd("query", "977", env=environment(exported(served.output)))
        assert "request 977" in found.stdout


def test_a_directory_is_checked_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after a fault of the disk, when the system mounts it anew to be read only."""
    data = tmp_path / "logd-data"
    with quickstart(tmp_path, "--chunk-entries", "2000") as served:
        env = environment(exported(served.output))
        run_logd("send", env=env, stdin="".join(f"line {n}\n" for n in range(5000)))
        served.stop()
    (data / "lock").unlink()  # a copy may lack it
    before = everything_in(data)
    open_ = os.open

    def open_read_only(path: StrPath, flags: int, *rest: Any, **more: Any) -> int:
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        if writes and Path(path).is_relative_to(data):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return open_(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", open_read_only)
    assert main(["check", "--data", str(data)]) == 0
    printed = capsys.readouterr()
    assert re.search(r"1 projects, \d chunks with .* no problems", printed.out)
    assert printed.err == ""
    assert everything_in(data) == before


def everything_in(directory: Path) -> dict[Path, tuple[int, int]]:
    """When each file and directory was changed, and its size."""
    return {
        path: (path.stat().st_mtime_ns, path.stat().st_size)
        for path in [directory, *directory.rglob("*")]
    }


def test_damage_is_found_and_exits_with_1(tmp_path: Path) -> None:
    with quickstart(tmp_path, "--chunk-entries", "2000") as served:
        env = environment(exported(served.output))
        run_logd("send", env=env, stdin="".join(f"line {n}\n" for n in range(5000)))
        served.stop()
    segment, *_ = (tmp_path / "logd-data").glob("projects/*/segments/*.seg")
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 0xFF
    segment.write_bytes(content)
    done = run_logd("check", "--data", str(tmp_path / "logd-data"))
    assert done.returncode == 1
    assert segment.name in done.stdout


def test_damage_to_the_control_data_is_found_and_exits_with_1(tmp_path: Path) -> None:
    with quickstart(tmp_path) as served:
        served.stop()
    journal = tmp_path / "logd-data" / "control" / "journal.log"
    content = bytearray(journal.read_bytes())
    content[len(content) // 2] ^= 0xFF
    journal.write_bytes(content)
    done = run_logd("check", "--data", str(tmp_path / "logd-data"))
    assert done.returncode == 1
    assert "control: the journal's bytes" in done.stdout
    assert journal.read_bytes() == content


def damage_the_control_data(data: Path) -> None:
    """After a clean stop: a frame of the journal, and the copy from which it could be restored."""
    journal = data / "control" / "journal.log"
    content = bytearray(journal.read_bytes())
    content[len(content) // 2] ^= 0xFF
    journal.write_bytes(content)
    (data / "control" / "control.mdb").unlink()


def test_what_is_lost_of_the_control_data_is_in_the_log(tmp_path: Path) -> None:
    data = tmp_path / "logd-data"
    with quickstart(tmp_path) as served:
        served.stop()
    damage_the_control_data(data)
    with daemon(data) as served:
        assert re.search(r"ERROR logd: control data: the journal's bytes .*: lost", served.output)
        served.stop()
    with daemon(data) as served:
        assert "control data" not in served.output


def test_a_command_that_mends_the_control_data_says_what_is_lost(tmp_path: Path) -> None:
    data = tmp_path / "logd-data"
    with quickstart(tmp_path) as served:
        served.stop()
    damage_the_control_data(data)
    made = run_logd("user", "add", "ann@example.com", "--data", str(data))
    assert made.returncode == 0
    assert re.fullmatch(r"ldu_\w+\n", made.stdout)
    assert re.search(r"^logd: control data: the journal's bytes .*: lost$", made.stderr, re.M)


@pytest.mark.parametrize("action", ["check", "reindex"])
def test_what_is_no_data_directory_is_left_alone(tmp_path: Path, action: str) -> None:
    done = run_logd(action, "--data", str(tmp_path))
    assert done.returncode == 1
    assert "is not a data directory" in done.stderr
    assert list(tmp_path.iterdir()) == []
