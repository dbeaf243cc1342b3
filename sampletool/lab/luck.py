"""How often a way breaks when nobody arranges anything: the workers are let go at the same moment, and that is all."""

from collections.abc import Callable
from subprocess import TimeoutExpired

from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.kit.stepping.fork_server import ForkServer
from sampletool.lab.scenario import History, Moment, Scenario, Way
from sampletool.lab.scratch import fork_server_for, scratch
from sampletool.lab.stepped_worker import answer_in

_LONGEST_SECONDS = 10


def try_luck(scenario: Scenario, variant: str, runs: int, letters: str, check: Callable[[], None]) -> int:
    """In how many runs the promise was broken, as far as the ends of the workers show it; or a worker stuck."""
    if not can_be_lucky(scenario, scenario.ways[variant]):
        problem = "nothing here is left to luck: the turns of one event loop, or a kill that has to be arranged"
        hint = f"See tool lab prove {scenario.name}."
        raise InvalidValues(Mistake("--by-luck", "INVALID_VALUE", problem, suggestion=hint))
    broken = 0
    with fork_server_for(scenario.name) as fork_server:
        for _ in range(runs):
            check()
            broken += _breaks(scenario, scenario.ways[variant], letters, fork_server)
    return broken


def can_be_lucky(scenario: Scenario, way: Way) -> bool:
    return scenario.world is None and not way.strikes


def _breaks(scenario: Scenario, way: Way, letters: str, fork_server: ForkServer) -> bool:
    with scratch(way) as (directory, environ):
        running = [fork_server.start(None, ["-m", *way.worker, each], environ, directory) for each in letters]
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
