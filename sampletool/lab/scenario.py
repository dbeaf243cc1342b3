"""The parts of a scenario: what its file defines, and how the lab finds the file.

Each file in scenarios/ describes one race. Its docstring tells the story, and its variable
`scenario` has the facts. The lab finds these functions of the file by name:

* `prepare(directory)` fills the scratch directory before a run.
* `read_state(directory)` returns the state that the workers share. The lab calls it after every
  step, and the picture shows it as text. If the invariant needs more than text, `read_state`
  returns an object with a `__str__`.
* `invariant(history)` is a generator that yields a sentence for each problem. Its docstring is the
  promise in words. It judges the whole history: each write by the state before it, and each
  response by the state at that moment. The lab calls it after every step, and at the end, when
  `history.is_finished`. It reads no file, because `read_state` has read the state already. After
  a power cut, the lab calls it for each possible state of the disk.
* Each variant has a function with its name, with `_` for `-`. `naive` has the usual bug, and
  `wrong-…` are tempting fixes that do not work. `fixed`, and perhaps `fixed-…`, run production
  code: a command of the tool, or one function of it. If the tool has no such command, the page
  begins with `no_verb`, which names the shown code.

Some fields of `scenario`:

* `steps` names the steps of the workers in all variants. A variant may have steps of its own.
* `threads` says that the workers are threads. Each variant is a function of the file, and the
  threads share the file's module-level variables. `prepare` and `read_state` run in the process
  of the threads. `invariant` runs in the lab's process, and judges what `read_state` has returned.
  A step can be one of the events `memory.read`, `memory.write`, `memory.call`, `lock.acquire` and
  `lock.release`. The `file` of such a step is the variable or the lock.
* `mechanisms` lists what makes the fixed variant right. Each entry is a small change of production
  code that removes one mechanism. With this change, serial runs are still right, but `lab check`
  finds the problem in `expected_problem`.

The commands, the tests, the pages and `make mutants` read these files. No file has to be
registered.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
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
"""The environment variable with the URL of a store, which scenarios use instead of SQLite."""
NAIVE, FIXED = "naive", "fixed"
NAMED_STEPS, EVERY_STEP = "named-steps", "every-step"
LETTERS = "ABCDEFGH"
KILL, INTERRUPT, POWER_CUT = "!", "~", "*"
FAULTS = {KILL: "kill -9", INTERRUPT: "signal TERM", POWER_CUT: "power cut"}
"""The faults that can hit worker A between two of its steps: their signs and their names."""
_IN_THE_FILE: Any = None
"""The placeholder for a field that `find_scenario` fills from the file of the scenario."""


@dataclass(frozen=True)
class Step:
    """A named step of a program: one kind of event, on one file."""

    name: str
    event: str
    file: str = "*"
    """A pattern for the name of the file, or for the letter of a coroutine.

    For a rename, the pattern is compared with the new name.
    """
    kind: Literal["any", "read", "write", "create", "lock", "unlock"] = "any"
    """The kind of opening or locking."""
    statement: str = ""
    """A pattern for the beginning of the SQL statement. Case does not matter."""
    after_steps: tuple[str, ...] = ()
    """The names of the possible previous steps. `start` is the beginning of the worker."""
    waits_in_loop: bool = False
    """Whether a worker that reaches this step twice in a row is waiting."""
    takes_lock: bool = False
    """Whether the worker holds the lock after this step, until it exits or releases the lock."""
    releases_lock: bool = False

    def begins_with(self, event: Event, previous_step: str) -> bool:
        """Return whether this step begins with this event, after the step named `previous_step`."""
        if event.name != self.event:
            return False
        file_name = os.path.basename(event.path)
        if not fnmatchcase(file_name, self.file):
            return False
        if self.after_steps and previous_step not in self.after_steps:
            return False
        if not self._matches_statement(event):
            return False
        return self.kind == "any" or self.kind in _kinds_of_call(event)

    def _matches_statement(self, event: Event) -> bool:
        """Return whether the SQL statement of the event begins with the statement of this step.

        Ignore the case, and how the words are separated. An event without a statement matches only
        a step without one.
        """
        statement = " ".join(event.facts.get("statement", "").split())
        return fnmatchcase(statement.upper(), f"{self.statement.upper()}*")


def _kinds_of_call(event: Event) -> set[str]:
    """Return the kinds that a call has as an opening of a file, and as an operation of flock()."""
    open_flags = event.facts.get("flags", 0)
    lock_operation = event.facts.get("operation", 0)
    kinds = set()
    if open_flags & (os.O_WRONLY | os.O_RDWR):
        kinds.add("write")
    else:
        kinds.add("read")
    if open_flags & os.O_EXCL:
        kinds.add("create")
    if lock_operation & fcntl.LOCK_UN:
        kinds.add("unlock")
    else:
        kinds.add("lock")
    return kinds


@dataclass(frozen=True)
class TakenStep:
    """One step of one worker, or a fault that hit it. No other worker ran at that time."""

    worker: str
    state_before: Any
    """The state that `read_state` returned before the step."""
    state_after: Any
    """The state that `read_state` returned after the step."""
    lock_holders: Sequence[str] = ()
    """The workers that hold the lock after the step. If there are several, the lock is broken."""
    is_blocked: bool = False
    """Whether the worker has to wait for another worker."""
    is_fault: bool = False
    """Whether the worker did not take a step, but was killed or interrupted."""
    exit_result: Ended | None = None
    """The exit code and output of the worker, if it exited by itself in this step."""


def response_of(exit_result: Ended | None) -> Any:
    """Return the JSON that a worker has printed, or None if it still runs or has printed none."""
    if exit_result is None:
        return None
    try:
        return json.loads(exit_result.stdout)
    except ValueError:
        return None


@dataclass(frozen=True)
class History:
    """Everything that has happened in a run so far. An invariant judges it."""

    workers: Sequence[str]
    """The names of the workers: A, B and so on."""
    taken_steps: Sequence[TakenStep]
    """The steps and faults in their order. With `--by-luck`, only the end of each worker."""
    state: Any
    """The state that `read_state` returns now. After a power cut, a possible state of the disk."""
    is_finished: bool = True
    """Whether all workers have exited."""
    directory: Path = Path()
    """The scratch directory. Only the invariant of a learner's file reads files in it."""
    disks_after_power_cut: Callable[[], Iterator[Files]] = lambda: iter(())
    """A function that yields each possible state of the disk if the power fails now.

    It knows only the writes of A.
    """

    @property
    def exit_codes(self) -> dict[str, int]:
        """The exit codes of the workers that have exited by themselves."""
        exit_codes = {}
        for step in self.taken_steps:
            if step.exit_result is not None:
                exit_codes[step.worker] = step.exit_result.status
        return exit_codes

    @property
    def responses(self) -> dict[str, Any]:
        """The JSON responses of the workers that have printed one."""
        responses = {}
        for step in self.taken_steps:
            response = response_of(step.exit_result)
            if response is not None:
                responses[step.worker] = response
        return responses

    @property
    def successful_workers(self) -> list[str]:
        """The workers that exited with code 0."""
        return [worker for worker in self.workers if self.exit_codes.get(worker) == 0]

    @property
    def failed_workers(self) -> list[str]:
        """The workers that exited with an error."""
        return [worker for worker, exit_code in self.exit_codes.items() if exit_code != 0]

    @property
    def lock_problems(self) -> list[str]:
        """A sentence for each group of workers that held the lock at the same moment."""
        groups = set()
        for step in self.taken_steps:
            if len(step.lock_holders) > 1:
                groups.add(" and ".join(step.lock_holders))
        return [f"{group} held the lock at the same moment." for group in sorted(groups)]


