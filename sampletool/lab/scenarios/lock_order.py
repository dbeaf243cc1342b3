"""Two transfers run at once, one from the left account to the right account, one from right to
left.

Each transfer locks the account that it takes from, then the account that it gives to. Each now
holds one lock and waits for the other one, permanently. Each transfer is correct by itself. By
chance this rarely happens, because the first transfer is usually finished before the second one
starts.
"""

from collections.abc import Iterator

from ..production_lock import PATIENT_WAIT_SECONDS, lock_named
from ..scenario import History, Removal, Scenario, Step, Variant
from ._turns import WORK, look, prepare, work

__all__ = ["look", "prepare"]

SIDES = ("left", "right")


def naive(worker: str) -> None:
    here, there = SIDES if worker == "A" else reversed(SIDES)
    with (
        lock_named(here).exclusively(PATIENT_WAIT_SECONDS),
        lock_named(there).exclusively(PATIENT_WAIT_SECONDS),
    ):
        work(worker)


def fixed(worker: str) -> None:
    here, there = sorted(SIDES)
    with (
        lock_named(here).exclusively(PATIENT_WAIT_SECONDS),
        lock_named(there).exclusively(PATIENT_WAIT_SECONDS),
    ):
        work(worker)


def invariant(history: History) -> Iterator[str]:
    """Both transfers finish, and never run at the same moment."""
    yield from history.broken_locks
    for letter in history.letters:
        if history.is_over and letter not in history.now.split():
            yield f"the transfer of {letter} did not finish."


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
    private=("here", "there"),
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
        Step("lock left", "fcntl.flock", "left", kind="lock"),
        Step("lock right", "fcntl.flock", "right", kind="lock"),
        WORK,
    ),
    mechanisms=(
        Removal(
            "lab/scenarios/lock_order.py:fixed",
            summary="let each worker take the locks in an order of its own",
            pattern="here, there = sorted(SIDES)",
            instead='here, there = sorted(SIDES, reverse=worker == "B")',
            breaks="wait for ever",
        ),
    ),
    symbol="sampletool.lab.scenarios.lock_order:fixed",
    no_verb=(
        "No command of this tool takes two locks. The fix on this page is an example that uses "
        "the tool's lock."
    ),
)
