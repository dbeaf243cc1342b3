"""What a scenario file provides, and finding the files.

A file in scenarios/ is one race. Its docstring tells the story, its `scenario` the rest. Functions are found by name:

* `prepare(directory)`: fills the scratch directory before a run.
* `look(directory)`: what the shared thing holds at this moment. It is called after every step; its text is what the
  picture shows. Where the invariant needs more than text, it is a NamedTuple with a `__str__`.
* `invariant(history)`: a generator that yields a sentence for each thing that is broken. Its docstring is the promise
  in words. It judges the whole history: each write by the state that it met, each answer by the state when it was
  given. It is called after every step, with the history so far, and at the end, when `history.is_over`. It reads no
  file: what it has to know, `look` has seen. After a power cut it is called for each state that the disk may have.
* a function for each of the `ways`, with `_` for `-`: `naive`, the way that people write; `wrong-…`, the tempting
  cures; `fixed`, and perhaps `fixed-…`, which are production code: a command of the tool, or a function that only calls
  one verb of it. Where the tool has no such verb, `no_verb` says so in the first line of the page.

Of `scenario`:

* `threads`: the workers are threads. Each variant is a function of the file, and shares its module-level variables.
  `prepare` and `look` run in the process of the threads, `invariant` does not: it judges what `look` has seen.
  The events that can be named as a step are `memory.read`, `memory.write` and `memory.call` of a variable,
  `lock.acquire` and `lock.release`; the `file` of such a step is the variable or the lock.
* `steps`: the names of what the workers do, for all ways; a way may have its own.
* `mechanisms`: what the right way rests on. Each is a small change of production code that takes one out, keeps serial
  runs right, and makes `lab check` find `breaks`.

The command, the tests, the pages and the list of `make mutants` read these files; nothing is registered anywhere.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, Literal

import sampletool

from ..kit.contract.errors import did_you_mean
from ..kit.stepping.tracer import Ended, Event
from .errors import ScenarioNotFound

PACKAGE = Path(sampletool.__file__).parent
SCENARIOS = "sampletool.lab.scenarios"
STORE_VARIABLE = "TOOL_LAB_STORE"
"""The URL of the store that scenarios use instead of a file of SQLite."""
NAIVE, FIXED = "naive", "fixed"
NAMED_STEPS, EVERY_STEP = "named-steps", "every-step"
LETTERS = "ABCDEFGH"
KILL, INTERRUPT, POWER_CUT = "!", "~", "*"
STRIKES = {KILL: "kill -9", INTERRUPT: "signal TERM", POWER_CUT: "power cut"}
"""What may happen to the first worker between two of its steps."""
_IN_THE_FILE: Any = None
"""The file of the scenario has it."""


@dataclass(frozen=True)
class Step:
    """A name for one thing that a program does: which event it is, on which file."""

    name: str
    event: str
    file: str = "*"
    """A pattern for the name of the file (or of where a renamed file goes); of a coroutine, for its letter."""
    kind: Literal["any", "read", "write", "create", "lock", "unlock"] = "any"
    """Which opening or locking is meant."""
    statement: str = ""
    """A pattern for how the SQL statement begins, whether in capitals or not."""
    after: tuple[str, ...] = ()
    """Only directly after one of these steps; `start` is the beginning."""
    waits: bool = False
    """Coming to this step again means that the step before did not succeed; twice in a row, that it is waiting."""
    holds: bool = False
    """From here on it is alone, until it ends or comes to a step that `frees`."""
    frees: bool = False

    def is_meant(self, seen: Event, last: str) -> bool:
        return (
            seen.name == self.event
            and fnmatchcase(os.path.basename(seen.path), self.file)
            and (not self.after or last in self.after)
            and fnmatchcase(
                " ".join(seen.facts.get("statement", "").upper().split()),
                f"{self.statement.upper()}*",
            )
            and _is_kind(self.kind, seen.facts)
        )


def _is_kind(kind: str, facts: Mapping[str, Any]) -> bool:
    flags, operation = facts.get("flags", 0), facts.get("operation", 0)
    opening = "write" if flags & (os.O_WRONLY | os.O_RDWR) else "read"
    locking = "unlock" if operation & fcntl.LOCK_UN else "lock"
    return kind in ("any", opening, locking) or (kind == "create" and bool(flags & os.O_EXCL))


@dataclass(frozen=True)
class Moment:
    """One step of one worker, or what struck it. Nobody else did anything meanwhile."""

    worker: str
    before: Any
    """What `look` saw."""
    after: Any
    alone: Sequence[str] = ()
    """The workers that hold the lock afterwards: more than one is a broken lock."""
    is_blocked: bool = False
    """It has to wait for another worker."""
    is_struck: bool = False
    ended: Ended | None = None
    """The worker ended by itself with this moment; so, and with this output."""


def answer_in(ended: Ended | None) -> Any:
    """What a worker said in the end, if that is JSON."""
    with suppress(ValueError):
        return json.loads(ended.stdout if ended else b"")
    return None


@dataclass(frozen=True)
class History:
    """What has happened in a run so far."""

    letters: Sequence[str]
    moments: Sequence[Moment]
    """Without a schedule (`--by-luck`) only the end of each worker."""
    now: Any
    """What `look` sees; after a power cut, one of the states that the disk may have."""
    is_over: bool = True
    directory: Path = Path()
    """The scratch directory, which the invariant of a learner's file looks at."""

    @property
    def statuses(self) -> dict[str, int]:
        """Of the workers that came to their end by themselves."""
        return {moment.worker: moment.ended.status for moment in self.moments if moment.ended}

    @property
    def answers(self) -> dict[str, Any]:
        """The JSON answers of those that gave one."""
        said = ((moment.worker, answer_in(moment.ended)) for moment in self.moments)
        return {letter: answer for letter, answer in said if answer is not None}

    @property
    def served(self) -> list[str]:
        """The workers whose call answered that it worked."""
        return [letter for letter in self.letters if self.statuses.get(letter) == 0]

    @property
    def failed(self) -> list[str]:
        """The workers that ended with an error."""
        return [letter for letter, status in self.statuses.items() if status]

    @property
    def crowds(self) -> list[str]:
        """What is broken where several held one lock, a sentence for each such group."""
        found = sorted(
            {" and ".join(moment.alone) for moment in self.moments if len(moment.alone) > 1}
        )
        return [f"{crowd} held the lock at the same moment." for crowd in found]


