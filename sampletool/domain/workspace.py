"""Reads the targets and checks of a tool.toml. Everything that is wrong with them is told at once."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from sampletool.contract.build_errors import TargetNotFound
from sampletool.contract.errors import InvalidValues, Mistake, did_you_mean
from sampletool.work.job import OWN_PLACES, Job

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_LISTS = ("run", "inputs", "outputs", "needs")
_MEMBERS = (*_LISTS, "env")
_TABLES = ("settings", "target", "check")


@dataclass
class Jobs:
    """What one tool.toml declares."""

    targets: dict[str, Job] = field(default_factory=dict)
    """Each behind what it needs."""
    checks: dict[str, Job] = field(default_factory=dict)


def read_jobs(document: dict[str, Any]) -> Jobs:
    jobs = Jobs()
    near = {key: did_you_mean(key, list(_TABLES), nearness=0.7) for key in document if key not in _TABLES}
    mistakes = [_mistake(key, f"[{key}] is not known here ({hint})") for key, hint in near.items() if hint]
    targets = document.get("target")
    targets = targets if isinstance(targets, dict) else {}
    for kind, jobs_of_kind in (("target", jobs.targets), ("check", jobs.checks)):
        table = document.get(kind, {})
        if not isinstance(table, dict):
            mistakes.append(_mistake(kind, f"[{kind}] is not a table"))
            continue
        for name, members in table.items():
            where = f"{kind}.{name}"
            problems = _problems(kind, name, members, targets)
            mistakes += [_mistake(where, f"{where}: {problem}") for problem in problems]
            if not problems:
                lists = {key: tuple(members.get(key, ())) for key in _LISTS}
                jobs_of_kind[name] = Job(name, **lists, env=members.get("env", {}))
    order, rings = _sorted(jobs.targets)
    mistakes += [_mistake("target", f"these targets need each other: {ring}") for ring in rings]
    if mistakes:
        raise InvalidValues(*mistakes, suggestion="Correct tool.toml; nothing was run.")
    jobs.targets = {name: jobs.targets[name] for name in order}
    return jobs


def choose(kind: str, names: list[str], jobs: dict[str, Job]) -> list[str]:
    """The named ones, or all."""
    unknown = [name for name in names if name not in jobs]
    if unknown:
        raise TargetNotFound(kind, unknown, list(jobs))
    return list(dict.fromkeys(names)) or list(jobs)


def with_needs(targets: dict[str, Job], wanted: list[str]) -> list[Job]:
    """The wanted targets and all that they need, each behind what it needs."""
    found: set[str] = set()
    left = list(wanted)
    for name in left:
        if name not in found:
            found.add(name)
            left += targets[name].needs  # also walked
    return [job for name, job in targets.items() if name in found]


def _problems(kind: str, name: str, members: Any, targets: Collection[str]) -> list[str]:
    if not _NAME.fullmatch(name):
        return ["a name is 1 to 64 letters, digits, '.', '_' or '-'"]
    if not isinstance(members, dict):
        return ["it is not a table"]
    found = []
    for key, value in members.items():
        if key not in _MEMBERS:
            found.append(f"unknown member {key!r}{_hint(key, _MEMBERS)}")
        elif key == "env":
            if not isinstance(value, dict) or not all(map(_is_text, (*value, *value.values()))):
                found.append("env has to be a table of texts")
            elif any("=" in name for name in value):
                found.append("env has a name with '='")
        elif not isinstance(value, list) or not all(map(_is_text, value)) or "" in value:
            found.append(f"{key} has to be a list of texts")
        elif key in ("inputs", "outputs"):
            found += [f"{key}: {path!r} leaves the workspace" for path in value if _leaves(path)]
    if not members.get("run"):
        found.append("run is missing: the command as a list, such as ['python3', 'make.py']")
    if kind == "target" and not members.get("outputs"):
        found.append("outputs is missing: the files that the command writes")
    if kind == "check" and members.get("outputs"):
        found.append("a check has no outputs")
    if found:
        return found
    nested = [f"outputs: {path!r} is inside another, or the same" for path in _nested(members.get("outputs", []))]
    unknown = [need for need in members.get("needs", ()) if need not in targets]
    return nested + [f"it needs {need!r}, which is no target{_hint(need, targets)}" for need in unknown]


def _hint(word: str, known: Collection[str]) -> str:
    near = did_you_mean(word, list(known))
    return f" ({near})" if near else ""


def _leaves(path: str) -> bool:
    parts = path.split("/")
    return parts[0] in ("", *OWN_PLACES) or not {"..", "", "."}.isdisjoint(parts) or not path.isprintable()


def _nested(outputs: list[str]) -> list[str]:
    ordered = sorted(f"{path}/" for path in outputs)
    return [after[:-1] for before, after in pairwise(ordered) if after.startswith(before)]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _sorted(targets: dict[str, Job]) -> tuple[list[str], list[str]]:
    """In the order of their needs; and the rings of those that need themselves in the end."""
    needs = {name: job.needs for name, job in targets.items()}
    rings: list[str] = []
    while True:
        try:
            return list(TopologicalSorter(needs).static_order()), rings
        except CycleError as error:
            ring = error.args[1][:0:-1]  # from a target to what it needs; the first is also the last
            first = min(range(len(ring)), key=lambda at: list(targets).index(ring[at]))
            rings.append(" -> ".join([*ring[first:], *ring[: first + 1]]))
            needs = {name: () if name in ring else others for name, others in needs.items()}


def _mistake(where: str, message: str) -> Mistake:
    return Mistake(where, "INVALID_VALUE", message)
