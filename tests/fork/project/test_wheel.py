"""A project that is made from an installed wheel is the one that is made from a checkout."""

import filecmp
import subprocess
import sys

from sampletool.fork.project import offered_parts
from sampletool.kit.program import PACKAGE
from sampletool.kit.testing.tool import Tool
from sampletool.kit.testing.trees import tracked_files


def test_from_a_wheel_it_is_the_same_to_the_byte(installed: dict[str, str], tool: Tool) -> None:
    call = ["fork", "acme", "--with", ",".join(offered_parts()), "--ci", "github", "--to"]

    argv = [sys.executable, "-m", PACKAGE, *call, "wheel"]
    ran = subprocess.run(argv, cwd=tool.cwd, env=installed, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout

    assert tool(*call, "checkout").status == 0
    files = tracked_files(tool.cwd / "checkout")
    assert tracked_files(tool.cwd / "wheel") == files
    assert filecmp.cmpfiles(tool.cwd / "wheel", tool.cwd / "checkout", files, shallow=False) == (files, [], [])
