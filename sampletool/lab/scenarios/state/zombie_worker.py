"""A worker claims a job for a limited time.

Then something pauses it: a full disk, a debugger, a laptop that is closed. The claim expires, and
another worker claims the job and finishes it. Then the first worker continues. It has noticed
nothing, and writes its old result over the new one. A check of the clock or of the store before the
write does not help, because the worker may be paused right after the check.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ....state.protocol import UNCONDITIONAL, Claimed, Fence, NewTask, Once
from ...scenario import History, Mutation, Scenario, Variant
from ._stores import open_shared_store, run_key, statement_steps, store_in, write_steps

LEASE_MS = {"A": 1, "B": 60_000}
"""The times after which the claims expire. A is the worker that is paused for longer than that."""


def naive(worker: str) -> None:
    if claim_job(worker):
        write_result(worker)


def wrong_look_first(worker: str) -> None:
    """Check the claim, then write. Wrong: the claim may expire in between."""
    job = claim_job(worker)
    if job is not None:
        store = open_shared_store()
        (current_job,) = store.task_list(run_key("queue"), status=None, after=0, limit=1)
        # The generation grows with each claim.
        is_still_mine = current_job.generation == job.generation
        if is_still_mine:
            write_result(worker)


def fixed(worker: str) -> None:
    job = claim_job(worker)
    if job is not None:
        write_result(worker, Once(fence=Fence(job.id, job.generation)))


def claim_job(worker: str) -> Claimed | None:
    """Claim the job. Return None if another worker has it.

    The claim of A expires before this returns. So B can claim the job before each later step of A.
    """
    lease_ms = LEASE_MS[worker]
    claimed = open_shared_store().task_claim(run_key("queue"), worker, lease_ms=lease_ms)
    if not claimed.tasks:
        return None
    has_short_lease = worker == "A"
    if has_short_lease:
        time.sleep(2 * lease_ms / 1000)
    return claimed.tasks[0]


def write_result(worker: str, once: Once = UNCONDITIONAL) -> None:
    """Store the name of the worker as the result of the job, if the condition `once` holds."""
    open_shared_store().state_set(run_key("result"), worker, once=once)


def prepare(directory: Path) -> None:
    """Add a task to the queue: the job. Store that there is no result of it yet."""
    job = NewTask(body="the item", id=run_key("item", directory))
    with store_in(directory) as store:
        store.task_add(run_key("queue", directory), [job])
        store.state_set(run_key("result", directory), "none")


@dataclass(frozen=True)
class Job:
    """The owner of the job, and the stored result."""

    owner: str
    """The worker that has claimed the job, or `nobody`."""
    result: str
    """The worker that has written the result, or `none`."""
    result_version: int

    def __str__(self) -> str:
        return f"owner {self.owner}, result {self.result}"


def read_state(directory: Path) -> Job:
    """Return who has claimed the job, and the stored result."""
    with store_in(directory) as store:
        (task,) = store.task_list(run_key("queue", directory), status=None, after=0, limit=1)
        result = store.state_get(run_key("result", directory))
    return Job(
        owner=task.claimed_by or "nobody",
        result=str(result.value),
        result_version=result.version,
    )


def invariant(history: History) -> Iterator[str]:
    """Only the worker with the newest claim writes a result."""
    for step in history.taken_steps:
        owner = step.state_before.owner
        has_written = step.state_after.result_version != step.state_before.result_version
        if has_written and owner not in ("nobody", step.worker):
            yield f"{step.worker} wrote its result while {owner} had the job."
    job = history.state
    if history.is_finished and job.owner == "B" and job.result == "none":
        yield "B has the job, but no result was kept."


scenario = Scenario(
    title="Fencing token: an expired worker overwrites its successor",
    subtitle="A paused worker wakes up after its lease and writes an old result.",
    rule="Give each claim a growing number, and let the store reject writes with an old number.",
    happened=(
        "HBase lost data when a server paused for garbage collection for longer than its lease, "
        "and then continued to write. The fix is a number that grows with each claim: a fencing "
        "token.",
        "https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html",
    ),
    question=(
        "A's claim expires. B claims the job and writes its result. Now A wakes up. Whose result "
        "is kept?"
    ),
    shared="item",
    private_variables=("job.generation",),
    variants={
        "naive": Variant(
            summary="claims, works, writes the result",
            schedule="A1 B1 B2 A2",
            explanation="A did not know that its claim had expired, and the store did not check.",
        ),
        "wrong-look-first": Variant(
            summary="checks that its claim is current, then writes",
            schedule="A1 A2 B1 B2 B3 A3",
            explanation="A checked in time, and was paused between the check and the write.",
        ),
        "fixed": Variant(
            summary=(
                "writes with --fence, so that the store checks the claim in the same transaction"
            ),
            schedule="A1 B1 B2 A2",
            explanation=(
                "A wrote with claim 1. The job was at claim 2, so the store rejected the write."
            ),
        ),
    },
    steps=(
        *write_steps("claim", verb="task_claim", after_steps=("start",)),
        *statement_steps(
            "look", sql="WITH CLOCK * SELECT ID, QUEUE", verb="task_list", after_steps=("claim",)
        ),
        *write_steps("write", verb="state_set", after_steps=("claim", "look")),
    ),
    mechanisms=(
        Mutation(
            function="state/store.py:Store._write_once",
            summary="do not send the fencing token",
            original_code="key = remembered_key(once, verb, str(name))",
            replacement_code="once, key = (UNCONDITIONAL, None)",
            expected_problem="wrote its result while B had the job",
        ),
        Mutation(
            function="state/sql_verbs.py:lock_claim",
            summary="do not compare the number of the claim",
            original_code="locked_task.generation != claim.generation",
            replacement_code="locked_task.generation < claim.generation",
            expected_problem="wrote its result while B had the job",
        ),
        Mutation(
            function="state/sql.py:SqlStore.write",
            summary="check the claim before the transaction",
            original_code="""\
def body(db: Session) -> Reply:
    if write.key is not None:
        db.lock_name(write.key)
    earlier_write = _find_earlier_write(db, write)
    fence = write.once.fence
    is_by_claim = earlier_write is not None and earlier_write.is_by_claim(fence)
    if not (db.is_repetition and is_by_claim):
        sql_verbs.check_fence(db, fence)
    ...
""",
            replacement_code="""\
self.look(lambda db: sql_verbs.check_fence(db, write.once.fence))

def body(db: Session) -> Reply:
    if write.key is not None:
        db.lock_name(write.key)
    earlier_write = _find_earlier_write(db, write)
    ...
""",
            expected_problem="wrote its result while B had the job",
        ),
    ),
    production_code="sampletool.state.sql_verbs:lock_claim",
)
