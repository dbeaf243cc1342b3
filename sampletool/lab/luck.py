"""Count how often a variant breaks if nothing controls the schedule of its workers."""

from collections.abc import Callable
from subprocess import TimeoutExpired

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
    scenario: Scenario, variant: Variant, runs: int, letters: str, check: Callable[[], None]
) -> int:
    """Run the workers `runs` times without controlling them. Return the number of broken runs.

    The operating system schedules the workers, so whether a run breaks is a matter of luck. The
    invariant sees only the final state of a run, because nothing stops the workers before it.

    The function `check` raises an error when the whole command has to end. Raise InvalidValues if
    the variant needs a schedule that the lab controls.
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
    """Return whether the variant can run without the lab's control.

    It cannot if its workers are threads or coroutines of one process, or if the lab has to kill or
    interrupt a worker.
    """
    return scenario.create_shared_memory is None and not scenario.threads and not variant.faults


def _breaks(scenario: Scenario, variant: Variant, letters: str, fork_server: ForkServer) -> bool:
    """Run the workers once. Return whether the invariant is broken, or a worker is stuck."""
    with scratch_directory(variant) as (directory, environ):
        processes = []
        for letter in letters:
            process = fork_server.start(
                ["-m", *variant.worker_command, letter],
                env=environ,
                cwd=directory,
                stdout=FILE,
                stderr=FILE,
            )
            processes.append(process)
        try:
            ends = [_wait_for(process) for process in processes]
        except TimeoutExpired:
            # All workers end here. Otherwise they would outlive their scratch directory.
            for process in processes:
                process.kill()
                process.__exit__()
            return True
        # Only the final state is known. So each worker gets one step, which changes nothing.
        final_state = scenario.read_state(directory)
        taken_steps = []
        for letter, exit_result in zip(letters, ends, strict=True):
            taken_step = TakenStep(
                worker=letter,
                state_before=final_state,
                state_after=final_state,
                exit_result=exit_result,
            )
            taken_steps.append(taken_step)
        history = History(workers=letters, taken_steps=taken_steps, state=final_state)
        return any(scenario.invariant(history))


def _wait_for(process: ForkedProcess) -> Ended:
    """Return the exit code and output of a worker. Raise TimeoutExpired if it is stuck."""
    stdout, stderr = process.communicate(timeout=_MAX_SECONDS)
    return Ended(process.returncode or 0, stdout, stderr)