@dataclass(frozen=True)
class Variant:
    """One variant of a program: the naive one, a wrong fix, or the fixed one."""

    summary: str
    """The behaviour of the variant, as part of a sentence: "writes a line in two pieces"."""
    explanation: str
    """The reason why `schedule` breaks this variant, or why it does not."""
    schedule: str = "A1 B1 A2 B2"
    """The schedule that `lab run` follows by default."""
    program: Callable[..., Any] | tuple[str, ...] = ()
    """A function, or the arguments of the tool.

    A function gets the name of the worker, and runs in the scratch directory. A coroutine function
    also gets the shared memory of the scenario. {worker} in the arguments is replaced by the name.
    """
    steps: tuple[Step, ...] = ()
    """Replaces the scenario's field with this name."""
    expected_problem: str = ""
    """A part of the sentence to report first if the invariant finds several problems."""
    prepare: Any = None
    """Replaces the scenario's function with this name."""
    one_after_another: bool | None = None
    """Replaces the scenario's field with this name."""
    faults: str | None = None
    """Replaces the scenario's field with this name."""
    stops_at_every_call: bool = False
    """Whether every call that uses files is a step, and not only the named steps."""
    worker_command: tuple[str, ...] = ()
    """The module that each worker runs, and its arguments without the worker's name.

    `find_scenario` fills this field.
    """

    def step_at(self, event: Event, previous_step: str) -> Step | None:
        """Return the named step that begins with this event, or None if no step does."""
        for step in self.steps:
            if step.begins_with(event, previous_step):
                return step
        return None


@dataclass(frozen=True)
class Mutation:
    """A change of production code that removes one mechanism of the fixed variant."""

    function: str
    """The file below the package and, after a colon, the function or class."""
    summary: str
    """The effect of the change, as part of a sentence."""
    original_code: str
    """The code of the mechanism in that function, as syntax: see tests/kit/mutants/source.py."""
    replacement_code: str
    expected_problem: str
    """A part of the sentence that `lab check` prints when the mechanism is missing."""


