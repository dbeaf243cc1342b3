"""What a store that decides on its server (redis.lua) refuses, as our errors."""

from typing import Any

from sampletool.contract.errors import ToolError, VersionConflict
from sampletool.contract.store_errors import CounterRange, LeaseLost, TaskConflict, TaskNotFound


def refusal(kind: str, facts: list[str], asked: Any) -> ToolError:
    """`asked` is the generation that was named, if one was."""
    what = facts[0]
    if kind == "TASK_NOT_FOUND":
        return TaskNotFound(what)
    if kind == "TASK_CONFLICT":
        return TaskConflict(what)
    if kind == "LEASE_LOST":
        return LeaseLost(what, int(asked), int(facts[1]), facts[2])
    if kind == "VERSION_CONFLICT":
        return VersionConflict(what, int(facts[1]), int(facts[2]))
    return CounterRange(what, int(facts[1]), int(facts[2]))
