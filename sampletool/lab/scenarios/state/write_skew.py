"""A team must keep at least one admin.

An admin who wants to leave counts the admins, and leaves if there is another. The last two leave at
the same moment. Each counts two, and each deletes only its own row. So no row is written twice, no
version has changed, and no lock on a row is in the way. Both succeed, and the team has no admin any
more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....kit.contract.errors import KeyNotFound
from ....state.store import Store
from ....state.update import update
from ...production_lock import PATIENT_WAIT_SECONDS, lock_named
from ...scenario import History, Mutation, Scenario, Step, Variant
from ._stores import open_shared_store, run_key, statement_steps, store_in, write_steps

MOST_ADMINS = 10


def naive(worker: str) -> None:
    store = open_shared_store()
    if len(admin_rows(store)) > 1:
        store.state_unset(row_key(worker))


def wrong_own_version(worker: str) -> None:
    """Delete the own row if it has not changed. Wrong: the other row may be deleted meanwhile."""
    store = open_shared_store()
    rows = admin_rows(store)
    if len(rows) > 1:
        store.state_unset(row_key(worker), if_version=rows[worker])


def wrong_own_lock(worker: str) -> None:
    """Lock the own row. Wrong: the other worker locks another row."""
    with lock_named(f"admin-{worker}").exclusively(PATIENT_WAIT_SECONDS):
        naive(worker)


def fixed(worker: str) -> None:
    """Leave the team unless this is the last admin. All admins are in one value."""

    def without_worker(admins: list[str]) -> list[str]:
        is_last_admin = len(admins) == 1
        if is_last_admin:
            return admins
        return [admin for admin in admins if admin != worker]

    update(open_shared_store(), run_key("admins"), without_worker)


def admin_rows(store: Store, directory: Path | None = None) -> dict[str, int]:
    """Return the admins that have a row of their own, and the version of each row."""
    prefix = row_key("", directory)
    rows = store.state_list(prefix, "", MOST_ADMINS)
    return {row.key.removeprefix(prefix): row.version for row in rows}


def row_key(admin: str, directory: Path | None = None) -> str:
    """Return the key of the row of an admin."""
    return run_key(f"admin.{admin}", directory)


def prepare(directory: Path) -> None:
    """Store one row for each admin."""
    with store_in(directory) as store:
        for admin in "AB":
            store.state_set(row_key(admin, directory), "admin")


def prepare_one_value(directory: Path) -> None:
    """Store all admins in one value."""
    with store_in(directory) as store:
        store.state_set(run_key("admins", directory), ["A", "B"])


@dataclass(frozen=True)
class Admins:
    """The admins of the team. Each worker is an admin who wants to leave."""

    names: Sequence[str]

    def __str__(self) -> str:
        if not self.names:
            return "no admin"
        return f"admins: {' '.join(self.names)}"


def read_state(directory: Path) -> Admins:
    """Return the admins. A variant stores each in a row of its own, or all in one value."""
    with store_in(directory) as store:
        names = list(admin_rows(store, directory))
        if not names:
            # Either this variant has no rows, or all admins have left.
            names = admins_in_one_value(store, directory)
    return Admins(names)


def admins_in_one_value(store: Store, directory: Path) -> list[str]:
    """Return the admins in the value that prepare_one_value() stores, or none if there is none."""
    try:
        names: list[str] = store.state_get(run_key("admins", directory)).value
    except KeyNotFound:
        return []
    return names


def invariant(history: History) -> Iterator[str]:
    """At any moment, the team has an admin.

    One of the two who want to leave can leave, and does not come back.
    """
    if not history.state.names:
        yield "the team has no admin any more."
    for step in history.taken_steps:
        for admin in step.state_after.names:
            if admin not in step.state_before.names:
                yield f"{admin} left, but is an admin again."
    for worker in history.failed_workers:
        yield f"{worker} failed instead of staying."
    if history.is_finished and len(history.state.names) > 1:
        yield "neither of the two could leave."


COUNT = statement_steps(
    "count", sql="SELECT key, value, version, expires_at FROM tool_state", verb="state_list"
)


scenario = Scenario(
    title="Write skew: two transactions that are right on their own",
    subtitle="The last two admins leave at the same moment.",
    rule=(
        "If a rule is about several rows, make all writers meet in one place: one value, one lock, "
        "or SERIALIZABLE."
    ),
    happened=(
        "An application counted the other administrators while it held a lock on the row of the "
        "one to remove. Two "
        "removals locked different rows, so a tenant could end up without an administrator.",
        "https://github.com/fazer-ai/agents/pull/556",
    ),
    question="There are two admins, A and B. Both count, then both leave. How many admins remain?",
    shared="the team",
    variants={
        "naive": Variant(
            summary="counts the admins, then deletes its own row",
            explanation="Both counted two, and each deleted another row.",
        ),
        "wrong-own-version": Variant(
            summary="deletes its own row only if the version of that row has not changed",
            explanation=(
                "Nobody else has changed A's row or B's row. What has changed is the number of "
                "rows."
            ),
        ),
        "wrong-own-lock": Variant(
            summary="holds a lock for its own row while it counts and deletes",
            steps=(
                Step(
                    name="lock own row",
                    event="fcntl.flock",
                    file="admin-?",
                    kind="lock",
                ),
                *COUNT,
                *write_steps("leave", verb="state_unset", after_steps=("count",)),
            ),
            schedule="A1 B1 A2 B2 A3 B3",
            explanation="A and B hold different locks, so neither of them waits.",
        ),
        "fixed": Variant(
            summary=(
                "keeps the admins in one value, and changes it with `tool state set --if-version`"
            ),
            steps=(
                *statement_steps(
                    "read",
                    sql="SELECT key, value, version, expires_at FROM tool_state",
                    verb="state_get",
                ),
                *write_steps("write", verb="state_set"),
            ),
            prepare=prepare_one_value,
            schedule="A1 B1 A2 B2 B3 B4",
            explanation=(
                "Both write the same value, so B's write was rejected. B read again, and stayed."
            ),
        ),
    },
    steps=(*COUNT, *write_steps("leave", verb="state_unset")),
    mechanisms=(
        Mutation(
            function="state/sql_verbs.py:_lock_value",
            summary="do not compare the version",
            original_code="if_version is not None and if_version != current_version",
            replacement_code="if_version is None and current_version < 0",
            expected_problem="left, but is an admin again",
        ),
        Mutation(
            function="state/update.py:update",
            summary="do not try again",
            original_code="attempt == attempts - 1",
            replacement_code="attempt < attempts",
            expected_problem="failed instead of staying",
        ),
    ),
    production_code="sampletool.state.update:update",
)
