"""Read the targets and checks that the workspace file declares.

If the declarations have problems, all of them are reported at once, each with the line of its
table.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from ..kit.context import Context
from ..kit.contract.errors import InvalidValues, Mistake, did_you_mean
from ..kit.program import WORKSPACE_FILE
from ..kit.safety.toml_file import TomlText, read_toml, resolve
from .declaration import read_job
from .errors import InvalidWorkspace, TargetNotFound
from .job import Job, Kind

_TABLES = ("settings", "target", "check")


@dataclass(frozen=True)
class Problem:
    """Something that is wrong with a table of the workspace file."""

    table: str
    """The name of the table, such as "target.report"."""
    text: str


@dataclass(frozen=True)
class Declarations:
    """Everything that one workspace file declares."""

    toml: TomlText
    targets: dict[str, Job]
    """The targets, each after the targets that it needs."""
    checks: dict[str, Job]

    def with_needs(self, names: list[str]) -> list[Job]:
        """Return these targets and all that they need, also indirectly, each after its needs."""
        selected: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in selected:
                selected.add(name)
                waiting += self.targets[name].needs
        # In `targets`, each target comes after those that it needs. The result keeps this order.
        return [job for name, job in self.targets.items() if name in selected]


def read_workspace(context: Context) -> Declarations:
    """Return what the workspace declares.

    Raise InvalidWorkspace for problems of the declarations, InvalidValues for wrong settings, and
    NoWorkspace outside of a workspace.
    """
    _check_settings(context)
    toml = _read_file(context)
    target_tables = _tables_of_kind(toml, "target")
    check_tables = _tables_of_kind(toml, "check")
    targets, target_problems = _read_jobs("target", target_tables, target_tables)
    checks, check_problems = _read_jobs("check", check_tables, target_tables)
    problems = [*_misspelt_tables(toml), *target_problems, *check_problems]
    if problems:
        raise invalid_workspace(toml, problems)
    return Declarations(toml, _in_order_of_needs(toml, targets), checks)


def read_again(context: Context, declarations: Declarations) -> Declarations:
    """Return what the workspace declares now, from what it declared before.

    The file may have been changed while this command waited for a lock.
    """
    if _read_file(context).version == declarations.toml.version:
        # For 1,000 targets, this saves 25 ms of 200.
        return declarations
    return read_workspace(context)


def check_names(kind: Kind, names: list[str], jobs: Mapping[str, Job]) -> None:
    """Raise TargetNotFound if one of these names is not the name of a job."""
    unknown = [name for name in names if name not in jobs]
    if unknown:
        raise _not_found(kind, unknown, list(jobs))


def choose(kind: Kind, names: list[str], jobs: Mapping[str, Job]) -> list[str]:
    """Return the names of the jobs to run: these names, or those of all jobs if there are none.

    A name that was given twice is returned once. Raise TargetNotFound for an unknown name.
    """
    check_names(kind, names, jobs)
    if not names:
        return list(jobs)
    # The keys of a dictionary are unique, and keep their order.
    return list(dict.fromkeys(names))


def _not_found(kind: Kind, unknown: list[str], known: list[str]) -> TargetNotFound:
    """Return the error about these names, with similar names or else all names as its hint."""
    hints = [did_you_mean(name, known) for name in unknown]
    suggestion = " ".join(hint for hint in hints if hint)
    if not suggestion and known:
        suggestion = f"The {kind}s are {', '.join(known)}."
    elif not suggestion:
        suggestion = f"There are no {kind}s."
    return TargetNotFound(kind=kind, names=unknown, suggestion=suggestion)


def invalid_workspace(toml: TomlText, problems: list[Problem]) -> InvalidWorkspace:
    """Return the error that reports these problems, each with the line of its table."""
    mistakes = []
    for problem in problems:
        line = _line_of_table(toml, problem.table)
        place = problem.table if line is None else f"line {line}, {problem.table}"
        mistakes.append(Mistake(problem.table, "INVALID_VALUE", f"{place}: {problem.text}"))
    return InvalidWorkspace(str(toml.path), mistakes)


def _read_file(context: Context) -> TomlText:
    return read_toml(resolve(context.workspace / WORKSPACE_FILE))


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


def _tables_of_kind(toml: TomlText, kind: Kind) -> dict[str, Any]:
    """Return the tables of all targets or checks, by their names. Raise InvalidWorkspace."""
    tables = toml.document.get(kind, {})
    if not isinstance(tables, dict):
        raise invalid_workspace(toml, [Problem(kind, "it is not a table")])
    return tables


def _read_jobs(
    kind: Kind,
    tables: Mapping[str, object],
    target_names: Collection[str],
) -> tuple[dict[str, Job], list[Problem]]:
    """Return the jobs that these tables declare, and what is wrong with the tables."""
    jobs = {}
    problems = []
    for name, table in tables.items():
        job, texts = read_job(kind, name, table, target_names)
        jobs[name] = job
        problems += [Problem(f"{kind}.{name}", text) for text in texts]
    return jobs, problems


def _misspelt_tables(toml: TomlText) -> Iterator[Problem]:
    """Yield a problem for each table whose name is similar to one of ours.

    Other tables belong to other programs.
    """
    for key in toml.document:
        if key in _TABLES:
            continue
        hint = did_you_mean(key, list(_TABLES), nearness=0.7)
        if hint:
            yield Problem(key, f"it is not known here ({hint})")


def _in_order_of_needs(toml: TomlText, targets: dict[str, Job]) -> dict[str, Job]:
    """Return the targets, each after those that it needs. Raise InvalidWorkspace for a cycle."""
    needs = {name: job.needs for name, job in targets.items()}
    try:
        names = list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        # The names lead from a need to the target that needs it. The first is also the last.
        cycle = list(reversed(error.args[1]))
        problem = f"these targets need each other: {' -> '.join(cycle)}"
        raise invalid_workspace(toml, [Problem(f"target.{cycle[0]}", problem)]) from error
    return {name: targets[name] for name in names}


def _line_of_table(toml: TomlText, table: str) -> int | None:
    """Return the line at which a table begins. Return None if it has no header."""
    words = []
    for word in table.split(".", 1):
        # In a header, each part of the name can have quotes.
        words.append(rf"[\"']?{re.escape(word)}[\"']?")
    name = " *[.] *".join(words)
    header = re.search(rf"^\s*\[+\s*{name}\s*[].]", toml.text, re.MULTILINE)
    if header is None:
        return None
    return toml.text.count("\n", 0, header.start()) + 1
