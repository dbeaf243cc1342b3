"""What the tests of this part share: a choice with defaults, and commands in a new project."""

import re
import subprocess
from pathlib import Path
from typing import Any

from sampletool.fork.choice import Choice
from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.testing.tool import Tool

NAME_OF_ORIGINAL = re.compile(
    rf"{PACKAGE}|\b{PROGRAM}\.toml|[/\"'`]\.{PROGRAM}\b|{PROGRAM.upper()}_[A-Z]"
    rf"|[`\"]{PROGRAM}[`\" ]|\b{PROGRAM} (?:(?:config|lock|inventory|item)\b|--)"
)
"""What a new project must not contain: the names of the project that it was created from.

A text about a server for agents may say "the tool lock_list". There, `tool` is not the program.
"""


def make_choice(**changes: Any) -> Choice:
    """Return the choice of a user who passes no option but the name, with these changes."""
    fields: dict[str, Any] = {
        "name": "acme",
        "command": "acme",
        "parts": frozenset(),
        "author": "A",
        "description": "D",
        "license_holder": "H",
        "repository": "",
        "documentation": "",
        "ci": "none",
        "kit": "vendored",
        "kit_requirement": "",
    }
    return Choice(**{**fields, **changes})


def create_project(tool: Tool, *options: str, name: str = "acme") -> Path:
    """Create a project in the current directory, and return its directory. It is committed."""
    for role in ("AUTHOR", "COMMITTER"):
        tool.environ[f"GIT_{role}_NAME"] = "Ann"
        tool.environ[f"GIT_{role}_EMAIL"] = "ann@example.org"
    created = tool("fork", name, *options).data
    assert created["is_committed"]
    return tool.cwd / name


def files_below(directory: Path) -> list[str]:
    """Return the paths of all files, relative to the directory."""
    paths = []
    for path in directory.rglob("*"):
        if path.is_file():
            paths.append(path.relative_to(directory).as_posix())
    return sorted(paths)


def run_in(project: Path, *command: str) -> str:
    """Run a command in a project, and return its output. Fail if the command fails."""
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]
    return ran.stdout
