import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import command, connected, run_logd
from scripted_daemon import PROJECT, Answer, Cut, ScriptedDaemon, problem

from logd.cli.input.source import MAX_LINE_BYTES
from logd.cli.main import main
from logd.cli.shipment import MAX_COMPLAINTS


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedDaemon]:
    """The daemon that commands of this process find."""
    with ScriptedDaemon() as daemon:
        for name, text in connected(daemon).items():
            if name.startswith("LOGD_"):
                monkeypatch.setenv(name, text)
        yield daemon


def written(directory: Path, text: str | bytes, name: str = "app.log") -> str:
    file = directory / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(file)


def test_lines_of_files_are_stored_in_order(
    scripted: ScriptedDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = written(tmp_path, "one\ntwo\n", "a.log")
    second = written(tmp_path, "three", "b.log")
    assert main(["send", first, second]) == 0
    assert scripted.messages == ["one", "two", "three"]
    assert [entry["source"] for entry in scripted.stored] == ["a.log", "a.log", "b.log"]
    assert {entry["projectId"] for entry in scripted.stored} == {PROJECT}
    assert capsys.readouterr() == ("", "logd: 3 stored\n")


def test_flags_give_source_level_and_tags(scripted: ScriptedDaemon, tmp_path: Path) -> None:
    file = written(tmp_path, "one\n")
    flags = ["--source", "web", "--level", "WARN", "--tag", "a", "--tag", "b"]
    assert main(["send", file, *flags]) == 0
    assert scripted.stored == [
        {"projectId": PROJECT, "level": "WARN", "message": "one", "source": "web",
         "tags": ["a", "b"]}
    ]  # fmt: skip


def test_names_that_are_not_utf8_are_taken_as_far_as_they_are_text(
    scripted: ScriptedDaemon, tmp_path: Path
) -> None:
    file = os.fsencode(tmp_path) + b"/app\xff.log"
    Path(os.fsdecode(file)).write_bytes(b"one\n")
    assert main(["send", os.fsdecode(file), "--tag", os.fsdecode(b"t\xff")]) == 0
    assert main(["send", os.fsdecode(file), "--source", os.fsdecode(b"s\xff")]) == 0
    assert main(["query", os.fsdecode(b"\xff"), "--project", os.fsdecode(b"\xff")]) == 0
    assert [(entry["source"], entry.get("tags")) for entry in scripted.stored] == [
        ("app\ufffd.log", ["t\ufffd"]),
        ("s\ufffd", None),
    ]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_keep_nothing_from_being_stored(
    scripted: ScriptedDaemon, tmp_path: Path, closed: str
) -> None:
    line = f"{shlex.join(command('send', written(tmp_path, 'one')))} {closed}"
    done = subprocess.run(["sh", "-c", line], env=connected(scripted), timeout=60, check=False)
    assert done.returncode == 0
    assert scripted.messages == ["one"]


def test_standard_input_that_is_closed_is_empty(scripted: ScriptedDaemon) -> None:
    line = f"{shlex.join(command('send'))} <&-"
    done = subprocess.run(
        ["sh", "-c", line], env=connected(scripted), capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"logd: 0 stored\n")


def test_standard_input_is_the_default(scripted: ScriptedDaemon) -> None:
    done = run_logd("send", env=connected(scripted), stdin='{"msg":"json"}\nplain\n')
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "logd: 2 stored\n")
    assert [(entry["message"], entry["source"]) for entry in scripted.stored] == [
        ("json", "stdin"),
        ("plain", "stdin"),
    ]


def test_nothing_to_send_is_nothing_wrong(
    scripted: ScriptedDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["send", written(tmp_path, "\n\n")]) == 0
    assert scripted.requests == []
    assert capsys.readouterr().err == "logd: 0 stored\n"


def test_batches_are_as_large_as_they_may_be(scripted: ScriptedDaemon, tmp_path: Path) -> None:
    file = written(tmp_path, "".join(f"{number}\n" for number in range(25)))
    assert main(["send", "--batch", "10", file]) == 0
    assert [len(request.entries) for request in scripted.requests] == [10, 10, 5]
    keys = {request.headers["idempotency-key"] for request in scripted.requests}
    assert len(keys) == 3


def test_batches_are_bounded_in_bytes_too(scripted: ScriptedDaemon, tmp_path: Path) -> None:
    scripted.max_body_bytes = 8 << 20
    file = written(tmp_path, ("x" * 8000 + "\n") * 1000)
    assert main(["send", file, "--batch", "100000"]) == 0
    assert len(scripted.stored) == 1000
    assert [len(request.body) < 5_000_000 for request in scripted.requests] == [True, True]


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_batches_can_be_compressed(
    scripted: ScriptedDaemon, tmp_path: Path, compression: str
) -> None:
    assert main(["send", written(tmp_path, "one\n"), "--compress", compression]) == 0
    assert scripted.messages == ["one"]
    assert scripted.requests[0].headers["content-encoding"] == compression


def test_faults_that_pass_cost_nothing(scripted: ScriptedDaemon, tmp_path: Path) -> None:
    scripted.script.extend([problem(503, "overloaded", "later"), Cut.AFTER_WORK, Cut.BEFORE_WORK])
    assert main(["send", written(tmp_path, "one\ntwo\n")]) == 0
    assert scripted.messages == ["one", "two"]


