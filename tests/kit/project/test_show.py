"""What `make run` shows ends, whichever parts there are."""

import subprocess
import sys
from pathlib import Path

from tests.kit.trees import ROOT, copy_tree


def test_a_part_that_is_gone_is_not_shown(tmp_path: Path) -> None:
    tree = copy_tree(ROOT, tmp_path / "tree")
    for file in (tree / "docs").glob("*/show.py"):
        file.unlink()

    # It takes two seconds: what it shows are forty real processes, of the tree and not of ours.
    shown = subprocess.run(
        [sys.executable, "-m", "docs.kit.show"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "tool config set   20 of 20" in shown.stdout
    assert "tool build" not in shown.stdout
    assert "tool lab" not in shown.stdout
