"""The walk of the architecture page is the way that a real call goes, file by file, and without a jump back."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool
from tests.kit.trees import ROOT

_TRACED = """
import json, sys
from pathlib import Path
import sampletool
package = str(Path(sampletool.__file__).parent)
files = []

def see(frame, event, argument):
    name = frame.f_code.co_filename
    is_work = event == "call" and frame.f_code.co_flags & 2  # a function; the body of a class or module runs only once
    if is_work and name.startswith(package) and frame.f_code.co_name[0] != "<" and files[-1:] != [name]:
        files.append(name)

import os
from sampletool.kit.start import main
os._exit = lambda status: None
sys.argv = ["tool", "config", "set", "key1", "val1"]
sys.setprofile(see)
main()
sys.setprofile(None)
sys.stderr.write(json.dumps([str(Path(name).relative_to(Path(package).parent)) for name in files]))
"""
_LONGEST_WALK = 15


@pytest.fixture
def walk() -> list[str]:
    page = (ROOT / "docs" / "kit" / "architecture.md").read_text()
    return re.findall(r"^\d+\. `([\w/]+\.py)`", page, re.MULTILINE)


def test_the_walk_is_short_and_goes_as_the_call_goes(walk: list[str], tool: Tool, workspace: Path) -> None:
    # A fresh interpreter: what a call imports only when it needs it is a part of the walk.
    traced = [sys.executable, "-c", _TRACED]
    ran = subprocess.run(traced, cwd=workspace, env=tool.environ, capture_output=True, text=True, check=True)
    calls = iter(json.loads(ran.stderr))

    assert len(walk) <= _LONGEST_WALK
    assert [name for name in walk if name not in calls] == []  # `in` goes on from where it stands: the order counts
