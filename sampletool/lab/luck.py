"""Count how often a variant breaks if nothing controls the schedule of its workers."""

from collections.abc import Callable
from subprocess import TimeoutExpired

from ..kit.contract.errors import InvalidValues, Mistake
from ..kit.program import PROGRAM
from ..kit.stepping.fork_server import ForkServer
from ..kit.stepping.forked_process import FILE, ForkedProcess
from ..kit.stepping.tracer import Ended
from .scenario import History, Moment, Scenario, Variant
from .scratch import fork_server_for, scratch_directory

_MAX_SECONDS = 10
"""The time limit of a worker. A worker that takes longer is stuck, which breaks the run."""


def try_luck(
    scenario: Scenario, variant: Variant, runs: int, letters: str, check: Callable[[], None]
) -> int:
    """Start the workers together, as often as `runs`. Return the number of broken runs.

    A run is judged only by its end. The function `check` raises an error when the whole command has
    to end. Raise InvalidValues if the operating system does not schedule these workers.
    """
    if not can_be_lucky(scenario, variant):
        problem = "luck plays no role here: the workers share a process, or a kill is arranged"
        hint = f"See {PROGRAM} lab check {scenario.name}."
        raise InvalidValues(Mistake("--by-luck", "INVALID_VALUE", problem, suggestion=hint))
    broken = 0
    with fork_server_for(scenario.name) as fork_server:
        for _ in range(runs):
            check()
            if _breaks(scenario, variant, letters, fork_server):
                broken += 1
    return broken


def can_be_lucky(scenario: Scenario, variant: Variant) -> bool:
    """Return whether the operating system alone schedules the workers, and none is killed."""
    return scenario.world is None and not scenario.threads and not variant.strikes


def _breaks(scenario: Scenario, variant: Variant, letters: str, fork_server: ForkServer) -> bool:
    """Run the workers once. Return whether the invariant is broken, or a worker is stuck."""
    with scratch_directory(variant) as (directory, environ):
        processes = []
        for letter in letters:
            process = fork_server.start(
                ["-m", *variant.worker, letter],
                env=environ,
                cwd=directory,
                stdout=FILE,
                stderr=FILE,
            )
            processes.append(process)
        try:
            ends = [_wait_for(process) for process in processes]
        except TimeoutExpired:
            for process in processes:
                process.kill()
                process.__exit__()
            return True
        final_state = scenario.look(directory)
        moments = []
        for letter, ended in zip(letters, ends, strict=True):
            moments.append(Moment(letter, final_state, final_state, ended=ended))
        history = History(letters, moments, final_state)
        return any(scenario.invariant(history))


def _wait_for(process: ForkedProcess) -> Ended:
    """Return the exit code and output of a worker. Raise TimeoutExpired if it is stuck."""
    stdout, stderr = process.communicate(timeout=_MAX_SECONDS)
    return Ended(process.returncode or 0, stdout, stderr)
