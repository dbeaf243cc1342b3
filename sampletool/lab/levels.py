"""Order the scenarios by level, and within a level from easy to hard.

`tool lab list`, the index of the pages and the menu of the explorer use this order.
"""

from collections.abc import Mapping

from .scenario import scenario_names

LEVELS: Mapping[str, tuple[str, ...]] = {
    "start here": ("lost-config-update",),
    "files": (
        "torn-write",
        "interleaved-log",
        "shared-output",
        "several-files",
        "planted-link",
    ),
    "locks": ("stale-lock", "unlinked-lock", "lock-order", "lock-conflict", "leaked-lock"),
    "processes": (
        "orphan-child",
        "reused-pid",
        "threads-counter",
        "in-process-queue",
        "coordinator",
        "fork-with-threads",
    ),
    "stores": ("lost-increments", "double-claim", "stale-write", "write-skew", "sqlite-upgrade"),
    "distributed": ("retry-twice", "zombie-worker"),
}

OTHER_LEVEL = "more"
"""The level of a scenario that is not in LEVELS, such as one that a fork has added."""


def names_by_level() -> dict[str, list[str]]:
    """Return the scenarios of each level. Leave out levels without scenarios.

    A project that has removed a part does not have its scenarios either.
    """
    names_without_level = scenario_names()
    by_level: dict[str, list[str]] = {}
    for level, level_names in LEVELS.items():
        existing_names = [name for name in level_names if name in names_without_level]
        if existing_names:
            by_level[level] = existing_names
        names_without_level = [name for name in names_without_level if name not in existing_names]
    if names_without_level:
        by_level[OTHER_LEVEL] = names_without_level
    return by_level


def names_in_order() -> list[str]:
    """Return the names of all scenarios from easy to hard."""
    names = []
    for level_names in names_by_level().values():
        names += level_names
    return names


def level_of(name: str) -> str:
    """Return the level of a scenario. Raise KeyError if there is no such scenario."""
    for level, level_names in names_by_level().items():
        if name in level_names:
            return level
    raise KeyError(name)
