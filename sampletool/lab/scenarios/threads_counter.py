"""Two threads of one process add one to the same variable, with `counter += 1`.

It is one line, but not one step. Python reads the variable, adds one, and writes it back. If the
other thread does the same in between, one increment is lost. A lock that both threads take prevents
this. The same happens with data that is created when it is first needed: two threads find nothing,
and both create it. And a thread that puts an empty object there, to fill it afterwards, lets the
other thread use it too early.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..scenario import History, Mutation, Scenario, Step, Variant

lock = threading.Lock()
counter = 0
config: dict[str, str] | None = None
loads = 0
"""How often the config was loaded."""


def naive(worker: str) -> None:
    global counter
    counter += 1


def wrong_own_lock(worker: str) -> None:
    """Lock a lock of its own. Wrong: the other thread locks another one."""
    global counter
    own_lock = threading.Lock()
    with own_lock:
        counter += 1


def fixed(worker: str) -> None:
    global counter
    with lock:
        counter += 1


def wrong_checked_once(worker: str) -> None:
    """Load the config under a lock. Wrong: another thread may have loaded it before."""
    global config
    if config is None:
        with lock:
            config = load()
    use(config)


def wrong_published_early(worker: str) -> None:
    """Load the config once. Wrong: another thread may use it while it is still empty."""
    global config
    if config is None:
        with lock:
            if config is None:
                config = {}
                config.update(load())
    use(config)


def fixed_double_checked(worker: str) -> None:
    global config
    if config is None:
        with lock:
            if config is None:
                config = load()
    use(config)


def load() -> dict[str, str]:
    """Return the settings, and count this load."""
    global loads
    loads += 1
    return {"colour": "blue"}


def use(settings: dict[str, str]) -> str:
    """Return a setting. Raise KeyError if the settings are not complete."""
    return settings["colour"]


def prepare(directory: Path) -> None:
    """Do nothing: what the threads share is in memory."""


@dataclass(frozen=True)
class Memory:
    """The shared variables."""

    counter: int
    config: Literal["none", "empty", "complete"]
    loads: int

    def __str__(self) -> str:
        if self.loads == 0 and self.config == "none":
            return f"counter {self.counter}, no config"
        return f"config: {self.config}, loads: {self.loads}"


def read_state(directory: Path) -> Memory:
    """Return the values of the variables that the threads share."""
    config_state: Literal["none", "empty", "complete"] = "none"
    if config is not None:
        config_state = "complete" if config else "empty"
    return Memory(counter=counter, config=config_state, loads=loads)


def invariant(history: History) -> Iterator[str]:
    """Each thread that has finished is counted.

    The config is loaded once, and not used before it is complete.
    """
    memory = history.state
    finished_threads = len(history.successful_workers)
    # A variant uses either the config or the counter.
    uses_counter = memory.loads == 0
    if uses_counter and memory.counter < finished_threads:
        yield f"{finished_threads} threads have counted, but the counter is {memory.counter}."
    if memory.loads > 1:
        yield f"the config was loaded {memory.loads} times."
    for worker in history.failed_workers:
        yield f"{worker} used the config before it was complete."


LOCK = Step(name="lock", event="lock.acquire", file="lock", takes_lock=True)
RELEASE = Step(name="unlock", event="lock.release", file="lock", releases_lock=True)
COUNTER_STEPS = (
    LOCK,
    RELEASE,
    Step(name="read", event="memory.read", file="counter"),
    Step(name="write", event="memory.write", file="counter"),
)
# The release is no step here. With it, there would be three times as many schedules.
CONFIG_STEPS = (
    Step(name="lock", event="lock.acquire", file="lock"),
    Step(name="read", event="memory.read", file="config"),
    Step(name="write", event="memory.write", file="config"),
)


scenario = Scenario(
    title="Thread safety: two threads increment one counter",
    subtitle="`counter += 1` is one line of Python, but not one step.",
    rule=(
        "If threads share something that changes, let all of them take the same lock, and publish "
        "only what is complete."
    ),
    happened=(
        "Forseti Security counted the objects that its threads found with `+=`. The fix was a "
        "lock, "
        "because `+=` is not safe for threads.",
        "https://github.com/forseti-security/forseti-security/pull/3080",
    ),
    question="The counter is at 0. Two threads run `counter += 1`. What can it be afterwards?",
    shared="shared memory",
    threads=True,
    variants={
        "naive": Variant(
            summary="runs `counter += 1` in each thread",
            explanation="Both threads read 0, and both wrote 1.",
        ),
        "wrong-own-lock": Variant(
            summary="does the same under a lock that each thread creates for itself",
            explanation="Each thread has another lock, so neither of them waits.",
        ),
        "fixed": Variant(
            summary="does the same under one lock that both threads share",
            schedule="A1 B1 A2 A3",
            explanation="B had to wait until A had written, and then read the new number.",
        ),
        "wrong-checked-once": Variant(
            summary=(
                "loads a config when it is first needed, and checks for it only before taking the "
                "lock"
            ),
            steps=CONFIG_STEPS,
            schedule="A1 B1 A2 A3",
            explanation="B checked before A had loaded the config, and did not check again.",
        ),
        "wrong-published-early": Variant(
            summary="checks again under the lock, but stores an empty config before it fills it",
            steps=CONFIG_STEPS,
            schedule="A1 A2 A3 A4 B1 B2",
            explanation="B found a config and took no lock, but the config was still empty.",
        ),
        "fixed-double-checked": Variant(
            summary="checks again under the lock, and stores the config when it is complete",
            steps=CONFIG_STEPS,
            schedule="A1 B1 A2 B2 A3 A4",
            explanation="B checked again when it had the lock, and found a complete config.",
        ),
    },
    steps=COUNTER_STEPS,
    mechanisms=(
        Mutation(
            function="lab/scenarios/threads_counter.py:fixed",
            summary="do not take the lock",
            original_code="with lock:\n    ...",
            replacement_code="if lock:\n    ...",
            expected_problem="threads have counted, but the counter is",
        ),
        Mutation(
            function="lab/scenarios/threads_counter.py:fixed_double_checked",
            summary="do not check again under the lock",
            original_code="with lock:\n    if config is None:\n        ...",
            replacement_code="with lock:\n    if lock:\n        ...",
            expected_problem="the config was loaded 2 times",
        ),
    ),
    production_code="sampletool.lab.scenarios.threads_counter:fixed_double_checked",
    no_verb=(
        "No command of this tool shares a variable between threads. The fix on this page is an "
        "example that uses "
        "`threading.Lock`."
    ),
)
