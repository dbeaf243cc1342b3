"""Programs for Node.js: the conformance suite, the official TypeScript client and the Inspector.

`make node` installs them below .venv, with a Node.js of their own: that of Debian is too old.
"""

import os
from pathlib import Path

import pytest

MODULES = Path(__file__).parents[2] / ".venv" / "node" / "node_modules"
NODE = MODULES / "node" / "bin" / "node"

needs_node = pytest.mark.skipif(
    not NODE.exists(),
    reason="the programs for Node.js are not installed: make node",
)


def node_environment(environ: dict[str, str]) -> dict[str, str]:
    """Return the environment of a program that has to find our Node.js first."""
    path = os.pathsep.join([str(NODE.parent), environ.get("PATH", "")])
    return {**environ, "PATH": path}