@dataclass(frozen=True)
class Way:
    """One way of doing it."""

    says: str
    """What it does, in half a sentence."""
    because: str
    """Why the schedule that `shows` ends as it does."""
    shows: str = "A1 B1 A2 B2"
    """The schedule that is run if nobody names another."""
    program: Callable[..., Any] | tuple[str, ...] = ()
    """The function of its name, which is given the worker's letter and runs in the scratch directory; a coroutine
    function is given the scenario's `world` too. Or the tool's arguments, in which {worker} stands for the letter."""
    steps: tuple[Step, ...] = ()
    """Instead of the scenario's."""
    breaks: str = ""
    """Of several things that are broken then, the one that the story is about: a part of the invariant's sentence."""
    prepare: Any = None
    """Instead of the scenario's."""
    in_turn: bool | None = None
    """Instead of the scenario's."""
    strikes: str | None = None
    """Instead of the scenario's."""
    takes_every_step: bool = False
    """Whether every call that has to do with files is a step, not only those that are named."""
    worker: tuple[str, ...] = ()
    """The module that each worker runs, and its arguments; the letter comes behind them. `find` gives it that."""

    def step_at(self, event: Event, last: str) -> Step | None:
        """The step that begins with this event, if one does; `last` is the step before."""
        return next((step for step in self.steps if step.is_meant(event, last)), None)


@dataclass(frozen=True)
class Removal:
    """A mechanism of the right way, and the change of the production code that takes it out."""

    function: str
    """The file below the package and, after a colon, the function or class."""
    says: str
    """What the code does without it."""
    pattern: str
    """The mechanism in that function, as syntax: see tests/kit/mutants/source.py."""
    instead: str
    breaks: str
    """What `lab check` then says is broken: a part of the invariant's sentence."""


