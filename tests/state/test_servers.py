"""tests/support/servers.py: servers start once, are shared, and nobody's death leaves one behind."""

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.state.support.servers import run_directory

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
        [sys.executable, "-c", _USER, kind, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert user.stdout is not None
    return user, int(user.stdout.readline())


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


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
    time.sleep(0.2)
    assert is_alive(server)

    end(second)
    deadline = time.monotonic() + 20
    while is_alive(server) or directory.exists():
        assert time.monotonic() < deadline, "the server outlived its users"
        time.sleep(0.02)


def test_a_killed_server_comes_back_as_another_process() -> None:
    directory = run_directory(secrets.token_hex(6), "valkey")
    user, server = start_user("valkey", directory)

    os.kill(server, signal.SIGKILL)

    again, new_server = start_user("valkey", directory)
    deadline = time.monotonic() + 20
    while new_server == server:
        end(again)
        assert time.monotonic() < deadline
        again, new_server = start_user("valkey", directory)
    end(user)
    end(again)
