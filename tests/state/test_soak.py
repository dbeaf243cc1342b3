"""tests/state/soak.py, in small: `make soak` runs all of it. Its page: tests/state/project/test_soak.py"""

import re
import subprocess
import sys

import pytest


def soak(*args: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.state.soak", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)


@pytest.mark.parametrize("backend", ["sqlite", "postgres", "valkey"])
def test_killed_clients_and_servers_lose_nothing(backend: str) -> None:
    ran = soak("--only", backend, "--kills", "4", "--server-kills", "1")

    if "NoServer" in ran.stderr:
        pytest.skip(ran.stderr.splitlines()[-1])
    assert (ran.returncode, ran.stderr) == (0, "")
    server_kills = 0 if backend == "sqlite" else 1
    assert f"backend='{backend}', kills=4, server_kills={server_kills}, acknowledged=" in ran.stdout
    assert "lost=0, twice=0" in ran.stdout


def test_a_client_that_acknowledges_before_it_writes_and_is_killed_between_loses_something() -> None:
    """It goes on where its notes end, so nobody makes up for it. The others may have come as far, or not."""
    ran = soak("--only", "sqlite", "--kills", "1", "--careless")

    assert ran.returncode == 1
    assert re.search(r"lost=[1-4], twice=0", ran.stdout), ran.stdout
