"""Run one round of random clients in a process of its own, with any copy of the store's code."""

import os
import subprocess
import sys
from pathlib import Path

from sampletool.kit.project import ROOT

from .operation import Operation, read_history
from .recording import Plan

_LONGEST_SECONDS = 120


def record_in(tree: Path, url: str, directory: Path, plan: Plan) -> list[Operation]:
    """Run one round with the code in `tree`. Return what the clients recorded in `directory`."""
    program = [sys.executable, "-m", "tests.state.history.recording", url, str(directory)]
    options = {
        "--seed": plan.seed,
        "--clients": plan.clients,
        "--calls": plan.calls,
        "--kills": plan.kills,
        "--drain-seconds": plan.drain_seconds,
        "--round": plan.round_name,
    }
    for option, value in options.items():
        program += [option, str(value)]
    # Python looks for modules in the working directory first: the package is that of the tree, and
    # the tests are those of the project.
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(program, cwd=tree, env=env, check=True, timeout=_LONGEST_SECONDS)
    return read_history(directory)
