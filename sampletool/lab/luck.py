"""How often a way breaks when nobody arranges anything: the workers are let go at the same moment, and that is all."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.lab.scenario import History, Moment, Scenario, Way, find
from sampletool.lab.scratch import scratch

_LONGEST_SECONDS = 10


class _Unrecorded(tuple[Moment, ...]):
    """Without a schedule there is no record of moments. An invariant that asks for them is told of none."""

    was_asked_for = False

    def __iter__(self) -> Iterator[Moment]:
        self.was_asked_for = True
        return iter(())


def try_luck(name: str, variant: str, runs: int, letters: str, check: Callable[[], None]) -> tuple[int, bool]:
    """In how many runs the promise was broken, or a worker stuck; and whether they were judged by their ends alone."""
    if not can_be_lucky(find(name), find(name).ways[variant]):
        problem = "nothing here is left to luck: the turns of one event loop, or a kill that has to be arranged"
        raise InvalidValues(Mistake("--by-luck", "INVALID_VALUE", problem, suggestion=f"See tool lab prove {name}."))
    broken, moments = 0, _Unrecorded()
    for _ in range(runs):
        check()
        broken += _breaks(name, variant, letters, moments)
    return broken, moments.was_asked_for


def can_be_lucky(scenario: Scenario, way: Way) -> bool:
    return scenario.world is None and not way.strikes


def _breaks(name: str, variant: str, letters: str, moments: _Unrecorded) -> bool:
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
        return any(scenario.invariant(History(letters, moments, scenario.look(directory), statuses, answers)))