def test_refused_lines_are_told_with_their_place(
    scripted: ScriptedDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "good\n" + "x" * 9000 + "\nalso good\n")
    assert main(["send", file]) == 1
    assert scripted.messages == ["good", "also good"]
    assert capsys.readouterr().err == (
        "app.log:2: not stored: message: over 8192 bytes\nlogd: 2 stored, 1 refused\n"
    )


def test_lines_that_break_their_format_are_refused_here(
    scripted: ScriptedDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, 'plain\n{"message":"m"}\n')
    assert main(["send", "--format", "ndjson", file]) == 1
    assert scripted.messages == ["m"]
    assert "app.log:1: not stored: not a JSON object" in capsys.readouterr().err


def test_a_line_too_long_for_any_entry_is_refused_here(
    scripted: ScriptedDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, b"x" * (MAX_LINE_BYTES + 1) + b"\nnext\n")
    assert main(["send", file]) == 1
    assert scripted.messages == ["next"]
    assert "app.log:1: not stored: the line is too long" in capsys.readouterr().err


def test_many_refusals_are_counted_rather_than_told(
    scripted: ScriptedDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "no json\n" * 1000)
    assert main(["send", "--format", "json", file]) == 1
    told = capsys.readouterr().err.splitlines()
    assert len(told) == MAX_COMPLAINTS + 2
    assert told[-1] == "logd: 0 stored, 1,000 refused"


def test_csv_rows_are_stored(scripted: ScriptedDaemon, tmp_path: Path) -> None:
    file = written(tmp_path, "When,What\n2026-01-01,one\n2026-01-02,two\n")
    columns = ["--message-column", "What", "--time-column", "When"]
    assert main(["send", "--format", "csv", *columns, file]) == 0
    assert [(entry["message"], entry["timestamp"]) for entry in scripted.stored] == [
        ("one", "2026-01-01"),
        ("two", "2026-01-02"),
    ]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--format", "csv"], "--message-column"),
        (["--format", "csv", "--message-column", "M", "--delimiter", "::"], "--delimiter"),
    ],
)
def test_csv_flags_are_checked(
    scripted: ScriptedDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    flags: list[str], said: str,
) -> None:  # fmt: skip
    assert main(["send", *flags, written(tmp_path, "M\nm\n")]) == 2
    assert said in capsys.readouterr().err


def test_a_missing_csv_column_ends_the_command(
    scripted: ScriptedDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "A\nm\n")
    assert main(["send", "--format", "csv", "--message-column", "M", file]) == 1
    assert "no column 'M'; there are A" in capsys.readouterr().err


def test_a_file_that_is_not_there_does_not_keep_the_others(
    scripted: ScriptedDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "one\n")
    assert main(["send", "/no/such/file", file, str(tmp_path)]) == 1
    assert scripted.messages == ["one"]
    assert "logd: /no/such/file: No such file or directory\n" in capsys.readouterr().err


def test_a_refused_key_ends_the_command_with_counts(
    scripted: ScriptedDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["send", "--key", "ldk_wrong", written(tmp_path, "one\ntwo\n")]) == 1
    counts, reason = capsys.readouterr().err.splitlines()
    assert counts == "logd: 0 stored, 2 read but not stored"
    assert reason == "logd: refused (401): nobody has this credential"


def test_a_daemon_that_stays_overloaded_is_given_up(
    scripted: ScriptedDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.script.extend([problem(503, "overloaded", "later")] * 50)
    assert main(["send", "--retry-seconds", "0.3", written(tmp_path, "one\n")]) == 1
    assert "refused (503): later" in capsys.readouterr().err
    assert scripted.stored == []


def follow(scripted: ScriptedDaemon, *flags: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command("send", "--follow", *flags),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=connected(scripted),
    )


def test_following_sends_what_waits_without_more_input(scripted: ScriptedDaemon) -> None:
    with follow(scripted, "--flush-seconds", "0.05") as sending:
        assert sending.stdin is not None
        assert sending.stderr is not None
        for number in (1, 2):
            sending.stdin.write(b"line %d\n" % number)
            sending.stdin.flush()
            scripted.wait_for_requests(number)
        sending.stdin.close()
        assert sending.wait(timeout=30) == 0
        assert sending.stderr.read() == b"logd: 2 stored\n"
    assert scripted.messages == ["line 1", "line 2"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_following_once_all_is_stored(
    scripted: ScriptedDaemon, number: signal.Signals
) -> None:
    with follow(scripted, "--flush-seconds", "0.05") as sending:
        assert sending.stdin is not None
        sending.stdin.write(b"first\n")
        sending.stdin.flush()
        scripted.wait_for_requests(1)
        sending.send_signal(number)
        assert sending.wait(timeout=30) == 0
    assert scripted.messages == ["first"]


def test_an_interrupt_ends_waiting_for_a_daemon(scripted: ScriptedDaemon) -> None:
    scripted.script.extend([problem(503, "overloaded", "later", Retry_After="200")] * 2)
    with follow(scripted, "--flush-seconds", "0.05") as sending:
        assert sending.stdin is not None
        assert sending.stderr is not None
        sending.stdin.write(b"first\n")
        sending.stdin.flush()
        scripted.wait_for_requests(1)
        sending.send_signal(signal.SIGINT)
        assert sending.wait(timeout=30) == 1
        assert b"1 read but not stored" in sending.stderr.read()


def test_answers_that_are_not_logds_end_the_command(
    scripted: ScriptedDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.script.append(Answer(200, "hello"))
    assert main(["send", written(tmp_path, "one\n")]) == 1
    assert "does not answer as logd" in capsys.readouterr().err
