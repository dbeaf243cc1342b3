"""Reads the targets and checks of a tool.toml. Everything that is wrong with them is told at once."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sampletool.contract.build_errors import TargetNotFound
from sampletool.contract.errors import InvalidValues, Mistake, did_you_mean

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_GLOB = re.compile(r"[*?[]")
_MEMBERS = {"run", "inputs", "outputs", "needs", "env"}
_TABLES = ("settings", "target", "check")
_OWN_PLACES = (".tool", "out")


@dataclass(frozen=True)
class Job:
    """A command with all that it may see. A target has outputs; a check has none."""

    name: str
    run: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    needs: tuple[str, ...]
    env: dict[str, str]

    def find_inputs(self, root: Path) -> list[str]:
        """The declared files, relative to the workspace; a pattern that matches nothing is a ValueError."""
        found: set[str] = set()
        if not self.inputs:
            return []
        for pattern in self.inputs:
            paths = root.glob(pattern) if _GLOB.search(pattern) else [root / pattern]
            files = {os.path.relpath(path, root) for path in paths if path.is_file()}
            files = {name for name in files if name.split(os.sep)[0] not in _OWN_PLACES}
            if not files:
                raise ValueError(f"{self.name}: the input {pattern!r} matches no file")
            found |= files
        return sorted(found)


@dataclass
class Jobs:
    """What one tool.toml declares."""

    targets: dict[str, Job] = field(default_factory=dict)
    checks: dict[str, Job] = field(default_factory=dict)


def read_jobs(document: dict[str, Any]) -> Jobs:
    jobs = Jobs()
    mistakes = [
        _mistake(key, f"[{key}] is not known here", hint)
        for key in document.keys() - set(_TABLES)
        if (hint := did_you_mean(key, list(_TABLES), nearness=0.7))
    ]
    for kind, jobs_of_kind in (("target", jobs.targets), ("check", jobs.checks)):
        table = document.get(kind, {})
        if not isinstance(table, dict):
            mistakes.append(_mistake(kind, f"[{kind}] is not a table"))
            continue
        for name, members in table.items():
            where = f"{kind}.{name}"
            problems = _problems(kind, name, members)
            mistakes += [_mistake(where, f"{where}: {problem}") for problem in problems]
            if not problems:
                jobs_of_kind[name] = _job(name, members)
    for where, job in [*_named("target", jobs.targets), *_named("check", jobs.checks)]:
        for need in job.needs:
            if need not in document.get("target", {}):
                near = did_you_mean(need, list(jobs.targets))
                mistakes.append(_mistake(where, f"{where}: it needs {need!r}, which is no target", near or None))
    mistakes += [_mistake("target", f"these targets need each other: {' -> '.join(ring)}") for ring in _rings(jobs)]
    if mistakes:
        raise InvalidValues(*mistakes, suggestion="Correct tool.toml; nothing was run.")
    return jobs


def choose(kind: str, names: list[str], jobs: dict[str, Job]) -> list[str]:
    """The named ones, or all."""
    unknown = [name for name in names if name not in jobs]
    if unknown:
        raise TargetNotFound(kind, unknown, list(jobs))
    return list(dict.fromkeys(names)) or list(jobs)


def in_order(targets: dict[str, Job], wanted: list[str]) -> list[str]:
    """The wanted targets and all that they need, each behind what it needs."""
    order: dict[str, None] = {}

    def add(name: str) -> None:
        if name not in order:
            for need in targets[name].needs:
                add(need)
            order[name] = None

    for name in wanted:
        add(name)
    return list(order)


def _job(name: str, members: dict[str, Any]) -> Job:
    lists = {key: tuple(members.get(key, ())) for key in ("run", "inputs", "outputs", "needs")}
    return Job(name=name, env=dict(members.get("env", {})), **lists)


def _problems(kind: str, name: str, members: Any) -> list[str]:
    if not _NAME.fullmatch(name):
        return ["a name is 1 to 64 letters, digits, '.', '_' or '-'"]
    if not isinstance(members, dict):
        return ["it is not a table"]
    found = []
    for key in members.keys() - _MEMBERS:
        near = did_you_mean(key, sorted(_MEMBERS))
        found.append(f"unknown member {key!r}" + (f" ({near})" if near else ""))
    for key in ("run", "inputs", "outputs", "needs"):
        value = members.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            found.append(f"{key} has to be a list of texts")
        elif key in ("inputs", "outputs"):
            found += [f"{key}: {path!r} leaves the workspace" for path in value if _leaves(path)]
    env = members.get("env", {})
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        found.append("env has to be a table of texts")
    elif any("=" in name or "\0" in name + value for name, value in env.items()):
        found.append("env has a name with '=', or a NUL")
    if not found and any("\0" in word for word in members.get("run", ())):
        found.append("run has a NUL")
    if not found:
        found += [f"outputs: {path!r} is inside {other!r}, or the same" for other, path in _overlaps(members)]
    if not members.get("run"):
        found.append("run is missing: the command as a list, such as ['python3', 'make.py']")
    if kind == "target" and not members.get("outputs"):
        found.append("outputs is missing: the files that the command writes")
    if kind == "check" and members.get("outputs"):
        found.append("a check has no outputs")
    return found


def _overlaps(members: dict[str, Any]) -> list[tuple[str, str]]:
    outputs = members.get("outputs", ())
    pairs = [(one, other) for n, one in enumerate(outputs) for m, other in enumerate(outputs) if n != m]
    return [(one, other) for one, other in pairs if other == one or other.startswith(f"{one}/")][:1]


def _leaves(path: str) -> bool:
    parts = path.split("/")
    return parts[0] in ("", *_OWN_PLACES) or not {"..", "", "."}.isdisjoint(parts) or not path.isprintable()


def _rings(jobs: Jobs) -> list[list[str]]:
    """Every target that needs itself in the end, each ring once."""
    found: list[list[str]] = []

    def walk(name: str, way: list[str]) -> None:
        if name in way:
            ring = [*way[way.index(name) :], name]
            if not any(set(ring) == set(other) for other in found):
                found.append(ring)
        elif name in jobs.targets and name not in done:
            for need in jobs.targets[name].needs:
                walk(need, [*way, name])
            done.add(name)

    done: set[str] = set()
    for name in jobs.targets:
        walk(name, [])
    return found


def _named(kind: str, jobs: dict[str, Job]) -> list[tuple[str, Job]]:
    return [(f"{kind}.{name}", job) for name, job in jobs.items()]


def _mistake(where: str, message: str, suggestion: str | None = None) -> Mistake:
    return Mistake(where, "INVALID_VALUE", message, suggestion=suggestion)
