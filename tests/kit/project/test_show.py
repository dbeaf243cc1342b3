"""`make run` works whichever parts there are."""

import subprocess
import sys
from pathlib import Path

from sampletool.kit.project import ROOT
from sampletool.kit.testing.trees import copy_tree


def test_a_part_that_was_removed_is_not_shown(tmp_path: Path) -> None:
    tree = copy_tree(ROOT, tmp_path / "tree")
    for file in (tree / "docs").glob("*/show.py"):
        file.unlink()

    # This takes two seconds, because it starts forty processes.
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
