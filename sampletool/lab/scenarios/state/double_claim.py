"""Two workers take jobs from a queue. Each looks for a free job, then marks the job as its own.

Both see the same job as free. Both mark it, and both do the work: the mail goes out twice, or the
card is charged twice. A second look at the mark does not help, because the other worker may write
its mark after that look. A mark that expires does not help either: it frees the job of a dead
worker, but two live workers still set it.
"""

from pathlib import Path

from ....kit.contract.errors import VersionConflict
from ....state.protocol import NewTask
from ...scenario import Scenario, Step, Variant
from ._one_job import do_job, invariant, read_state
from ._stores import (
    has_value,
    open_shared_store,
    run_key,
    statement_steps,
    store_in,
    transaction_steps,
    with_read_before_lock,
    without_transaction,
    write_steps,
)

__all__ = ["invariant", "read_state"]

HOUR_MS = 3_600_000


def naive(worker: str) -> None:
    store = open_shared_store()
    item = store.state_get(run_key("item")).value
    if item == "free":
        store.state_set(run_key("item"), worker)
        do_job(worker)


def wrong_look_again(worker: str) -> None:
    """Look at the mark again. Wrong: another worker may set its mark after that."""
    store = open_shared_store()
    item = store.state_get(run_key("item")).value
    if item == "free":
        store.state_set(run_key("item"), worker)
        if store.state_get(run_key("item")).value == worker:
            do_job(worker)


def wrong_expiry(worker: str) -> None:
    """Set a mark that expires. Wrong: two workers may still set it one after the other."""
    store = open_shared_store()
    if not has_value(store, "owner"):
        store.state_set(run_key("owner"), worker, expires_ms=HOUR_MS)
        do_job(worker)


def fixed(worker: str) -> None:
    claim = open_shared_store().task_claim(run_key("queue"), worker, lease_ms=60_000)
    if claim.tasks:
        do_job(worker)


def fixed_set_if_absent(worker: str) -> None:
    """Set a mark if there is none. Do the job only if this worker has set the mark."""
    store = open_shared_store()
    try:
        # A mark that does not exist has version 0.
        store.state_set(run_key("owner"), worker, if_version=0, expires_ms=HOUR_MS)
    except VersionConflict:
        # The other worker has set its mark, and does the job.
        return
    do_job(worker)


def prepare(directory: Path) -> None:
    """Store a free job in two forms, because not all variants use the same one."""
    job = NewTask(body="the item", id=run_key("item", directory))
    with store_in(directory) as store:
        # Most variants look for a mark in this value.
        store.state_set(run_key("item", directory), "free")
        # The fixed variant claims a task from a queue.
        store.task_add(run_key("queue", directory), [job])


scenario = Scenario(
    title="Double claim: two workers take the same job",
    subtitle="Two workers see the same free job, and both do it.",
    rule="Look and take in one step: claim a job with one conditional write.",
    happened=(
        "The workers of librefang selected a free job and updated it afterwards. Two workers ran "
        "the same job, until "
        "the claim became one conditional update.",
        "https://github.com/librefang/librefang/issues/5961",
    ),
    question="There is one free job. A looks, B looks, A takes it, B takes it. Who does the work?",
    shared="who did it",
    private_variables=("item",),
    variants={
        "naive": Variant(
            summary="looks for a free job, then marks it",
            explanation="B took the job that it had seen free before A took it.",
        ),
        "wrong-look-again": Variant(
            summary="marks the job, then checks that the mark is its own",
            schedule="A1 B1 A2 A3 B2 B3",
            explanation=(
                "A looked again before B wrote its mark. B looked again after that. Both found "
                "their own mark."
            ),
        ),
        "wrong-expiry": Variant(
            summary="sets a mark that expires after an hour, if there is no mark",
            steps=(
                *statement_steps(
                    "get: no mark",
                    sql="SELECT key, value, version, expires_at FROM tool_state",
                    verb="state_get",
                ),
                *write_steps("set", verb="state_set"),
            ),
            explanation="The time at which a mark expires does not change who may set it.",
        ),
        "fixed": Variant(
            summary="runs `tool task claim`, which looks and takes in one transaction",
            steps=(
                Step(
                    name="free expired jobs",
                    event="sql",
                    file="state.db",
                    statement="UPDATE tool_tasks",
                    after_steps=("lock",),
                ),
                *transaction_steps(
                    "task_claim",
                    {"look": "SELECT ID, GENERATION", "take it": "UPDATE tool_tasks SET STATUS"},
                ),
            ),
            schedule="A1 B1",
            explanation="B looked only after A had taken the job, and found no free job.",
        ),
        "fixed-set-if-absent": Variant(
            summary=(
                "runs `tool state set --if-version 0`, which sets the mark only if there is none"
            ),
            steps=transaction_steps(
                "state_set", {"compare": "WITH CLOCK", "set": "INSERT INTO tool_state"}
            ),
            schedule="A1 B1",
            explanation="B's write found A's mark and was rejected.",
        ),
    },
    steps=(
        *statement_steps(
            "look: it is free", sql="SELECT", verb="state_get", after_steps=("start",)
        ),
        *write_steps("take it", verb="state_set"),
        *statement_steps(
            "look again",
            sql="SELECT key, value, version, expires_at FROM tool_state",
            verb="state_get",
            after_steps=("take it",),
        ),
    ),
    mechanisms=(
        without_transaction("the job was done by A and B"),
        with_read_before_lock("failed"),
    ),
    production_code="sampletool.state.sql_verbs:task_claim",
)
