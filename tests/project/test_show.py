"""What `make run` shows ends, whatever a fork has left of the commands."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.kit.show.__main__ import two_builds

_ROOT = Path(__file__).parents[2]


@pytest.fixture
def fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy without the commands that two of the parts need."""
    for name in ("sampletool", "docs"):
        shutil.copytree(_ROOT / name, tmp_path / "fork" / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "fork" / "sampletool" / "sample" / "commands" / "build.py").unlink(missing_ok=True)
    shutil.rmtree(tmp_path / "fork" / "sampletool" / "lab" / "commands", ignore_errors=True)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fork"))
    return tmp_path / "fork"


def test_what_needs_a_command_that_is_not_there_is_left_out(fork: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "docs.kit.show"], cwd=fork, capture_output=True, text=True, check=True
    )

    assert "tool config set   20 of 20" in shown.stdout
    assert "tool build" not in shown.stdout
    assert "tool lab" not in shown.stdout


def test_nobody_waits_for_a_build_that_has_ended(
    fork: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two_builds(tmp_path)

    assert "exit status 2" in capsys.readouterr().out
