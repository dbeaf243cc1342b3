"""How often a way breaks when nobody arranges anything: the workers are let go at the same moment, and that is all."""

import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.lab.scenario import LETTERS, History, Scenario, Way, find
from sampletool.lab.scratch import scratch

_LONGEST_SECONDS = 10


def broke_by_luck(
    name: str, variant: str, *, runs: int, workers: int | None, check: Callable[[], None] = lambda: None
) -> int:
    """In how many of the runs the invariant was broken, or a worker was stuck."""
    if not can_be_lucky(find(name), find(name).ways[variant]):
        problem = "nothing here is left to luck: the turns of one event loop, or a kill that has to be arranged"
        raise InvalidValues(Mistake("--by-luck", "INVALID_VALUE", problem, suggestion=f"See tool lab prove {name}."))
    broken = 0
    for _ in range(runs):
        check()
        broken += _break_one(name, variant, LETTERS[: workers or find(name).workers])
    return broken


def can_be_lucky(scenario: Scenario, way: Way) -> bool:
    return scenario.world is None and not way.strikes


def _break_one(name: str, variant: str, letters: str) -> bool:
    scenario = find(name)
    with scratch(scenario.ways[variant]) as (directory, environ), ExitStack() as stack:
        awaited, go = os.pipe()
        processes = {}
        try:
            for letter in letters:
                command = [sys.executable, "-m", "sampletool.lab.worker", name, variant, letter, "wait"]
                process = Popen(command, cwd=directory, env=environ, stdin=awaited, stdout=PIPE, stderr=DEVNULL)
                processes[letter] = stack.enter_context(process)
            for process in processes.values():
                assert process.stdout is not None
                process.stdout.read(1)
        finally:
            os.close(go)
            os.close(awaited)
        statuses, answers = {}, {}
        for letter, process in processes.items():
            try:
                stdout, _ = process.communicate(timeout=_LONGEST_SECONDS)
            except TimeoutExpired:
                for each in processes.values():
                    each.kill()
                return True
            statuses[letter] = process.returncode
            with suppress(ValueError):
                answers[letter] = json.loads(stdout)
        return any(scenario.invariant(History(letters, (), scenario.look(directory), statuses, answers)))
