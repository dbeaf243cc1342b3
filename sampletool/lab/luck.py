"""How often a way breaks when nobody arranges anything: the workers are let go at the same moment, and that is all."""

from collections.abc import Callable
from subprocess import TimeoutExpired

from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.kit.stepping.fork_server import ForkServer
from sampletool.lab.explore import fork_server_for
from sampletool.lab.scenario import History, Moment, Scenario, Way, find
from sampletool.lab.scratch import scratch
from sampletool.lab.stepped_worker import answer_in

_LONGEST_SECONDS = 10


def try_luck(name: str, variant: str, runs: int, letters: str, check: Callable[[], None]) -> int:
    """In how many runs the promise was broken, as far as the ends of the workers show it; or a worker stuck."""
    if not can_be_lucky(find(name), find(name).ways[variant]):
        problem = "nothing here is left to luck: the turns of one event loop, or a kill that has to be arranged"
        raise InvalidValues(Mistake("--by-luck", "INVALID_VALUE", problem, suggestion=f"See tool lab prove {name}."))
    broken = 0
    with fork_server_for(name) as fork_server:
        for _ in range(runs):
            check()
            broken += _breaks(name, variant, letters, fork_server)
    return broken


def can_be_lucky(scenario: Scenario, way: Way) -> bool:
    return scenario.world is None and not way.strikes


def _breaks(name: str, variant: str, letters: str, fork_server: ForkServer) -> bool:
    scenario, way = find(name), find(name).ways[variant]
    with scratch(way) as (directory, environ):
        programs = [way.argv(name, variant, letter) for letter in letters]
        running = [fork_server.start(None, program, environ, directory) for program in programs]
        try:
            said = [answer_in(process.communicate(timeout=_LONGEST_SECONDS)[0]) for process in running]
        except TimeoutExpired:
            for process in running:
                process.kill()
                process.__exit__()
            return True
        now = scenario.look(directory)
        ends = zip(letters, running, said, strict=True)
        moments = [Moment(who, "end", now, now, status=ran.returncode, answer=answer) for who, ran, answer in ends]
        return any(scenario.invariant(History(letters, moments, now)))
