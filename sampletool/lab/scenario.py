"""The parts of a scenario: what its file provides, and how the file is found.

A file in scenarios/ is one race. Its docstring tells the story, and its variable `scenario` has
the rest. These functions are found by name:

* `prepare(directory)` fills the scratch directory before a run.
* `look(directory)` returns the content of what the workers share. It is called after every step.
  Its text is what the picture shows. If the invariant needs more than text, `look` returns a
  NamedTuple with a `__str__`.
* `invariant(history)` is a generator that yields a sentence for each thing that is broken. Its
  docstring is the promise in words. It judges the whole history: each write by the state before
  it, and each response by the state at that moment. It is called after every step, and at the
  end, when `history.is_over`. It reads no file, because `look` has seen what it has to know.
  After a power cut, it is called for each state that the disk may have.
* There is a function for each of the `ways`, with `_` for `-`. `naive` is the way that people
  write, and `wrong-…` are the tempting cures. `fixed`, and perhaps `fixed-…`, are production
  code: a command of the tool, or a function that only calls one function of it. If the tool has
  none, `no_verb` says so in the first line of the page.

Some fields of `scenario`:

* `steps` names what the workers do, in all variants. A variant may have its own.
* `threads` says that the workers are threads. Each variant is a function of the file, and they
  share its module-level variables. `prepare` and `look` run in the process of the threads.
  `invariant` does not: it judges what `look` has returned. The events that can be named as a step
  are `memory.read`, `memory.write`, `memory.call`, `lock.acquire` and `lock.release`. The `file`
  of such a step is the variable or the lock.
* `mechanisms` are what the fixed variant rests on. Each is a small change of production code that
  removes one of them, keeps serial runs right, and makes `lab check` find `breaks`.

The command, the tests, the pages and the list of `make mutants` read these files. Nothing is
registered anywhere.
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
from ..kit.stepping.power_cut import Files
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
"""A field that `find` fills from the file of the scenario."""


@dataclass(frozen=True)
class Step:
    """A name for one thing that a program does: for one event, on one file."""

    name: str
    event: str
    file: str = "*"
    """A pattern for the name of the file, or for the letter of a coroutine.

    If a file is renamed, it is the new name.
    """
    kind: Literal["any", "read", "write", "create", "lock", "unlock"] = "any"
    """The kind of opening or locking that is meant."""
    statement: str = ""
    """A pattern for the beginning of the SQL statement, in any case."""
    after: tuple[str, ...] = ()
    """The names of the steps directly before this one. `start` is the beginning of the worker."""
    waits: bool = False
    """Whether coming to this step again means that the worker waits."""
    holds: bool = False
    """Whether the worker holds the lock from here on, until it ends or a step `frees` the lock."""
    frees: bool = False

    def is_meant(self, seen: Event, last: str) -> bool:
        """Return whether this event begins the step. `last` is the name of the step before."""
        if seen.name != self.event:
            return False
        if not fnmatchcase(os.path.basename(seen.path), self.file):
            return False
        if self.after and last not in self.after:
            return False
        statement = " ".join(seen.facts.get("statement", "").upper().split())
        if not fnmatchcase(statement, f"{self.statement.upper()}*"):
            return False
        return self.kind == "any" or self.kind in _kinds_of(seen.facts)


def _kinds_of(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the kinds of opening or locking that an event is."""
    flags = facts.get("flags", 0)
    yield "write" if flags & (os.O_WRONLY | os.O_RDWR) else "read"
    if flags & os.O_EXCL:
        yield "create"
    yield "unlock" if facts.get("operation", 0) & fcntl.LOCK_UN else "lock"


@dataclass(frozen=True)
class Moment:
    """One step of one worker, or what struck it. No other worker did anything at that time."""

    worker: str
    before: Any
    """What `look` returned before."""
    after: Any
    """What `look` returned afterwards."""
    alone: Sequence[str] = ()
    """The workers that hold the lock afterwards. More than one is a broken lock."""
    is_blocked: bool = False
    """Whether it has to wait for another worker."""
    is_struck: bool = False
    """Whether it was killed, for example, instead of taking a step."""
    ended: Ended | None = None
    """The exit code and output of the worker, if it exited by itself in this moment."""


def answer_in(ended: Ended | None) -> Any:
    """Return the response of a worker, or None if it has printed no JSON."""
    with suppress(ValueError):
        return json.loads(ended.stdout if ended else b"")
    return None


@dataclass(frozen=True)
class History:
    """All that has happened in a run so far."""

    letters: Sequence[str]
    moments: Sequence[Moment]
    """The moments in their order. With `--by-luck`, only the end of each worker."""
    now: Any
    """What `look` returns now. After a power cut, it is one of the possible states of the disk."""
    is_over: bool = True
    directory: Path = Path()
    """The scratch directory, which the invariant of a learner's file looks at."""
    disks: Callable[[], Iterator[Files]] = lambda: iter(())
    """Yields the states that the disk may have if the power fails now. Only A may have written."""

    @property
    def statuses(self) -> dict[str, int]:
        """The exit codes of the workers that have exited by themselves."""
        return {moment.worker: moment.ended.status for moment in self.moments if moment.ended}

    @property
    def answers(self) -> dict[str, Any]:
        """The JSON responses of the workers that have printed one."""
        answers = {}
        for moment in self.moments:
            answer = answer_in(moment.ended)
            if answer is not None:
                answers[moment.worker] = answer
        return answers

    @property
    def served(self) -> list[str]:
        """The workers that succeeded."""
        return [letter for letter in self.letters if self.statuses.get(letter) == 0]

    @property
    def failed(self) -> list[str]:
        """The workers that exited with an error."""
        return [letter for letter, status in self.statuses.items() if status]

    @property
    def crowds(self) -> list[str]:
        """A sentence for each group of workers that held one lock at the same moment."""
        found = sorted(
            {" and ".join(moment.alone) for moment in self.moments if len(moment.alone) > 1}
        )
        return [f"{crowd} held the lock at the same moment." for crowd in found]


