"""The admin socket: what `logd user add` asks of a running daemon."""

import socket
import stat
from pathlib import Path

import msgspec
import pytest
import trio
from live_daemon import ADMIN_EMAIL, Daemon, DaemonFactory

from logd.daemon.admin_client import NoDaemon, admin_call
from logd.daemon.admin_requests import AdminReply, Quickstart, UserAdd, UserSetPassword


async def test_a_user_is_made_once_and_gets_a_fresh_token_each_time(daemon: Daemon) -> None:
    first = await daemon.command(UserAdd("grace@example.com"))
    again = await daemon.command(UserAdd("GRACE@example.com"))
    assert first.user_id == again.user_id
    assert first.token != again.token
    for token in (first.token, again.token):
        me = (await daemon.call("GET", "/v1/me", token)).json()
        assert (me["id"], me["serverAdmin"]) == (first.user_id, False)


async def test_the_first_user_is_server_admin(daemon: Daemon) -> None:
    assert (await daemon.call("GET", "/v1/me", daemon.admin)).json()["serverAdmin"] is True


async def test_quickstart_finds_what_it_made_before(daemon: Daemon) -> None:
    again = await daemon.command(Quickstart(ADMIN_EMAIL, "Acme", "acme", "Web shop"))
    assert (again.user_id, again.org_id, again.project_id) == (
        daemon.admin_id,
        daemon.org,
        daemon.project,
    )
    assert again.key not in (None, daemon.key)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (UserAdd("no address"), "email"),
        (UserSetPassword("nobody@example.com", "long enough"), "no such user"),
        (UserSetPassword(ADMIN_EMAIL, "short"), "password"),
        (Quickstart("other@example.com", "Acme", "acme", "P"), "taken"),
    ],
)
async def test_a_refusal_says_why(
    daemon: Daemon, request_: UserAdd | UserSetPassword | Quickstart, error: str
) -> None:
    reply = await daemon.command(request_)
    assert reply.error is not None
    assert error in reply.error
    assert reply.token is None


async def test_a_password_is_set(daemon: Daemon) -> None:
    reply = await daemon.command(UserSetPassword(ADMIN_EMAIL, "correct horse battery"))
    assert reply == AdminReply(user_id=daemon.admin_id)


async def test_only_the_owner_may_open_the_socket(daemon: Daemon) -> None:
    assert stat.S_IMODE((daemon.data / "logd.sock").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"nonsense\n", b'{"op":"rm"}\n', b"[" * 70_000, b"\xff\n", b'{"op":1}\n']
)
async def test_nonsense_is_refused_and_the_next_request_works(daemon: Daemon, line: bytes) -> None:
    stream = await trio.open_unix_socket(str(daemon.data / "logd.sock"))
    async with stream:
        await stream.send_all(line)
        await stream.send_eof()
        reply = msgspec.json.decode(await stream.receive_some(), type=AdminReply)
    assert reply.error is not None
    assert (await daemon.command(UserAdd("a@example.com"))).error is None


def test_without_a_daemon_there_is_nobody_to_ask(tmp_path: Path) -> None:
    with pytest.raises(NoDaemon):
        admin_call(tmp_path, UserAdd("a@example.com"))


async def test_a_socket_left_behind_is_replaced(make_daemon: DaemonFactory, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(data / "logd.sock"))
    with pytest.raises(NoDaemon):
        admin_call(data, UserAdd("a@example.com"))
    async with make_daemon(data=data):
        pass
    assert not (data / "logd.sock").exists()


async def test_a_long_path_is_no_matter(make_daemon: DaemonFactory, tmp_path: Path) -> None:
    data = tmp_path / ("d" * 100) / ("e" * 100)
    async with make_daemon(data=data) as daemon:
        assert (await daemon.command(UserAdd("a@example.com"))).token is not None
