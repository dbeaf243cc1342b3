"""The workflows of this project and of a new one: outside checkers accept them, and they work."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.project import ROOT
from sampletool.kit.testing.tool import Tool
from sampletool.kit.testing.trees import make_environment
from tests.fork.support import create_project, run_in

_SCHEMAS = "--builtin-schema"
_CHECKERS = [
    ["zizmor", "--offline", "--quiet", "--persona=pedantic", ".github"],
    ["check-jsonschema", _SCHEMAS, "vendor.github-workflows", ".github/workflows/check.yml"],
    ["check-jsonschema", _SCHEMAS, "vendor.github-workflows", ".github/workflows/release.yml"],
    ["check-jsonschema", _SCHEMAS, "vendor.dependabot", ".github/dependabot.yml"],
    ["validate-pyproject", "pyproject.toml"],
]


@pytest.mark.parametrize("command", _CHECKERS, ids=lambda command: f"{command[0]} {command[-1]}")
def test_an_outside_checker_accepts_a_new_project(tool: Tool, command: list[str]) -> None:
    name, *arguments = command
    program = Path(sys.prefix, "bin", name)
    if not program.exists():
        pytest.skip(f"{name} is not installed: make .venv/.testable")
    project = create_project(tool, "--ci", "github", "--repository", "https://example.org/acme")

    run_in(project, str(program), *arguments)


def tag_check_of(project: Path) -> str:
    """Return the shell command that compares a tag with the version of the program."""
    text = (project / ".github" / "workflows" / "release.yml").read_text()
    match = re.search(r"name: The tag names the version\n +run: (.+)", text)
    assert match is not None
    return match[1]


def is_accepted(project: Path, tag: str) -> bool:
    """Return whether a release of the project could have this tag."""
    ran = subprocess.run(
        ["bash", "-c", tag_check_of(project)],
        cwd=project,
        env={**os.environ, "GITHUB_REF_NAME": tag},
        check=False,
    )
    return ran.returncode == 0


def test_a_release_of_a_new_project_needs_a_tag_with_its_version(tool: Tool) -> None:
    project = create_project(tool, "--ci", "github", "--command", "stock")
    # Installing would create this script.
    binaries = make_environment(project).parent
    script = binaries / "stock"
    script.write_text(f'#!/bin/sh\nexec "{binaries}/python" -m acme "$@"\n')
    script.chmod(0o755)

    assert is_accepted(project, "v0.1.0")
    assert not is_accepted(project, "v0.1.1")
    assert not is_accepted(project, "0.1.0-v")


def test_a_release_of_this_project_needs_a_tag_with_its_version(tool: Tool) -> None:
    if not (ROOT / ".venv" / "bin" / "tool").exists():
        pytest.skip("the project is not installed: make .venv/.ready")
    version = tool("config", "path").meta["tool_version"]

    assert is_accepted(ROOT, f"v{version}")
    assert not is_accepted(ROOT, f"v{version}.1")
