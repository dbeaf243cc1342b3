"""The page docs/kit/traces.md names every path that a command creates, also for a moment."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.part_discovery import command_packages
from sampletool.kit.program import PACKAGE, PROGRAM, WORKSPACE_FILE
from sampletool.kit.project import ROOT
from sampletool.kit.testing.tool import Tool, declared_specs

_PAGE = "docs/kit/traces.md"

_NEEDS_TERMINAL = {"config.edit"}

_PLACEHOLDERS = {
    "RANDOM": "[a-z0-9_]{8}",
    "PID": "[0-9]+",
    "UID": "[0-9]+",
    "NAME": "[^/]+",
    "SESSION": "[A-Za-z0-9][^/]*",
    "REQUEST": "[0-9a-f]{16}",
}

_NOTE_CREATED_PATHS = """
import os, sys

log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def note(event, args):
    path = None
    if event == "open" and args[2] & os.O_CREAT:
        path = args[0]
    elif event == "os.mkdir":
        path = args[0]
    elif event in ("os.rename", "os.link", "os.symlink"):
        path = args[1]
    if isinstance(path, (str, bytes, os.PathLike)):
        # A path may be relative to an open directory instead of the current one.
        if event == "os.rename" and args[3] >= 0:
            directory = os.readlink("/proc/self/fd/%d" % args[3])
            path = os.path.join(directory, os.fsdecode(path))
        os.write(log, os.path.abspath(os.fsencode(path)) + b"\\n")