@dataclass(frozen=True)
class Scenario:
    """One race: its story, its variants, and the rules that judge them."""

    title: str
    """The usual name of the problem, which people search for."""
    rule: str
    """The sentence to remember."""
    happened: tuple[str, str]
    """A real incident in a sentence or two, and a link to it."""
    question: str
    """A question that readers can try to answer before they run the scenario."""
    shared: str
    """A name for the shared data: the heading of the last column in the picture."""
    variants: Mapping[str, Variant]
    """The variants by their names, such as `naive` and `fixed`."""
    mechanisms: tuple[Mutation, ...]
    production_code: str
    """The production code that prevents the race, as module:name."""
    subtitle: str = ""
    """The story in one sentence."""
    steps: tuple[Step, ...] = ()
    read_state: Callable[[Path], Any] = _IN_THE_FILE
    invariant: Callable[[History], Iterator[str]] = _IN_THE_FILE
    no_verb: str = ""
    """A sentence that names the shown code, if no command of the tool prevents the race."""
    private_variables: tuple[str, ...] = ()
    """The local variables, or their attributes, that hold a worker's own copy of shared data."""
    workers: int = 2
    threads: bool = False
    """Whether the workers are threads of one process, which share the variables of the file."""
    create_shared_memory: Callable[[], Any] | None = None
    """The function for this, if the workers are coroutines of one process."""
    faults: str = ""
    """The signs of the faults that can hit worker A at each of its steps: keys of FAULTS."""
    one_after_another: bool = False
    """Whether each worker begins only when the one before it has exited."""
    every_step_workers: int | None = None
    """The number of workers when `lab check` takes every call as a step. None means `workers`."""
    checks_every_call: bool = True
    """Whether `lab check` also takes every call of the fixed variants as a step."""
    name: str = ""
    """The name of its file, with `-` for `_`. Filled by `find_scenario`."""
    story: str = ""
    """The docstring of its file. Filled by `find_scenario`."""

    @property
    def promise(self) -> str:
        """The invariant in words."""
        return " ".join((self.invariant.__doc__ or "").split())


def scenario_names() -> list[str]:
    """Return the names of all scenarios in alphabetical order."""
    return sorted(_modules_by_scenario())


@cache
def _modules_by_scenario() -> dict[str, str]:
    """Return the name of each scenario's module, by the name of the scenario."""
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
    modules = _modules_by_scenario()
    if name not in modules:
        raise ScenarioNotFound(scenario=name, suggestion=did_you_mean(name, scenario_names()))
    return import_module(modules[name])


def find_scenario(name: str) -> Scenario:
    """Return a scenario whose empty fields are filled from its file.

    Raise ScenarioNotFound if there is no such scenario.
    """
    module = module_of(name)
    incomplete: Scenario = module.scenario
    scenario = replace(
        incomplete,
        read_state=module.read_state,
        invariant=module.invariant,
        name=name,
        story=cleandoc(module.__doc__),
    )
    variants = {}
    for variant_name, variant in scenario.variants.items():
        variants[variant_name] = _complete_variant(variant, variant_name, scenario, module)
    return replace(scenario, variants=variants)


def _complete_variant(
    variant: Variant,
    variant_name: str,
    scenario: Scenario,
    module: Any,
) -> Variant:
    """Return the variant with its empty fields filled from the scenario and from its module."""
    program = variant.program
    if not program:
        program = getattr(module, variant_name.replace("-", "_"))
    one_after_another = variant.one_after_another
    if one_after_another is None:
        one_after_another = scenario.one_after_another
    faults = variant.faults
    if faults is None:
        faults = scenario.faults
    return replace(
        variant,
        program=program,
        steps=variant.steps or scenario.steps,
        prepare=variant.prepare or module.prepare,
        one_after_another=one_after_another,
        faults=faults,
        worker_command=_worker_command(scenario, variant_name, NAMED_STEPS),
    )


def _worker_command(scenario: Scenario, variant_name: str, steps: str) -> tuple[str, ...]:
    """Return the name of the module that runs a worker of this variant, then its arguments.

    `steps` is NAMED_STEPS or EVERY_STEP. Workers that share memory do not need it.
    """
    if scenario.create_shared_memory is not None:
        return ("sampletool.lab.coroutines", scenario.name, variant_name)
    if scenario.threads:
        return ("sampletool.lab.scenario_threads", scenario.name, variant_name)
    return ("sampletool.lab.worker", scenario.name, variant_name, steps)


def with_every_step(scenario: Scenario, variant_name: str) -> Scenario:
    """Return the scenario with only this variant. Every call is a step, and no fault occurs."""
    variant = replace(
        scenario.variants[variant_name],
        stops_at_every_call=True,
        faults="",
        worker_command=_worker_command(scenario, variant_name, EVERY_STEP),
    )
    return replace(scenario, variants={variant_name: variant})


def is_right(variant_name: str) -> bool:
    """Return whether this variant must hold on every schedule. Other variants must break on one."""
    return variant_name.startswith(FIXED)
