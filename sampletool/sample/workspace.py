"""Read the targets and checks that the workspace file declares.

A target or a check is a command with everything that it may see. If a declaration has mistakes, all
of them are reported at once, each with the line of its table.
"""

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from ..kit.context import Context
from ..kit.contract.errors import InvalidValues, Mistake, did_you_mean
from ..kit.program import WORKSPACE_DIRECTORY, WORKSPACE_FILE, env_variable
from ..kit.safety.toml_file import TomlText, read_toml, resolve
from .errors import InvalidWorkspace, TargetNotFound

OWN_PLACES = (WORKSPACE_DIRECTORY, "out")
"""The directories of the tool in a workspace. They contain no inputs."""

_LISTS = {"target": ("run", "inputs", "outputs", "needs"), "check": ("run", "inputs", "needs")}
"""The members of each kind of table that are lists of strings."""
_TABLES = ("settings", "target", "check")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

Kind = Literal["target", "check"]


@dataclass(frozen=True)
class Job:
    """A target or a check. Only a target has outputs."""

    name: str
    run: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the command."""

    def find_inputs(self, root: Path) -> set[str]:
        """Return the paths of the declared input files, relative to the workspace.

        Raise ValueError if a pattern matches no file.
        """
        found: set[str] = set()
        for pattern in self.inputs:
            files = _find_files(root, pattern)
            if not files and (root / pattern).is_dir():
                raise ValueError(f"the input {pattern!r} is a directory: write {f'{pattern}/**'!r}")
            if not files:
                raise ValueError(f"the input {pattern!r} matches no file")
            found |= files
        return found


def _find_files(root: Path, pattern: str) -> set[str]:
    """Return the files that match a pattern, except for those in the directories of the tool."""
    if (root / pattern).is_file():
        # The name of a file can look like a pattern.
        paths = [root / pattern]
    elif pattern.split("/")[-1] == "**":
        # Before Python 3.13, `**` at the end of a pattern matches only directories.
        paths = list(root.glob(f"{pattern}/*"))
    else:
        paths = list(root.glob(pattern))
    files = set()
    for path in paths:
        name = os.path.relpath(path, root)
        if path.is_file() and name.split(os.sep)[0] not in OWN_PLACES:
            files.add(name)
    return files


@dataclass(frozen=True)
class Jobs:
    """Everything that one workspace file declares."""

    toml: TomlText
    targets: dict[str, Job]
    """The targets, each after the targets that it needs."""
    checks: dict[str, Job]

    def with_needs(self, wanted: list[str]) -> list[Job]:
        """Return the wanted targets and all that they need, each after its needs."""
        found: set[str] = set()
        waiting = list(wanted)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.targets[name].needs
        return [job for name, job in self.targets.items() if name in found]

    def must_have_no(self, problems: list[tuple[str, str]]) -> None:
        """Raise InvalidWorkspace if there are problems: the name of a table, and what is wrong."""
        mistakes = []
        for table, problem in problems:
            message = f"{_line_of(self.toml, table)}{table}: {problem}"
            mistakes.append(Mistake(table, "INVALID_VALUE", message))
        if mistakes:
            raise InvalidWorkspace(str(self.toml.path), mistakes)


def read_workspace(context: Context) -> Jobs:
    """Return what the workspace declares.

    Raise InvalidWorkspace for mistakes in the declarations, InvalidValues for wrong settings, and
    NoWorkspace outside of a workspace.
    """
    _check_settings(context)
    toml = read_toml(resolve(context.workspace / WORKSPACE_FILE))
    declared = Jobs(toml, {}, {})
    for kind in _LISTS:
        if not isinstance(toml.document.get(kind, {}), dict):
            declared.must_have_no([(kind, "it is not a table")])
    target_tables = toml.document.get("target", {})
    check_tables = toml.document.get("check", {})
    problems = list(_misspelt_tables(toml))
    for name, members in target_tables.items():
        declared.targets[name], faults = _read_job("target", name, members, target_tables)
        problems += [(f"target.{name}", fault) for fault in faults]
    for name, members in check_tables.items():
        declared.checks[name], faults = _read_job("check", name, members, target_tables)
        problems += [(f"check.{name}", fault) for fault in faults]
    declared.must_have_no(problems)
    return _in_order(declared)


def _check_settings(context: Context) -> None:
    """Raise InvalidValues with all wrong settings that a build uses."""
    mistakes: list[Mistake] = []
    for name in ("jobs", "lock_timeout"):
        try:
            context.settings.value(name)
        except InvalidValues as error:
            mistakes += error.mistakes
    if mistakes:
        raise InvalidValues(*mistakes)


def _misspelt_tables(toml: TomlText) -> Iterator[tuple[str, str]]:
    """Yield the problem of each table whose name is similar to one of ours.

    Other tables belong to other programs.
    """
    for key in toml.document:
        hint = did_you_mean(key, list(_TABLES), nearness=0.7)
        if key not in _TABLES and hint:
            yield key, f"it is not known here ({hint})"


def _in_order(declared: Jobs) -> Jobs:
    """Return the same with the targets in the order of their needs. Raise InvalidWorkspace."""
    needs = {name: job.needs for name, job in declared.targets.items()}
    try:
        order = list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        # The names lead from a need to the target that needs it. The first is also the last.
        cycle = list(reversed(error.args[1]))
        problem = f"these targets need each other: {' -> '.join(cycle)}"
        declared.must_have_no([(f"target.{cycle[0]}", problem)])
    return replace(declared, targets={name: declared.targets[name] for name in order})


def choose(kind: Kind, names: list[str], jobs: dict[str, Job]) -> list[str]:
    """Return these names without repetitions, or all names if none is given.

    Raise TargetNotFound if there is no job with one of the names.
    """
    unknown = [name for name in names if name not in jobs]
    if unknown:
        hints = [did_you_mean(name, list(jobs)) for name in unknown]
        suggestion = " ".join(hint for hint in hints if hint)
        if not suggestion:
            suggestion = f"It has {', '.join(jobs) or 'none'}."
        raise TargetNotFound(kind=kind, names=unknown, suggestion=suggestion)
    return list(dict.fromkeys(names)) or list(jobs)


def _read_job(
    kind: Kind, name: str, members: Any, targets: Collection[str]
) -> tuple[Job, list[str]]:
    """Return the job and what is wrong with it. A member with a wrong type is not in the job."""
    if not isinstance(members, dict):
        return Job(name), ["it is not a table"]
    lists: dict[str, tuple[str, ...]] = {}
    env: dict[str, str] = {}
    faults: list[str] = []
    for key, value in members.items():
        if key == "env":
            faults += _faults_of_env(value)
            env = value
        elif key not in _LISTS[kind]:
            faults.append(f"unknown member {key!r}{_hint(key, (*_LISTS[kind], 'env'))}")
        elif not _is_list_of_strings(value):
            faults.append(f"{key} has to be a list of texts")
        else:
            lists[key] = tuple(value)
    if faults:
        # With a wrong type, there is no env that could be passed on.
        env = {}
    job = Job(name, **lists, env=env)
    faults += _faults_of_job(kind, job, members, targets)
    return job, faults


def _is_list_of_strings(value: object) -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(text, str) and text != "" and "\0" not in text for text in value)


def _faults_of_env(value: object) -> Iterator[str]:
    """Yield what is wrong with the environment variables of a job."""
    if not isinstance(value, dict):
        yield "env has to be a table, such as { LEVEL = '3' }"
        return
    # Such as `TOOL_`, the beginning of each variable of the tool itself
    prefix_of_tool = env_variable("")
    for name, text in value.items():
        if not _VARIABLE.fullmatch(name):
            yield f"env: {name!r} is not the name of a variable"
        elif name.startswith(prefix_of_tool):
            yield f"env: {name} belongs to the tool"
        if not isinstance(text, str) or "\0" in text:
            yield f"env: {name} has to be a text"


def _faults_of_job(
    kind: Kind,
    job: Job,
    members: dict[str, Any],
    targets: Collection[str],
) -> Iterator[str]:
    """Yield what is wrong with the values of a job."""
    if not _NAME.fullmatch(job.name):
        yield "a name is 1 to 64 letters, digits, '.', '_' or '-'"
    if not members.get("run"):
        yield "run is missing: the command as a list, such as ['python3', 'make.py']"
    yield from _faults_of_paths("inputs", job.inputs)
    yield from _faults_of_paths("outputs", job.outputs)
    # With a slash at the end, a path is a prefix only of what is in its directory.
    for before, after in pairwise(sorted(f"{path}/" for path in job.outputs)):
        if after.startswith(before):
            yield f"outputs: {after[:-1]!r} is inside another, or the same"
    if kind == "target" and not members.get("outputs"):
        yield "outputs is missing: the files that the command writes"
    for need in job.needs:
        if need not in targets:
            yield f"it needs {need!r}, which is no target{_hint(need, targets)}"


def _faults_of_paths(member: str, paths: tuple[str, ...]) -> Iterator[str]:
    for path in paths:
        fault = _fault_of_path(path, member)
        if fault is not None:
            yield f"{member}: {path!r} {fault}"


def _fault_of_path(path: str, member: str) -> str | None:
    """Return why a path names no file of the workspace, and how to write it. None if it does."""
    normal_path = os.path.normpath(path)
    top = normal_path.split("/")[0]
    if normal_path == "." or top in ("", ".."):
        return "is not inside the workspace"
    if top in OWN_PLACES:
        if member == "inputs":
            return "is in a place of the tool's own: name the target in needs"
        return "is in a place of the tool's own: what is written gets there by itself"
    if normal_path == path:
        return None
    if member == "inputs" and path.endswith("/"):
        normal_path += "/**"
    return f"has an empty, '.' or '..' part: write {normal_path!r}"


def _line_of(toml: TomlText, table: str) -> str:
    """Return where a table begins, such as "line 3, ". Return "" if it has no header."""
    words = []
    for word in table.split(".", 1):
        words.append(rf"[\"']?{re.escape(word)}[\"']?")
    header = re.search(rf"^\s*\[+\s*{' *[.] *'.join(words)}\s*[].]", toml.text, re.MULTILINE)
    if header is None:
        return ""
    line = toml.text.count("\n", 0, header.start()) + 1
    return f"line {line}, "


def _hint(word: str, known: Collection[str]) -> str:
    """Return a hint in parentheses if a known word is similar, else ""."""
    hint = did_you_mean(word, list(known))
    return f" ({hint})" if hint else ""