@dataclass(frozen=True)
class Scenario:
    title: str
    """The usual name of the problem, which people search for."""
    rule: str
    happened: tuple[str, str]
    """A real incident in a sentence or two, and where it can be read."""
    question: str
    """What a reader may try to predict before looking."""
    shared: str
    """What the workers share: the name of its lane in the picture."""
    ways: Mapping[str, Way]
    mechanisms: tuple[Removal, ...]
    symbol: str
    """The code that makes it right, as module:name."""
    subtitle: str = ""
    """The story in one sentence."""
    steps: tuple[Step, ...] = ()
    look: Callable[[Path], Any] = _IN_THE_FILE
    invariant: Callable[[History], Iterator[str]] = _IN_THE_FILE
    no_verb: str = ""
    """Where no command of the tool does this: the sentence that says so, and what is shown instead."""
    private: tuple[str, ...] = ()
    """The local variables, or attributes of them, in which a worker keeps its own copy of what is shared."""
    workers: int = 2
    threads: bool = False
    """Whether the workers are threads of one process, which share the variables of the file."""
    world: Callable[[], Any] | None = None
    """If the workers are coroutines of one process: what they share in its memory."""
    strikes: str = ""
    """What may happen to the first worker at each of its steps."""
    in_turn: bool = False
    """The second worker begins when the first one is over."""
    every_step_workers: int | None = None
    """How many workers `lab check` runs with every call as a step, if not `workers`."""
    steps_every_call: bool = True
    """Whether `lab check` also takes every call of the fixed variants as a step."""
    name: str = ""
    """That of its file, with `-` for `_`; the story is what the file begins with. `find` gives it both."""
    story: str = ""

    @property
    def promise(self) -> str:
        """The invariant in words."""
        return " ".join((self.invariant.__doc__ or "").split())


def names() -> list[str]:
    return sorted(_modules())


@cache
def _modules() -> dict[str, str]:
    """The module of each scenario: a file below scenarios/, also of a folder that is about another part."""
    package = import_module(SCENARIOS)
    found = walk_packages(package.__path__, f"{package.__name__}.")
    files = [module.name for module in found if not module.ispkg]
    return {name.rpartition(".")[2].replace("_", "-"): name for name in files if "._" not in name}


def module_of(name: str) -> Any:
    if name not in _modules():
        raise ScenarioNotFound(scenario=name, suggestion=did_you_mean(name, names()))
    return import_module(_modules()[name])


def find(name: str) -> Scenario:
    """With what its file has by name, and what each way has from the scenario."""
    module = module_of(name)
    scenario: Scenario = module.scenario
    ways = {
        variant: replace(
            way,
            program=way.program or getattr(module, variant.replace("-", "_")),
            steps=way.steps or scenario.steps,
            prepare=way.prepare or module.prepare,
            in_turn=scenario.in_turn if way.in_turn is None else way.in_turn,
            strikes=scenario.strikes if way.strikes is None else way.strikes,
            worker=_worker_of(scenario, name, variant, NAMED_STEPS),
        )
        for variant, way in scenario.ways.items()
    }
    story = cleandoc(module.__doc__)
    return replace(
        scenario, look=module.look, invariant=module.invariant, ways=ways, name=name, story=story
    )


def _worker_of(scenario: Scenario, name: str, variant: str, steps: str) -> tuple[str, ...]:
    """Return the module that runs a worker of this variant, and its arguments."""
    if scenario.world is not None:
        return ("sampletool.lab.coroutines", name, variant)
    if scenario.threads:
        return ("sampletool.lab.scenario_threads", name, variant)
    return ("sampletool.lab.worker", name, variant, steps)


def with_every_step(scenario: Scenario, variant: str) -> Scenario:
    """Return the scenario with one variant, of which every call is a step, without strikes."""
    way = replace(
        scenario.ways[variant],
        takes_every_step=True,
        strikes="",
        worker=_worker_of(scenario, scenario.name, variant, EVERY_STEP),
    )
    return replace(scenario, ways={variant: way})


def is_right(variant: str) -> bool:
    """Whether this way has to hold on every schedule; any other has to break on some."""
    return variant.startswith(FIXED)
