"""A program locks a file with flock.

At the end, it deletes the file, because a lock file that stays looks untidy. Another process has
opened that file before, and waits for its lock. It gets the lock of a file that has no name any
more. A third process finds no lock file, creates a new one, and locks it at once. Both hold "the
lock", each on a file of its own. It does not help to release the lock before the file is deleted.
It does not help either to check that there is a lock file: there is one, but it is not the file
that was locked.
"""

import fcntl
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..production_lock import PATIENT_WAIT_SECONDS, lock_named
from ..scenario import History, Mutation, Scenario, Step, Variant
from ._mechanisms import without_lock

JOBS = {"A": 2, "B": 1}
"""How often each worker needs the lock. A may come back while B waits for the first lock file."""


def naive(worker: str) -> None:
    for number in range(JOBS[worker]):
        descriptor = os.open("lock", os.O_CREAT | os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        do_job(worker, number)
        Path("lock").unlink(missing_ok=True)
        os.close(descriptor)


def wrong_release_first(worker: str) -> None:
    """Release the lock, then delete its file. Wrong: another worker may hold this file."""
    for number in range(JOBS[worker]):
        descriptor = os.open("lock", os.O_CREAT | os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        do_job(worker, number)
        os.close(descriptor)
        Path("lock").unlink(missing_ok=True)


def wrong_check_exists(worker: str) -> None:
    """Check that there is a lock file. Wrong: it may not be the file that was locked."""
    for number in range(JOBS[worker]):
        descriptor = lock_an_existing_file()
        do_job(worker, number)
        Path("lock").unlink(missing_ok=True)
        os.close(descriptor)


def lock_an_existing_file() -> int:
    """Lock a file while there is a lock file, and return its descriptor.

    Wrong: after the wait, a new file may be at the path, so this is not always the locked file.
    """
    while True:
        descriptor = os.open("lock", os.O_CREAT | os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # While this worker waited for the lock, another one may have deleted the file.
        has_lock_file = os.path.exists("lock")
        if has_lock_file:
            return descriptor
        os.close(descriptor)


def fixed(worker: str) -> None:
    for number in range(JOBS[worker]):
        with lock_named("lock").exclusively(PATIENT_WAIT_SECONDS):
            do_job(worker, number)


def fixed_delete(worker: str) -> None:
    for number in range(JOBS[worker]):
        with lock_named("lock").exclusively(PATIENT_WAIT_SECONDS):
            do_job(worker, number)
            os.remove("lock")


def do_job(worker: str, number: int) -> None:
    """Create a directory that shows that the worker is at work, then mark this job as done."""
    os.mkdir(f"{worker}-at-work")
    os.rename(f"{worker}-at-work", f"{worker}-done-{number}")


def prepare(directory: Path) -> None:
    """Do nothing: the first worker creates the lock file."""


@dataclass(frozen=True)
class Jobs:
    """The workers in the middle of a job, and the number of jobs that each worker has done."""

    workers_at_work: Sequence[str]
    done_jobs: Mapping[str, int]

    def __str__(self) -> str:
        if not self.workers_at_work:
            return "nobody works"
        return f"{' and '.join(self.workers_at_work)} at work"


def read_state(directory: Path) -> Jobs:
    """Return which workers are in the middle of a job, and how many jobs each has done."""
    workers_at_work = []
    done_jobs: Counter[str] = Counter()
    for path in sorted(directory.iterdir()):
        worker, _, job_state = path.name.partition("-")
        if job_state == "at-work":
            workers_at_work.append(worker)
        elif job_state.startswith("done-"):
            done_jobs[worker] += 1
    return Jobs(workers_at_work, done_jobs)


def invariant(history: History) -> Iterator[str]:
    """Two workers are never in the middle of a job at the same time, and every job gets done."""
    workers_at_work = history.state.workers_at_work
    if len(workers_at_work) > 1:
        yield f"{' and '.join(workers_at_work)} worked at the same time."
    for worker in history.failed_workers:
        yield f"{worker} failed to get the lock."
    if not history.is_finished:
        return
    for worker in history.workers:
        if history.state.done_jobs[worker] < JOBS[worker]:
            yield f"a job of {worker} was not done."


OPEN = Step(name="open", event="open", file="lock", kind="write")
LOCK = Step(name="lock, begin", event="fcntl.flock", file="lock", kind="lock")
FINISH = Step(name="finish", event="os.rename")
DELETE = Step(name="delete", event="os.remove", file="lock")


scenario = Scenario(
    title="Unlinked lock file: flock on a file that somebody deletes",
    subtitle="Two processes hold the same lock, each on a file of its own.",
    rule=(
        "Do not delete a lock file. If anything else might, compare the locked file with its path."
    ),
    happened=(
        "From version 3.20.4, the Python package filelock deleted its lock file on release. So two "
        "processes could hold one lock. A later version keeps the file.",
        "https://github.com/tox-dev/filelock/issues/574",
    ),
    question=(
        "B waits for the lock file that A deletes. A comes back for its second job. Who holds the "
        "lock?"
    ),
    shared="the job",
    variants={
        "naive": Variant(
            summary="deletes the lock file, then releases the lock",
            schedule="A1 B1 A2 B2 A3 A4 A5",
            explanation="B locked the deleted file, and A locked a new one.",
        ),
        "wrong-release-first": Variant(
            summary="releases the lock, then deletes the lock file",
            steps=(LOCK, FINISH, DELETE),
            schedule="A1 A2 B1 A3 A4",
            explanation=(
                "A deleted the file that B had locked in the meantime, and then locked a new one."
            ),
        ),
        "wrong-check-exists": Variant(
            summary="checks that there is a lock file, and deletes it at the end",
            schedule="A1 B1 A2 A3 A4 B2 A5",
            explanation="There was a lock file again, but not the one that B had locked.",
        ),
        "fixed": Variant(
            summary="takes the tool's own lock, whose file is never deleted",
            schedule="A1 B1 A2 B2 A3 A4 A5",
            explanation="Both locked the same file.",
        ),
        "fixed-delete": Variant(
            summary=(
                "deletes the file under the tool's own lock, which compares the locked file with "
                "its path"
            ),
            schedule="A1 B1 A2 B2 A3 A4 A5",
            explanation=(
                "B had locked a file that was not at the path any more. So it opened the path "
                "again."
            ),
        ),
    },
    steps=(OPEN, LOCK, FINISH),
    mechanisms=(
        Mutation(
            function="kit/safety/lock.py:Lock._open_locked",
            summary="do not compare the locked file with its path",
            original_code="is_current = _is_current(path, descriptor)",
            replacement_code="is_current = True",
            expected_problem="worked at the same time",
        ),
        without_lock("worked at the same time"),
    ),
    production_code="sampletool.kit.safety.lock:_is_current",
)
