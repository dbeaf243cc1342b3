"""What tool.toml may say: targets and checks, each a command with everything that it may see.

All mistakes are reported at once, each with the line of its table.
"""

import os
import re
from collections.abc import Collection
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ..kit.context import Context
from ..kit.contract.errors import InvalidValues, Mistake, did_you_mean
from ..kit.program import WORKSPACE_DIRECTORY, WORKSPACE_FILE
from ..kit.safety.toml_file import TomlText, read_toml, resolve
from .errors import InvalidWorkspace, TargetNotFound

OWN_PLACES = (WORKSPACE_DIRECTORY, "out")
"""What belongs to the tool in a workspace, and is no input."""
_MEMBERS = {"target": ("run", "inputs", "outputs", "needs"), "check": ("run", "inputs", "needs")}
_TABLES = ("settings", "target", "check")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


class Job(NamedTuple):
    """A command with everything that it may see. A target has outputs; a check has none."""

    name: str
    run: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    def find_inputs(self, root: Path) -> set[str]:
        """The declared files, relative to the workspace; a pattern that matches nothing is a ValueError.

        A file of just that name goes before a pattern. `**` at the end means all files below: pathlib finds them
        there only from Python 3.13 on, and only directories before.
        """
        found: set[str] = set()
        for pattern in self.inputs:
            literal, at_any_depth = root / pattern, pattern.split("/")[-1] == "**"
            paths = [literal] if literal.is_file() else root.glob(f"{pattern}/*" if at_any_depth else pattern)
            files = {os.path.relpath(path, root) for path in paths if path.is_file()}
            files = {name for name in files if name.split(os.sep)[0] not in OWN_PLACES}
            if not files:
                wrong = f"is a directory: write {f'{pattern}/**'!r}" if literal.is_dir() else "matches no file"
                raise ValueError(f"the input {pattern!r} {wrong}")
            found |= files
        return found


class Jobs(NamedTuple):
    """What one tool.toml declares."""

    toml: TomlText
    targets: dict[str, Job]
    """Each behind the targets that it needs."""
    checks: dict[str, Job]

    def with_needs(self, wanted: list[str]) -> list[Job]:
        """The wanted targets and all that they need, each behind what it needs."""
        found: set[str] = set()
        left = list(wanted)
        for name in left:
            if name not in found:
                found.add(name)
                left += self.targets[name].needs  # also walked
        return [job for name, job in self.targets.items() if name in found]

    def must_have_no(self, problems: list[tuple[str, str]]) -> None:
        """Report all at once: the table of each, and what is wrong with it."""
        if problems:
            mistakes = [Mistake(at, "INVALID_VALUE", f"{_line(self.toml, at)}{at}: {said}") for at, said in problems]
            raise InvalidWorkspace(str(self.toml.path), mistakes)


def read_workspace(context: Context) -> Jobs:
    mistakes: list[Mistake] = []
    for name in ("jobs", "lock_timeout"):
        try:
            context.settings.value(name)
        except InvalidValues as error:
            mistakes += error.mistakes
    if mistakes:
        raise InvalidValues(*mistakes)
    toml = read_toml(resolve(context.workspace / WORKSPACE_FILE))
    declared = Jobs(toml, {}, {})
    tables = {kind: toml.document.get(kind, {}) for kind in ("target", "check")}
    declared.must_have_no([(kind, "it is not a table") for kind in tables if not isinstance(tables[kind], dict)])
    near = {key: did_you_mean(key, list(_TABLES), nearness=0.7) for key in toml.document if key not in _TABLES}
    problems = [(key, f"it is not known here ({hint})") for key, hint in near.items() if hint]
    for kind, jobs in (("target", declared.targets), ("check", declared.checks)):
        for name, members in tables[kind].items():
            jobs[name], wrong = _read(kind, name, members, tables["target"])
            problems += [(f"{kind}.{name}", problem) for problem in wrong]
    declared.must_have_no(problems)
    try:
        ordered = [*TopologicalSorter({name: job.needs for name, job in declared.targets.items()}).static_order()]
    except CycleError as error:
        ring = error.args[1][::-1]  # from a target to what it needs; the first is also the last
        declared.must_have_no([(f"target.{ring[0]}", f"these targets need each other: {' -> '.join(ring)}")])
    return declared._replace(targets={name: declared.targets[name] for name in ordered})


def choose(kind: str, names: list[str], jobs: dict[str, Job]) -> list[str]:
    """The named ones, or all."""
    unknown = [name for name in names if name not in jobs]
    if unknown:
        near = " ".join(filter(None, (did_you_mean(name, list(jobs)) for name in unknown)))
        raise TargetNotFound(kind=kind, names=unknown, suggestion=near or f"It has {', '.join(jobs) or 'none'}.")
    return list(dict.fromkeys(names)) or list(jobs)


def _read(kind: str, name: str, members: Any, targets: Collection[str]) -> tuple[Job, list[str]]:
    """The job, and what is wrong with it. A member of the wrong type is left out of the job."""
    if not isinstance(members, dict):
        return Job(name), ["it is not a table"]
    right: dict[str, tuple[str, ...]] = {}
    found: list[str] = []
    for key, value in members.items():
        if key not in _MEMBERS[kind]:
            found.append(f"unknown member {key!r}{_hint(key, _MEMBERS[kind])}")
        elif isinstance(value, list) and all(isinstance(text, str) and text and "\0" not in text for text in value):
            right[key] = tuple(value)
        else:
            found.append(f"{key} has to be a list of texts")
    job = Job(name, **right)
    if not _NAME.fullmatch(name):
        found.append("a name is 1 to 64 letters, digits, '.', '_' or '-'")
    if not members.get("run"):
        found.append("run is missing: the command as a list, such as ['python3', 'make.py']")
    for member, paths in (("inputs", job.inputs), ("outputs", job.outputs)):
        found += [f"{member}: {path!r} {why}" for path in paths if (why := _why_no_path(path, member))]
    ordered = sorted(f"{path}/" for path in job.outputs)
    nested = [after[:-1] for before, after in pairwise(ordered) if after.startswith(before)]
    found += [f"outputs: {path!r} is inside another, or the same" for path in nested]
    if kind == "target" and not members.get("outputs"):
        found.append("outputs is missing: the files that the command writes")
    unknown = [need for need in job.needs if need not in targets]
    return job, found + [f"it needs {need!r}, which is no target{_hint(need, targets)}" for need in unknown]


def _why_no_path(path: str, member: str) -> str | None:
    """Why it names no file of the workspace, and how to write the one that is meant."""
    plain = os.path.normpath(path)
    top = plain.split("/")[0]
    if plain == "." or top in ("", ".."):
        return "is not inside the workspace"
    if top in OWN_PLACES:
        advice = "name the target in needs" if member == "inputs" else "what is written gets there by itself"
        return f"is in a place of the tool's own: {advice}"
    below = "/**" if member == "inputs" and path.endswith("/") else ""
    return None if plain == path else f"has an empty, '.' or '..' part: write {plain + below!r}"


def _line(toml: TomlText, table: str) -> str:
    """Where the first header of this table, or of one in it, stands; empty if it has none."""
    words = [rf"[\"']?{re.escape(word)}[\"']?" for word in table.split(".", 1)]
    header = re.search(rf"^\s*\[+\s*{' *[.] *'.join(words)}\s*[].]", toml.text, re.MULTILINE)
    return f"line {toml.text.count(chr(10), 0, header.start()) + 1}, " if header else ""


def _hint(word: str, known: Collection[str]) -> str:
    near = did_you_mean(word, list(known))
    return f" ({near})" if near else ""
