"""Reads the targets and checks of a tool.toml. Everything that is wrong with them is told at once."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from sampletool.kit.contract.errors import InvalidValues, Mistake, did_you_mean
from sampletool.sample.errors import TargetNotFound
from sampletool.sample.job import Job
from sampletool.sample.needs import in_order

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
            job, problems = _read(kind, name, members, targets)
            mistakes += [_mistake(where, f"{where}: {problem}") for problem in problems]
            if not problems:
                jobs_of_kind[name] = job
    jobs.targets, rings = in_order(jobs.targets)
    mistakes += [_mistake("target", f"these targets need each other: {ring}") for ring in rings]
    if mistakes:
        raise InvalidValues(*mistakes, suggestion="Correct tool.toml; nothing was run.")
    return jobs


def choose(kind: str, names: list[str], jobs: dict[str, Job]) -> list[str]:
    """The named ones, or all."""
    unknown = [name for name in names if name not in jobs]
    if unknown:
        raise TargetNotFound(kind, unknown, list(jobs))
    return list(dict.fromkeys(names)) or list(jobs)


def _read(kind: str, name: str, members: Any, targets: Collection[str]) -> tuple[Job, list[str]]:
    """The job, and what is wrong with it; what has the wrong type is only told."""
    if not isinstance(members, dict):
        return Job(name, (), (), (), (), {}), ["it is not a table"]
    wrong: dict[str, str] = {}
    for key, value in members.items():
        if key not in _MEMBERS:
            wrong[key] = f"unknown member {key!r}{_hint(key, _MEMBERS)}"
        elif key == "env":
            if not isinstance(value, dict) or not all(map(_is_text, (*value, *value.values()))):
                wrong[key] = "env has to be a table of texts"
        elif not isinstance(value, list) or not all(map(_is_text, value)) or "" in value:
            wrong[key] = f"{key} has to be a list of texts"
    right = {key: value for key, value in members.items() if key not in wrong}
    lists = {key: tuple(right.get(key, ())) for key in _LISTS}
    job = Job(name, **lists, env=right.get("env", {}))
    found = [*wrong.values(), *(problem for problem in job.problems() if problem.partition(" ")[0] not in wrong)]
    if kind == "target" and not members.get("outputs"):
        found.append("outputs is missing: the files that the command writes")
    if kind == "check" and job.outputs:
        found.append("a check has no outputs")
    unknown = [need for need in job.needs if need not in targets]
    return job, found + [f"it needs {need!r}, which is no target{_hint(need, targets)}" for need in unknown]


def _hint(word: str, known: Collection[str]) -> str:
    near = did_you_mean(word, list(known))
    return f" ({near})" if near else ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _mistake(where: str, message: str) -> Mistake:
    return Mistake(where, "INVALID_VALUE", message)
