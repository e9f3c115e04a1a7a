"""A daemon under load that is killed, or asked to stop, again and again."""

from pathlib import Path

import pytest
from daemon_process import SMALL, Producers, names_and_sizes, running

STOP_SECONDS = 10.0


def kill_again_and_again(data: Path, cycles: int) -> None:
    with running(data, *SMALL) as daemon:
        (access,) = daemon.quickstart(1)
        with Producers(daemon, access) as producers:
            for cycle in range(cycles):
                producers.resume()
                producers.wait_for(10 + 7 * cycle % 60)
                producers.pause()
                daemon.kill()
                daemon.start()
                if cycle % 10 == 9:
                    producers.verify()
        producers.verify()
        assert not [line for line in daemon.said if "set aside" in line or "BUG" in line]


def test_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "data", 20)


@pytest.mark.slow
def test_five_hundred_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "data", 500)


def test_sigterm_under_load_ends_it_in_order_and_loses_nothing(tmp_path: Path) -> None:
    with running(tmp_path / "data", *SMALL) as daemon:
        (access,) = daemon.quickstart(1)
        with Producers(daemon, access) as producers:
            for _ in range(3):
                producers.resume()
                producers.wait_for(50)
                daemon.terminate()
                assert daemon.wait(STOP_SECONDS) == 0
                producers.pause()
                daemon.start()
        producers.verify()
        assert {answer.status for answer in producers.refused} <= {503}


def test_a_second_daemon_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with running(tmp_path / "data", *SMALL) as daemon:
        (access,) = daemon.quickstart(1)
        assert daemon.ingest(access, ["a", "b"]).status == 200
        before = names_and_sizes(daemon.data)
        with pytest.raises(AssertionError, match="in use by another logd"), running(daemon.data):
            pass
        assert names_and_sizes(daemon.data) == before
        assert daemon.ingest(access, ["c"]).status == 200
        assert sorted(message for _, message in daemon.listed(access)) == ["a", "b", "c"]
