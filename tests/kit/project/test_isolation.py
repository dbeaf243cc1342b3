"""The tests use nothing outside their own directories, even if a workspace file is above them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.program import WORKSPACE_FILE
from sampletool.kit.project import ROOT

_TESTS = ("test_config.py", "test_config_set.py", "test_lock.py")
"""Many of these tests run in a directory without a workspace, or change settings."""


@pytest.mark.parametrize("content", ["[settings]\njobs = 7\n", "this is not TOML"])
def test_the_suite_passes_below_a_foreign_workspace_file_and_leaves_it_untouched(
    tmp_path: Path, content: str
) -> None:
    foreign_file = tmp_path / WORKSPACE_FILE
    foreign_file.write_text(content)
    tests = [f"tests/kit/commands/{name}" for name in _TESTS]
    options = ["-n2", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}"]

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout
    assert foreign_file.read_text() == content
    assert set(os.listdir(tmp_path)) == {"base", "home", WORKSPACE_FILE}