@dataclass(frozen=True)
class Way:
    """One variant of a program: the naive one, a wrong cure, or the fixed one."""

    says: str
    """The part of a sentence that says what the variant does."""
    because: str
    """The reason why the schedule in `shows` ends as it does."""
    shows: str = "A1 B1 A2 B2"
    """The schedule that is run by default."""
    program: Callable[..., Any] | tuple[str, ...] = ()
    """A function, or the arguments of the tool.

    A function gets the worker's letter, and runs in the scratch directory. A coroutine function
    also gets the scenario's `world`. In the arguments, {worker} stands for the letter.
    """
    steps: tuple[Step, ...] = ()
    """Replaces the scenario's field with this name."""
    breaks: str = ""
    """A part of the invariant's sentence that the story is about, if several things are broken."""
    prepare: Any = None
    """Replaces the scenario's function with this name."""
    in_turn: bool | None = None
    """Replaces the scenario's field with this name."""
    strikes: str | None = None
    """Replaces the scenario's field with this name."""
    takes_every_step: bool = False
    """Whether every call that has to do with files is a step, not only those that are named."""
    worker: tuple[str, ...] = ()
    """The module that each worker runs, and its arguments without the letter. Filled by `find`."""

    def step_at(self, event: Event, last: str) -> Step | None:
        """Return the step that begins with this event, or None. `last` is the step before."""
        for step in self.steps:
            if step.is_meant(event, last):
                return step
        return None


@dataclass(frozen=True)
class Removal:
    """A mechanism of the fixed variant, and the change of the production code that removes it."""

    function: str
    """The file below the package and, after a colon, the function or class."""
    says: str
    """The effect of the change, as part of a sentence."""
    pattern: str
    """The mechanism in that function, as syntax: see tests/kit/mutants/source.py."""
    instead: str
    """The code that replaces it."""
    breaks: str
    """A part of the invariant's sentence that `lab check` then prints."""


@dataclass(frozen=True)
class Scenario:
    """One race: its story, its variants, and how they are judged."""

    title: str
    """The usual name of the problem, which people search for."""
    rule: str
    """The sentence to remember."""
    happened: tuple[str, str]
    """A real incident in a sentence or two, and a link to it."""
    question: str
    """A question that a reader may try to answer before looking."""
    shared: str
    """The name of what the workers share. It is the head of the last column in the picture."""
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
    """If no command of the tool does this, a sentence that says so, and names what is shown."""
    private: tuple[str, ...] = ()
    """The local variables, or their attributes, that are a worker's own copy of what is shared."""
    workers: int = 2
    threads: bool = False
    """Whether the workers are threads of one process, which share the variables of the file."""
    world: Callable[[], Any] | None = None
    """Creates what the workers share in memory, if they are coroutines of one process."""
    strikes: str = ""
    """What may happen to the first worker at each of its steps."""
    in_turn: bool = False
    """Whether the second worker begins when the first one has ended."""
    every_step_workers: int | None = None
    """The number of workers in `lab check` with every call as a step, if it is not `workers`."""
    steps_every_call: bool = True
    """Whether `lab check` also takes every call of the fixed variants as a step."""
    name: str = ""
    """The name of its file, with `-` for `_`. Filled by `find`."""
    story: str = ""
    """The docstring of its file. Filled by `find`."""

    @property
    def promise(self) -> str:
        """The invariant in words."""
        return " ".join((self.invariant.__doc__ or "").split())


def names() -> list[str]:
    """Return the names of all scenarios in alphabetical order."""
    return sorted(_modules())


@cache
def _modules() -> dict[str, str]:
    """Return the module of each scenario: a file in scenarios/ or in a folder of another part."""
    package = import_module(SCENARIOS)
    modules = {}
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        is_helper = "._" in module.name
        if module.ispkg or is_helper:
            continue
        _, _, file_name = module.name.rpartition(".")
        modules[file_name.replace("_", "-")] = module.name
    return modules


def module_of(name: str) -> Any:
    """Return the module of a scenario. Raise ScenarioNotFound if there is no such scenario."""
    if name not in _modules():
        raise ScenarioNotFound(scenario=name, suggestion=did_you_mean(name, names()))
    return import_module(_modules()[name])


def find(name: str) -> Scenario:
    """Return a scenario, with the functions of its file, and with complete variants.

    Raise ScenarioNotFound if there is no such scenario.
    """
    module = module_of(name)
    scenario: Scenario = module.scenario
    ways = {}
    for variant, way in scenario.ways.items():
        ways[variant] = _complete(way, variant, scenario, module, name)
    return replace(
        scenario,
        look=module.look,
        invariant=module.invariant,
        ways=ways,
        name=name,
        story=cleandoc(module.__doc__),
    )


def _complete(way: Way, variant: str, scenario: Scenario, module: Any, name: str) -> Way:
    """Return the variant with what it has from the scenario and from its file."""
    program = way.program
    if not program:
        program = getattr(module, variant.replace("-", "_"))
    return replace(
        way,
        program=program,
        steps=way.steps or scenario.steps,
        prepare=way.prepare or module.prepare,
        in_turn=scenario.in_turn if way.in_turn is None else way.in_turn,
        strikes=scenario.strikes if way.strikes is None else way.strikes,
        worker=_worker_of(scenario, name, variant, NAMED_STEPS),
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
    """Return whether this variant has to hold on every schedule. Any other has to break on some."""
    return variant.startswith(FIXED)
