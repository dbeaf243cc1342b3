"""What a scenario file provides, and finding the files.

A file in scenarios/ tells its story in its docstring and names one `scenario`. The right way is production code: a
command of the tool, or a function that does nothing but call one verb of it. Everything else (the command, the tests,
the docs) reads these files; nothing is registered anywhere.
"""

import fcntl
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any, Literal

from sampletool.kit.contract.errors import InvalidValues, Mistake, did_you_mean
from sampletool.lab.errors import ScenarioNotFound

if TYPE_CHECKING:
    from sampletool.kit.stepping.tracer import Event

_SCENARIOS = "sampletool.lab.scenarios"
STORE_VARIABLE = "TOOL_LAB_STORE"
"""The URL of the store that scenarios use instead of a file of SQLite."""
NAIVE, FIXED = "naive", "fixed"
LETTERS = "ABCDEFGH"
KILL, INTERRUPT, POWER_CUT = "!", "~", "*"
STRIKES = {KILL: "kill -9", INTERRUPT: "signal TERM", POWER_CUT: "power cut"}
"""What may happen to the first worker between two of its steps."""


@dataclass(frozen=True)
class Step:
    """A name for one thing that a program does: which event it is, on which file."""

    name: str
    event: str
    file: str = "*"
    """A pattern for the name of the file (or of where a renamed file goes)."""
    kind: Literal["any", "read", "write", "create", "lock", "unlock"] = "any"
    """Which opening or locking is meant."""
    statement: str = ""
    """A pattern for how the SQL statement begins, in capitals."""
    after: tuple[str, ...] = ()
    """Only directly after one of these steps; `start` is the beginning."""
    waits: bool = False
    """Coming to this step again means that the step before did not succeed; twice in a row, that it is waiting."""
    holds: bool = False
    """From here on it is alone, until it ends or comes to a step that `frees`."""
    frees: bool = False

    def is_meant(self, seen: "Event", last: str) -> bool:
        return (
            seen.name == self.event
            and fnmatchcase(os.path.basename(seen.path), self.file)
            and (not self.after or last in self.after)
            and fnmatchcase(" ".join(seen.facts.get("statement", "").upper().split()), f"{self.statement}*")
            and _is_kind(self.kind, seen.facts)
        )


def _is_kind(kind: str, facts: Mapping[str, Any]) -> bool:
    flags, operation = facts.get("flags", 0), facts.get("operation", 0)
    writes = bool(flags & (os.O_WRONLY | os.O_RDWR))
    return {
        "any": True,
        "read": not writes,
        "write": writes,
        "create": bool(flags & os.O_EXCL),
        "lock": not operation & fcntl.LOCK_UN,
        "unlock": bool(operation & fcntl.LOCK_UN),
    }[kind]


@dataclass(frozen=True)
class Outcome:
    """How a run ended: what the workers left in the directory, and what they said."""

    directory: Path
    letters: Sequence[str]
    statuses: Mapping[str, int]
    """Of the workers that came to their end by themselves."""
    answers: Mapping[str, Any]
    """The JSON answers of those that gave one."""
    waited: Sequence[str] = ()
    """Those that had to wait at some moment."""
    crowd: Sequence[str] = ()
    """Those that were alone, each of them, at the same moment."""

    @property
    def served(self) -> list[str]:
        """The workers whose call answered that it worked."""
        return [letter for letter in self.letters if self.statuses.get(letter) == 0]


@dataclass(frozen=True)
class Way:
    """One way of doing it."""

    says: str
    """What it does, in half a sentence."""
    program: Callable[..., Any] | tuple[str, ...]
    """A function that is given the worker's letter and runs in the scratch directory, or the tool's arguments, in
    which {worker} stands for the letter; a coroutine function is given the scenario's `world` too."""
    steps: tuple[Step, ...]
    shows: str
    """The schedule that is run if nobody names another."""
    because: str
    """Why that schedule ends as it does."""
    prepare: Callable[[Path], None] | None = None
    """Instead of the scenario's."""
    strikes: str | None = None
    """Instead of the scenario's."""


@dataclass(frozen=True)
class Removal:
    """A place in the production code without which the right way is no longer right, and how to take it out."""

    file: str
    says: str
    line: str
    instead: str


@dataclass(frozen=True)
class Scenario:
    title: str
    rule: str
    happened: tuple[str, str]
    """A real incident in a sentence or two, and where it can be read."""
    good: str
    """What is true when it holds, in a sentence."""
    question: str
    """What a reader may try to predict before looking."""
    shared: str
    """What the workers share: the name of its lane in the picture."""
    prepare: Callable[[Path], None]
    look: Callable[[Path], str]
    """What the shared thing holds now, in a few characters."""
    check: Callable[[Outcome], str | None]
    """The invariant: None, or a sentence that says what is broken."""
    ways: Mapping[str, Way]
    removal: Removal
    still_broken_by: str
    """How to break it anyway."""
    symbol: str
    """The production code that makes it right, as module:name."""
    private: tuple[str, ...] = ()
    """The local variables, or attributes of them, in which a worker keeps its own copy of what is shared."""
    workers: int = 2
    needs_store: bool = False
    world: Callable[[], Any] | None = None
    """If the workers are coroutines of one process: what they share in its memory."""
    strikes: str = ""
    """What may happen to the first worker at each of its steps."""
    in_turn: bool = False
    """The second worker begins when the first one is over."""
    damage: Callable[[str, str, str], str | None] | None = None
    """What a step did wrong, from what was there before and after it."""
    after_power_cut: Callable[[Mapping[str, bytes], bool], str | None] | None = None
    """The invariant, for what the directory may hold after a power cut, and whether the worker had said that it is
    done."""

    def strikes_of(self, way: Way) -> str:
        return self.strikes if way.strikes is None else way.strikes


def use_store(url: str) -> None:
    """From now on, for this process and the workers that it starts."""
    try:
        import_module(f"{_SCENARIOS}.state._stores").refuse_password(url)
    except ModuleNotFoundError:
        raise InvalidValues(Mistake("--store", "INVALID_VALUE", "no scenario here needs a store", url)) from None
    os.environ[STORE_VARIABLE] = url


def is_elsewhere() -> bool:
    """Whether the store is a server, where a step is a whole verb."""
    return STORE_VARIABLE in os.environ


@cache
def names() -> list[str]:
    return sorted(_modules())


@cache
def _modules() -> dict[str, str]:
    """The module of each scenario: a file below scenarios/, also of a folder that is about another part."""
    package = import_module(_SCENARIOS)
    found = walk_packages(package.__path__, f"{package.__name__}.")
    files = [module.name for module in found if not module.ispkg]
    return {name.rpartition(".")[2].replace("_", "-"): name for name in files if "._" not in name}


def module_of(name: str) -> Any:
    if name not in names():
        raise ScenarioNotFound(scenario=name, suggestion=did_you_mean(name, names()))
    return import_module(_modules()[name])


def find(name: str) -> Scenario:
    scenario = module_of(name).scenario
    assert isinstance(scenario, Scenario)
    return scenario


def way_of(name: str, variant: str) -> Way:
    ways = find(name).ways
    if variant not in ways:
        problem, hint = f"{variant!r} is not a way of {name}", f"Its ways are {', '.join(ways)}."
        raise InvalidValues(Mistake("--variant", "INVALID_VALUE", problem, variant, hint))
    return ways[variant]
