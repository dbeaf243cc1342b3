"""Two transfers run at once, one from the left account to the right account, one from right to
left.

Each transfer locks the account that it takes from, then the account that it gives to. Each now
holds one lock and waits for the other one, permanently. Each transfer is correct by itself. By
chance this rarely happens, because the first transfer is usually finished before the second one
starts.
"""

from collections.abc import Iterator

from ..production_lock import PATIENT_WAIT_SECONDS, lock_named
from ..scenario import History, Mutation, Scenario, Step, Variant
from ._turns import WORK, prepare, read_state, work

__all__ = ["prepare", "read_state"]

ACCOUNTS = ("left", "right")


def naive(worker: str) -> None:
    """Transfer from left to right as A, and from right to left as B. Lock the source first."""
    if worker == "A":
        source, target = "left", "right"
    else:
        source, target = "right", "left"
    with (
        lock_named(source).exclusively(PATIENT_WAIT_SECONDS),
        lock_named(target).exclusively(PATIENT_WAIT_SECONDS),
    ):
        work(worker)


def fixed(worker: str) -> None:
    """Transfer in either direction. Take the locks in the same order in both workers."""
    first, second = sorted(ACCOUNTS)
    with (
        lock_named(first).exclusively(PATIENT_WAIT_SECONDS),
        lock_named(second).exclusively(PATIENT_WAIT_SECONDS),
    ):
        work(worker)


def invariant(history: History) -> Iterator[str]:
    """Both transfers finish. No two workers hold the same lock at the same moment."""
    yield from history.lock_problems
    if not history.is_finished:
        return
    # A transfer writes the name of its worker into the log.
    finished_workers = history.state.workers
    for worker in history.workers:
        if worker not in finished_workers:
            yield f"the transfer of {worker} did not finish."


scenario = Scenario(
    title="Deadlock: two locks taken in opposite order",
    subtitle="Each of two processes waits for the lock that the other one holds.",
    rule="Define one order for your locks, and always take them in that order.",
    happened=(
        "Since 2006, the Linux kernel has a checker that reports the first pair of locks taken "
        "in both orders. Tests alone rarely find such a pair.",
        "https://docs.kernel.org/locking/lockdep-design.html",
    ),
    question=(
        "A has the left lock and wants the right one. B has the right lock and wants the left "
        "one. Who continues?"
    ),
    shared="the log",
    private_variables=("source", "target", "first", "second"),
    variants={
        "naive": Variant(
            summary="locks the account that it takes from, then the other one",
            explanation="Each of them holds the lock that the other one waits for.",
        ),
        "fixed": Variant(
            summary="takes both locks in alphabetical order",
            schedule="A1 B1 A2 A3",
            explanation="Only the process that holds the first lock asks for the second one.",
        ),
    },
    steps=(
        Step(name="lock left", event="fcntl.flock", file="left", kind="lock"),
        Step(name="lock right", event="fcntl.flock", file="right", kind="lock"),
        WORK,
    ),
    mechanisms=(
        Mutation(
            function="lab/scenarios/lock_order.py:fixed",
            summary="let each worker take the locks in an order of its own",
            original_code="first, second = sorted(ACCOUNTS)",
            replacement_code='first, second = sorted(ACCOUNTS, reverse=worker == "B")',
            expected_problem="wait for ever",
        ),
    ),
    production_code="sampletool.lab.scenarios.lock_order:fixed",
    no_verb=(
        "No command of this tool takes two locks. The fix on this page is an example that uses "
        "the tool's lock."
    ),
)
