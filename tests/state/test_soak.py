"""tests/state/soak.py, in small: `make soak` runs all of it."""

import subprocess
import sys
from pathlib import Path

import pytest


def soak(*args: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.state.soak", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)


@pytest.mark.parametrize("backend", ["sqlite", "postgres", "valkey"])
def test_killed_clients_and_servers_lose_nothing(backend: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"

    ran = soak("--only", backend, "--kills", "12", "--server-kills", "2", "--page", page)

    if "NoServer" in ran.stderr:
        pytest.skip(ran.stderr.splitlines()[-1])
    assert (ran.returncode, ran.stderr) == (0, "")
    name, kills, server_kills, acknowledged, found, lost, twice, _ = page.read_text().splitlines()[-1].split(" | ")
    assert (name, kills, server_kills) == (f"| {backend}", "12", "-" if backend == "sqlite" else "2")
    assert (lost, twice) == ("0", "0")
    assert int(acknowledged) == int(found) >= 12
    assert "a part of it" in page.read_text()


def test_clients_that_acknowledge_before_they_write_lose_something() -> None:
    ran = soak("--only", "sqlite", "--kills", "12", "--careless")

    assert ran.returncode == 1
    assert "lost=0" not in ran.stdout
