"""Two transfers at once, one from left to right, one from right to left.

Each locks where it takes, then where it gives. Each has one lock and waits for the other's, for ever. Neither does
anything wrong by itself, and it takes bad luck to see it: mostly the first one is done before the second one begins.
"""

from collections.abc import Iterator

from ..ours import PATIENT_WAIT_SECONDS, lock_named
from ..scenario import History, Removal, Scenario, Step, Way
from ._turns import WORK, look, prepare, work

__all__ = ["look", "prepare"]

SIDES = ("left", "right")


def naive(worker: str) -> None:
    here, there = SIDES if worker == "A" else reversed(SIDES)
    with lock_named(here).exclusively(PATIENT_WAIT_SECONDS), lock_named(there).exclusively(PATIENT_WAIT_SECONDS):
        work(worker)


def fixed(worker: str) -> None:
    here, there = sorted(SIDES)
    with lock_named(here).exclusively(PATIENT_WAIT_SECONDS), lock_named(there).exclusively(PATIENT_WAIT_SECONDS):
        work(worker)


def invariant(history: History) -> Iterator[str]:
    """Both transfers are done, and never at the same moment."""
    yield from history.crowds
    for letter in history.letters:
        if history.is_over and letter not in history.now.split():
            yield f"{letter}'s transfer was not done."


scenario = Scenario(
    title="Two locks, taken in opposite order",
    rule="Give your locks one order, and take them only in that order.",
    happened=(
        "The Linux kernel has carried a checker of its own since 2006 which stops at the first pair of locks that is "
        "ever taken in both orders, because nobody finds these by testing.",
        "https://docs.kernel.org/locking/lockdep-design.html",
    ),
    question="A has left and wants right, B has right and wants left. Who goes on?",
    shared="the log",
    private=("here", "there"),
    ways={
        "naive": Way(
            says="first the lock of where it takes, then the lock of where it gives",
            because="each has what the other one waits for.",
        ),
        "fixed": Way(
            says="both take the locks by name: left, then right",
            shows="A1 B1 A2 A3",
            because="only the holder of the first lock may ask for the second.",
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
            says="each in an order of its own",
            pattern="here, there = sorted(SIDES)",
            instead='here, there = sorted(SIDES, reverse=worker == "B")',
            breaks="wait for ever",
        ),
    ),
    symbol="sampletool.lab.scenarios.lock_order:fixed",
    no_verb="No command of this tool takes two locks: the right way is code of this page, over its lock.",
    still_broken_by="a lock that is taken inside: by a library, a callback, a database.",
)
