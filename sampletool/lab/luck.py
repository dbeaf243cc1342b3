"""How often a way breaks when nobody arranges anything: the workers are let go at the same moment, and that is all."""

from collections.abc import Callable
from functools import partial
from subprocess import TimeoutExpired

from ..kit.contract.errors import InvalidValues, Mistake
from ..kit.program import PROGRAM
from ..kit.stepping.fork_server import ForkServer
from ..kit.stepping.forked_process import FILE
from ..kit.stepping.tracer import Ended
from .scenario import History, Moment, Scenario, Way
from .scratch import fork_server_for, scratch

_LONGEST_SECONDS = 10


def try_luck(
    scenario: Scenario, way: Way, runs: int, letters: str, check: Callable[[], None]
) -> int:
    """In how many runs the promise was broken, as far as the ends of the workers show it; or a worker stuck."""
    if not can_be_lucky(scenario, way):
        problem = "nothing here is left to luck: the turns of one event loop, or a kill that has to be arranged"
        hint = f"See {PROGRAM} lab check {scenario.name}."
        raise InvalidValues(Mistake("--by-luck", "INVALID_VALUE", problem, suggestion=hint))
    with fork_server_for(scenario.name) as fork_server:
        return sum(_breaks(scenario, way, letters, fork_server, check) for _ in range(runs))


def can_be_lucky(scenario: Scenario, way: Way) -> bool:
    return scenario.world is None and not scenario.threads and not way.strikes


def _breaks(
    scenario: Scenario, way: Way, letters: str, fork_server: ForkServer, check: Callable[[], None]
) -> bool:
    check()
    with scratch(way) as (directory, environ):
        start = partial(fork_server.start, env=environ, cwd=directory, stdout=FILE, stderr=FILE)
        running = [start(["-m", *way.worker, each]) for each in letters]
        try:
            said = [process.communicate(timeout=_LONGEST_SECONDS) for process in running]
        except TimeoutExpired:
            for process in running:
                process.kill()
                process.__exit__()
            return True
        now = scenario.look(directory)
        ends = (
            Ended(process.returncode or 0, *output)
            for process, output in zip(running, said, strict=True)
        )
        moments = [
            Moment(letter, now, now, ended=ended)
            for letter, ended in zip(letters, ends, strict=True)
        ]
        return any(scenario.invariant(History(letters, moments, now)))
