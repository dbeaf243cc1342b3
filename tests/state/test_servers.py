"""tests/state/support/servers.py: servers start once and are shared. A kill leaves none behind."""

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sampletool.kit.testing.plugin import kill_remaining_processes
from tests.state.support.servers import Server, run_directory
from tests.state.support.waiting import is_alive, wait_until

_USER = """
import sys
from pathlib import Path
from tests.state.support.servers import Server
server = Server(sys.argv[1], Path(sys.argv[2]))
print(server.running.pid, flush=True)
sys.stdin.read()
"""


def start_user(kind: str, directory: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Another test run, which uses the server until it is killed."""
    user = subprocess.Popen(
        [sys.executable, "-c", _USER, kind, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert user.stdout is not None
    return user, int(user.stdout.readline())


def end(user: subprocess.Popen[bytes]) -> None:
    user.kill()
    user.communicate()


@pytest.mark.parametrize("kind", ["postgres", "valkey"])
def test_a_server_is_shared_and_goes_with_its_last_user_even_after_kill_9(kind: str) -> None:
    directory = run_directory(secrets.token_hex(6), kind)
    first, server = start_user(kind, directory)
    second, same_server = start_user(kind, directory)
    assert server == same_server

    end(first)
    third, still_the_same = start_user(kind, directory)
    assert still_the_same == server
    end(second)
    assert is_alive(server)

    end(third)
    wait_until(lambda: not is_alive(server) and not directory.exists())


def test_a_new_server_finds_no_file_of_one_that_is_being_removed() -> None:
    directory = run_directory(secrets.token_hex(6), "valkey")
    last_user, _server = start_user("valkey", directory)
    # It takes a while to remove these, and some of them come after the lock file.
    for number in range(20):
        folder = directory / f"old-{number}"
        folder.mkdir()
        for file_number in range(100):
            (folder / str(file_number)).touch()
    lock_file = directory / "users"

    end(last_user)
    while lock_file.exists():
        # Join as soon as possible, so do not sleep.
        pass
    next_server = Server("valkey", directory)

    assert list(directory.glob("old-*")) == []
    next_server.end()


def test_a_server_goes_also_where_a_test_that_failed_left_its_user(tmp_path: Path) -> None:
    directory = run_directory(secrets.token_hex(6), "valkey")
    user, server = start_user("valkey", directory)

    kill_remaining_processes(tmp_path)

    user.communicate()
    wait_until(lambda: not is_alive(server) and not directory.exists())


def test_a_killed_server_comes_back_as_another_process() -> None:
    directory = run_directory(secrets.token_hex(6), "valkey")
    user, server = start_user("valkey", directory)

    os.kill(server, signal.SIGKILL)

    wait_until(lambda: json.loads((directory / "running.json").read_text())["pid"] != server)
    assert not is_alive(server)
    end(user)


def test_a_server_can_be_kept_away_for_a_while(private_server: Callable[[str], Server]) -> None:
    server = private_server("valkey")
    before = server.running.pid

    with server.killed():
        wait_until(lambda: not is_alive(before))
        assert server.running.pid == before

    assert is_alive(server.running.pid)
