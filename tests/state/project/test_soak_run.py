"""tests/state/soak.py, for one round: `make soak` runs it for an hour. Its page: test_soak.py"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.project import ROOT
from tests.state.project.removed_checks import read_removed_checks


def soak(tree: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run with the code in `tree`: Python looks for modules in the working directory first."""
    program = [sys.executable, "-m", "tests.state.soak"]
    command = [*program, "--minutes", "0", "--seed", "5", *arguments]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command,
        cwd=tree,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )


@pytest.mark.parametrize("backend", ["sqlite", "postgres", "valkey"])
def test_a_round_with_killed_clients_and_servers_breaks_no_promise(backend: str) -> None:
    ran = soak(ROOT, "--only", backend)

    if "NoServer" in ran.stderr:
        pytest.skip(ran.stderr.splitlines()[-1])
    assert (ran.returncode, ran.stderr) == (0, "")
    servers_killed = 0 if backend == "sqlite" else 1
    assert ran.stdout.startswith(f"seed 5\nRow(backend='{backend}', ")
    assert f"rounds=1, clients_killed=6, servers_killed={servers_killed}, " in ran.stdout
    assert ran.stdout.rstrip().endswith("violations=0)")


def test_a_store_without_one_of_its_checks_is_reported_and_its_logs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    attempts = next(check for check in read_removed_checks() if check.refused_by == "attempts")
    attempts.remove(tmp_path / "tree")

    ran = soak(tmp_path / "tree", "--only", "sqlite")

    assert ran.returncode == 1
    assert "says that it is attempt 1" in ran.stdout
    (kept,) = tmp_path.glob("history-*/sqlite-0")
    assert f"The logs are in {kept}." in ran.stdout
    assert (kept / "end.log").exists()
