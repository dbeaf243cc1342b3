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
from ._one_job import do_it, invariant, look
from ._stores import has, key, open_here, steps, store_in, transaction, unprotected, writes

__all__ = ["invariant", "look"]

HOUR_MS = 3_600_000


def naive(worker: str) -> None:
    store = open_here()
    item = store.state_get(key("item")).value
    if item == "free":
        store.state_set(key("item"), worker)
        do_it(worker)


def wrong_look_again(worker: str) -> None:
    store = open_here()
    item = store.state_get(key("item")).value
    if item == "free":
        store.state_set(key("item"), worker)
        if store.state_get(key("item")).value == worker:
            do_it(worker)


def wrong_expiry(worker: str) -> None:
    store = open_here()
    if not has(store, "owner"):
        store.state_set(key("owner"), worker, expires_ms=HOUR_MS)
        do_it(worker)


def fixed(worker: str) -> None:
    claim = open_here().task_claim(key("queue"), worker, lease_ms=60_000)
    if claim.tasks:
        do_it(worker)


def fixed_set_if_absent(worker: str) -> None:
    try:
        open_here().state_set(key("owner"), worker, if_version=0, expires_ms=HOUR_MS)
        do_it(worker)
    except VersionConflict:
        pass


def prepare(directory: Path) -> None:
    """Store a free job in two forms: as a value, and as a task in a queue."""
    with store_in(directory) as store:
        store.state_set(key("item", directory), "free")
        store.task_add(key("queue", directory), [NewTask("the item", key("item", directory))])


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
    private=("item",),
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
                *steps(
                    "get: no mark",
                    sql="SELECT key, value, version, expires_at FROM tool_state",
                    verb="state_get",
                ),
                *writes("set", verb="state_set"),
            ),
            explanation="The time at which a mark expires does not change who may set it.",
        ),
        "fixed": Variant(
            summary="runs `tool task claim`, which looks and takes in one transaction",
            steps=(
                Step(
                    "free expired jobs",
                    "sql",
                    "state.db",
                    statement="UPDATE tool_tasks",
                    after=("lock",),
                ),
                *transaction(
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
            steps=transaction(
                "state_set", {"compare": "WITH CLOCK", "set": "INSERT INTO tool_state"}
            ),
            schedule="A1 B1",
            explanation="B's write found A's mark and was rejected.",
        ),
    },
    steps=(
        *steps("look: it is free", sql="SELECT", verb="state_get", after=("start",)),
        *writes("take it", verb="state_set"),
        *steps(
            "look again",
            sql="SELECT key, value, version, expires_at FROM tool_state",
            verb="state_get",
            after=("take it",),
        ),
    ),
    mechanisms=unprotected("the job was done by A and B", "failed"),
    symbol="sampletool.state.sql_verbs:task_claim",
)
