"""Read one table of the workspace file, which declares a target or a check.

All problems of a table are returned together, so that people can correct them at once.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from ..kit.contract.errors import did_you_mean
from ..kit.program import env_variable
from .job import OWN_PLACES, Job, Kind

_LIST_MEMBERS: dict[Kind, tuple[str, ...]] = {
    "target": ("run", "inputs", "outputs", "needs"),
    "check": ("run", "inputs", "needs"),
}
"""The members of each kind of table that are lists of strings."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def read_job(
    kind: Kind,
    name: str,
    table: object,
    target_names: Collection[str],
) -> tuple[Job, list[str]]:
    """Return the job that a table declares, and everything that is wrong with the table.

    If a member of the table has the wrong type, the job does not get it. `target_names` are the
    names of all targets that the job can need.
    """
    if not isinstance(table, dict):
        return Job(name), ["it is not a table"]
    lists, problems_of_lists = _read_lists(kind, table)
    env, problems_of_env = _read_env(table)
    job = Job(name, **lists, env=env)
    problems = [
        *_unknown_members(kind, table),
        *_missing_members(kind, table),
        *problems_of_lists,
        *problems_of_env,
        *_problems_of_job(job, target_names),
    ]
    return job, problems


def _read_lists(
    kind: Kind,
    table: Mapping[str, Any],
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the members that are lists of strings, and what is wrong with the others."""
    lists: dict[str, tuple[str, ...]] = {}
    problems = []
    for member in _LIST_MEMBERS[kind]:
        if member not in table:
            continue
        value = table[member]
        if _is_list_of_texts(value):
            lists[member] = tuple(value)
        else:
            problems.append(f"{member} must be a list of strings")
    return lists, problems


def _read_env(table: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return the environment variables and no problems, or no variables and the problems."""
    env = table.get("env", {})
    problems = list(_problems_of_env(env))
    if problems:
        return {}, problems
    return env, []


def _unknown_members(kind: Kind, table: Mapping[str, object]) -> Iterator[str]:
    known_members = (*_LIST_MEMBERS[kind], "env")
    for member in table:
        if member not in known_members:
            yield f"unknown member {member!r}{_hint(member, known_members)}"


def _missing_members(kind: Kind, table: Mapping[str, object]) -> Iterator[str]:
    if table.get("run", []) == []:
        yield "run is missing: the command as a list, such as ['python3', 'make.py']"
    if kind == "target" and table.get("outputs", []) == []:
        yield "outputs is missing: the files that the command writes"


def _is_list_of_texts(value: object) -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(text, str) and text != "" and "\0" not in text for text in value)


def _problems_of_env(env: object) -> Iterator[str]:
    """Yield what is wrong with the environment variables of a job."""
    if not isinstance(env, dict):
        yield "env must be a table, such as { LEVEL = '3' }"
        return
    # All variables of the tool itself begin with this, for example `TOOL_`.
    prefix_of_tool = env_variable("")
    for name, value in env.items():
        if not _VARIABLE.fullmatch(name):
            yield f"env: {name!r} is not the name of a variable"
        elif name.startswith(prefix_of_tool):
            yield f"env: {name} belongs to the tool"
        if not isinstance(value, str) or "\0" in value:
            yield f"env: {name} must be a string"


def _problems_of_job(job: Job, target_names: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with the name, the paths and the needs of a job.

    All of these are texts by now: `read_job` leaves out a value of another type.
    """
    if not _NAME.fullmatch(job.name):
        yield "a name is 1 to 64 letters, digits, '.', '_' or '-'"
    for member, paths in (("inputs", job.inputs), ("outputs", job.outputs)):
        for path in paths:
            problem = _problem_of_path(path, member)
            if problem is not None:
                yield f"{member}: {path!r} {problem}"
    yield from _overlapping_outputs(job.outputs)
    for need in job.needs:
        if need not in target_names:
            yield f"it needs {need!r}, which is not a target{_hint(need, target_names)}"


def _problem_of_path(path: str, member: str) -> str | None:
    """Return why this is not the path of an input or output. Return None if it is one."""
    normal_path = os.path.normpath(path)
    top = normal_path.split("/")[0]
    if normal_path == "." or top in ("", ".."):
        return "is not inside the workspace"
    if top in OWN_PLACES and member == "inputs":
        return f"is in {top!r}, which belongs to the tool: name the target in needs"
    if top in OWN_PLACES:
        return f"is in {top!r}, which belongs to the tool: outputs are put there automatically"
    if normal_path == path:
        return None
    if member == "inputs" and path.endswith("/"):
        normal_path += "/**"
    return f"has an empty, '.' or '..' part: write {normal_path!r}"


def _overlapping_outputs(outputs: tuple[str, ...]) -> Iterator[str]:
    """Yield the outputs that are declared twice, or that are inside another output."""
    if len(outputs) == 1:
        # Most targets have one output. For 1,000 of them, the loop takes 12 ms.
        return
    for output, count in Counter(outputs).items():
        if count > 1:
            yield f"outputs: {output!r} is declared {count} times"
        for parent in PurePosixPath(output).parents:
            if str(parent) in outputs:
                yield f"outputs: {output!r} is inside {str(parent)!r}, which is an output too"


def _hint(word: str, known_words: Collection[str]) -> str:
    """Return a hint in parentheses if a known word is similar. Return "" if there is none."""
    hint = did_you_mean(word, list(known_words))
    if not hint:
        return ""
    return f" ({hint})"
