"""What `make run` shows ends, whichever parts there are."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.kit.trees import ROOT


def test_a_part_that_is_gone_is_not_shown(tmp_path: Path) -> None:
    for name in ("sampletool", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (tmp_path / "docs").glob("*/show.py"):
        file.unlink()

    shown = subprocess.run(
        [sys.executable, "-m", "docs.kit.show"], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert "tool config set   20 of 20" in shown.stdout
    assert "tool build" not in shown.stdout
    assert "tool lab" not in shown.stdout