sys.addaudithook(note)
"""
"""A sitecustomize.py that every Python process of a command runs. A file can exist for a moment
only, and after kill -9 it stays. So looking at the directories afterwards is not enough."""


def _commands() -> list[str]:
    """Return the commands that create files, of the kit and of the parts that the page is about."""
    names = []
    for name, spec in declared_specs().items():
        creates_files = spec.effect != "nothing" or name == "doctor"
        is_on_page = _package_of(name) in _packages_on_page()
        if creates_files and is_on_page and name not in _NEEDS_TERMINAL:
            names.append(name)
    return names


def _package_of(command: str) -> str:
    """Return the package with the folder in which a command, or its group, has its file."""
    first_word = command.partition(".")[0].replace("-", "_")
    for package in command_packages():
        folder = ROOT / package.replace(".", "/")
        if (folder / f"{first_word}.py").exists() or (folder / first_word).is_dir():
            return package
    raise AssertionError(f"{command} has no file")


def _packages_on_page() -> set[str]:
    """Return the packages with commands of the kit, and of each part that has a row on the page.

    A fork has parts of its own, which are not on the page.
    """
    parts = set(re.findall(r"<!-- (\w+) -->", (ROOT / _PAGE).read_text()))
    return {f"{PACKAGE}.{part}.commands" for part in ("kit", *parts)}


@pytest.fixture
def places(tool: Tool) -> dict[str, str]:
    """Return the paths of the places that the page names."""
    return {
        "STATE": os.path.join(tool.environ["XDG_STATE_HOME"], PACKAGE),
        "CONFIG": os.path.join(tool.environ["XDG_CONFIG_HOME"], PACKAGE),
        "TEMP": tool.environ["TMPDIR"],
        "WORKSPACE": str(tool.cwd),
        "HOME": tool.environ["HOME"],
    }


@pytest.mark.parametrize("command", _commands())
def test_the_page_names_every_path_that_a_command_creates(
    command: str,
    tool: Tool,
    home: Path,
    tmp_path: Path,
    places: dict[str, str],
) -> None:
    spec = declared_specs()[command]
    _prepare(tool, command)
    existing = {str(path) for path in tmp_path.rglob("*")}
    example = f"{PROGRAM} {spec.examples[0]}"

    noted = _run_and_note(example, tool, tmp_path / "tracing")

    created = noted | {str(path) for path in tmp_path.rglob("*")} - existing
    unnamed = []
    for path in sorted(created):
        if not path.startswith((f"{tool.cwd}/", f"{home}/")):
            continue
        if _is_argument(path, example, tool.cwd) or _is_named(path, _patterns(), places):
            continue
        unnamed.append(path)
    assert len(noted) > 0
    assert unnamed == [], f"{_PAGE}: add a row for these paths, which `{example}` creates"


def test_the_page_names_every_place_of_the_log_and_of_the_settings(
    tool: Tool,
    workspace: Path,
    places: dict[str, str],
) -> None:
    tool("config", "set", "--global", "a", "1")
    tool("config", "set", "a", "1")

    for pattern in ("STATE/calls.jsonl", "CONFIG/config.toml", "WORKSPACE/.tool/locks/NAME.lock"):
        assert pattern in _patterns()
        directory = Path(places[pattern.partition("/")[0]])
        assert any(_is_named(str(path), [pattern], places) for path in directory.rglob("*.*"))


@pytest.mark.parametrize(
    ("path", "pattern", "is_named"),
    [
        ("/s/calls.jsonl", "STATE/calls.jsonl", True),
        ("/s", "STATE/calls.jsonl", True),
        ("/s/calls.jsonl/below", "STATE/calls.jsonl", False),
        ("/s/callsXjsonl", "STATE/calls.jsonl", False),
        ("/t/tool-0/demo/result.json", "TEMP/tool-UID/SESSION/", True),
        ("/t/tool-0/.hidden", "TEMP/tool-UID/SESSION/", False),
        ("/elsewhere/.a.toml.12-0123abcd.tmp", ".NAME.PID-RANDOM.tmp", True),
        ("/elsewhere/a.tmp", ".NAME.PID-RANDOM.tmp", False),
        ("/s/a.lock.readers/1-0123abcd", "NAME.lock.readers/", True),
    ],
)
def test_a_pattern_names_what_a_reader_expects(path: str, pattern: str, is_named: bool) -> None:
    assert _is_named(path, [pattern], {"STATE": "/s", "TEMP": "/t"}) == is_named


def _patterns() -> list[str]:
    """Return the paths in the first column of the tables, but not the names of the places."""
    patterns = []
    for row in re.findall(r"^\| (`[^|]*`) \|", (ROOT / _PAGE).read_text(), re.MULTILINE):
        for pattern in re.findall(r"`([^`]+)`", row):
            is_place = pattern.isalpha() and pattern.isupper()
            if not is_place:
                patterns.append(pattern)
    return patterns


def _is_named(path: str, patterns: list[str], places: dict[str, str]) -> bool:
    """Return whether one of the patterns names the path, or a path below it."""
    for pattern in patterns:
        place, slash, rest = pattern.partition("/")
        if place in places:
            anchor = re.escape(places[place])
            if re.match(f"{re.escape(path)}(/|$)", places[place]):
                return True
        else:
            # The file can be in any directory.
            anchor, slash, rest = "/.*", "/", pattern
        regex = anchor
        for part in (slash + rest).rstrip("/").split("/")[1:]:
            regex += f"/{_part_regex(part)}"
            if re.fullmatch(regex, path):
                return True
        if pattern.endswith("/") and re.fullmatch(f"{regex}/.*", path):
            return True
    return False


def _part_regex(part: str) -> str:
    """Return a regular expression for one part of a path."""
    pieces = []
    for piece in re.split("([A-Z]+)", part):
        pieces.append(_PLACEHOLDERS.get(piece, re.escape(piece)))
    return "".join(pieces)


def _is_argument(path: str, example: str, cwd: Path) -> bool:
    """Return whether the path is on the command line, or below a path on it."""
    for word in shlex.split(example):
        named = str(cwd / word)
        if f"{path}/".startswith(f"{named}/") and named != str(cwd):
            return True
    return False


def _prepare(tool: Tool, command: str) -> None:
    """Create the files that the example needs, and run the commands that it needs."""
    for needed in (ROOT / "tests").glob(f"*/examples/{command}"):
        shutil.copytree(needed, tool.cwd, dirs_exist_ok=True)
    lines = declared_specs()[command].before
    # One of the commands may create the workspace, and would refuse to replace it.
    if not any(line.startswith("init ") for line in lines):
        (tool.cwd / WORKSPACE_FILE).touch()
    for line in lines:
        assert tool(*shlex.split(line)).response["ok"], line


def _run_and_note(example: str, tool: Tool, directory: Path) -> set[str]:
    """Run an example in a shell. Return the paths that its Python processes created."""
    directory.mkdir()
    log = directory / "created"
    (directory / "sitecustomize.py").write_text(_NOTE_CREATED_PATHS.format(log=str(log)))
    program = directory / PROGRAM
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m {PACKAGE} "$@"\n')
    program.chmod(0o755)
    environ = {
        **tool.environ,
        "PATH": f"{directory}:{os.environ['PATH']}",
        "PYTHONPATH": f"{directory}:{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    shell = ["/bin/bash", "-c", example]
    ran = subprocess.run(shell, cwd=tool.cwd, env=environ, capture_output=True)
    assert ran.returncode == 0, ran.stdout
    return set(os.fsdecode(log.read_bytes()).splitlines())
