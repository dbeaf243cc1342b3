"""Count how often a variant breaks if nothing controls the schedule of its workers."""

from collections.abc import Callable, Sequence
from functools import partial
from subprocess import TimeoutExpired
from typing import Any

from ..kit.contract.errors import InvalidValues, Mistake
from ..kit.program import PROGRAM
from ..kit.stepping.fork_server import ForkServer
from ..kit.stepping.forked_process import FILE, ForkedProcess
from ..kit.stepping.tracer import Ended
from .scenario import History, Scenario, TakenStep, Variant
from .scratch import fork_server_for, scratch_directory

_MAX_SECONDS = 10
"""The time limit of a worker. A worker that takes longer is stuck, which breaks the run."""


def try_luck(
    scenario: Scenario,
    variant: Variant,
    runs: int,
    worker_names: str,
    check_signals: Callable[[], None],
) -> int:
    """Run the workers `runs` times without controlling them. Return the number of broken runs.

    The operating system schedules the workers, so whether a run breaks is a matter of luck. The
    invariant sees only the final state of a run, because nothing stops the workers before it.

    `check_signals` raises an error when the whole command has to end. Raise InvalidValues if the
    variant needs a schedule that the lab controls.
    """
    if not can_run_uncontrolled(scenario, variant):
        problem = "luck plays no role here: the workers share a process, or a kill is arranged"
        hint = f"See {PROGRAM} lab check {scenario.name}."
        raise InvalidValues(Mistake("--by-luck", "INVALID_VALUE", problem, suggestion=hint))
    broken_runs = 0
    with fork_server_for(scenario.name) as fork_server:
        for _ in range(runs):
            check_signals()
            if _breaks(scenario, variant, worker_names, fork_server):
                broken_runs += 1
    return broken_runs


def can_run_uncontrolled(scenario: Scenario, variant: Variant) -> bool:
    """Return whether the variant can run without the lab's control.

    It cannot if its workers are threads or coroutines of one process, or if the lab has to kill or
    interrupt a worker.
    """
    shares_process = scenario.create_shared_memory is not None or scenario.threads
    return not shares_process and not variant.faults


def _breaks(
    scenario: Scenario, variant: Variant, worker_names: str, fork_server: ForkServer
) -> bool:
    """Run the workers once. Return whether the invariant is broken, or a worker is stuck."""
    with scratch_directory(variant) as (directory, environ):
        start = partial(fork_server.start, env=environ, cwd=directory, stdout=FILE, stderr=FILE)
        # All workers start before the lab waits for the first one.
        processes = [start(["-m", *variant.worker_command, name]) for name in worker_names]
        try:
            exit_results = [_wait_for(process) for process in processes]
        except TimeoutExpired:
            # A worker is stuck. Without this, it would outlive its scratch directory.
            _end_all(processes)
            return True
        final_state = scenario.read_state(directory)
    history = _history_of_ends(worker_names, exit_results, final_state)
    return any(scenario.invariant(history))


def _end_all(processes: Sequence[ForkedProcess]) -> None:
    """Kill the processes, and release what they have opened."""
    for process in processes:
        process.kill()
        process.__exit__()


def _history_of_ends(worker_names: str, exit_results: Sequence[Ended], final_state: Any) -> History:
    """Return a history in which each worker has taken one step: its whole run.

    Only the final state is known, so no step changes the state.
    """
    taken_steps = []
    for name, exit_result in zip(worker_names, exit_results, strict=True):
        taken_step = TakenStep(
            worker=name,
            state_before=final_state,
            state_after=final_state,
            exit_result=exit_result,
        )
        taken_steps.append(taken_step)
    return History(workers=worker_names, taken_steps=taken_steps, state=final_state)


def _wait_for(process: ForkedProcess) -> Ended:
    """Return the exit code and output of a worker. Raise TimeoutExpired if it is stuck."""
    stdout, stderr = process.communicate(timeout=_MAX_SECONDS)
    return Ended(process.returncode or 0, stdout, stderr)
