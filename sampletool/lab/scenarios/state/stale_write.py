"""An agent reads a text, thinks about it for a minute, and writes back its new version.

No lock can be held while a person or a model thinks. In the meantime, another agent has changed the
text. The write replaces that change, and nobody has seen it. A second read just before the write
only makes the gap smaller.
"""

from collections.abc import Iterator
from pathlib import Path

from ....state.update import update
from ...scenario import History, Mutation, Scenario, Variant
from ._stores import open_shared_store, run_key, statement_steps, store_in, write_steps


def naive(worker: str) -> None:
    store = open_shared_store()
    text = store.state_get(run_key("text")).value
    store.state_set(run_key("text"), edit(text, worker))


def wrong_read_again(worker: str) -> None:
    """Read again before the write. Wrong: another worker may write after the last read."""
    store = open_shared_store()
    text = store.state_get(run_key("text")).value
    while True:
        text_now = store.state_get(run_key("text")).value
        if text_now == text:
            break
        text = text_now
    store.state_set(run_key("text"), edit(text, worker))


def fixed(worker: str) -> None:
    update(open_shared_store(), run_key("text"), lambda text: edit(text, worker))


def edit(text: str, worker: str) -> str:
    """Return the text with the change of this worker: one more word, such as `+A`."""
    return f"{text} +{worker}"


def prepare(directory: Path) -> None:
    """Store a text without changes."""
    with store_in(directory) as store:
        store.state_set(run_key("text", directory), "draft")


def read_state(directory: Path) -> str:
    """Return the stored text."""
    with store_in(directory) as store:
        return str(store.state_get(run_key("text", directory)).value)


def invariant(history: History) -> Iterator[str]:
    """When a worker has reported success, its change is in the text."""
    words = history.state.split()
    for worker in history.successful_workers:
        # edit() adds such a word.
        if words.count(f"+{worker}") != 1:
            yield f"{worker} reported success, but its change is not in the text."
    if not history.is_finished:
        return
    for worker in history.workers:
        if worker not in history.successful_workers:
            yield f"{worker} failed to make its change."


scenario = Scenario(
    title="Stale write: an edit replaces a newer version",
    subtitle="A slow edit overwrites a quick one.",
    rule="Write only if the version is still the one that you read. If it has changed, read again.",
    happened=(
        "hermes-agent wrote its files atomically and still lost changes. Each write was "
        "complete, but it was based on a version that had been read too early.",
        "https://github.com/NousResearch/hermes-agent/issues/18795",
    ),
    question=(
        "A reads and thinks. B reads, thinks and writes. Now A writes. What happens to B's change?"
    ),
    shared="text",
    private_variables=("text",),
    variants={
        "naive": Variant(
            summary="reads, thinks, writes",
            schedule="A1 B1 B2 A2",
            explanation="A's text was based on the version before B's change.",
        ),
        "wrong-read-again": Variant(
            summary="reads once more before the write, and starts again if the text has changed",
            schedule="A1 A2 B1 B2 B3 A3",
            explanation="B wrote between A's second read and A's write.",
        ),
        "fixed": Variant(
            summary=(
                "runs `tool state set --if-version`, and reads again if another write came first"
            ),
            schedule="A1 B1 B2 A2 A3 A4",
            explanation=(
                "A's first write was rejected, because the version had changed. A's second write "
                "was based on B's text."
            ),
        ),
    },
    steps=(
        *statement_steps(
            "read", sql="SELECT key, value, version, expires_at FROM tool_state", verb="state_get"
        ),
        *write_steps("write", verb="state_set"),
    ),
    mechanisms=(
        Mutation(
            function="state/sql_verbs.py:_lock_value",
            summary="do not compare the version",
            original_code="if_version is not None and if_version != current_version",
            replacement_code="if_version is None and current_version < 0",
            expected_problem="reported success, but its change is not in the text",
        ),
        Mutation(
            function="state/update.py:update",
            summary="do not send the version that was read",
            original_code="store.state_set(key, change(value), if_version=version)",
            replacement_code="store.state_set(key, change(value))",
            expected_problem="reported success, but its change is not in the text",
        ),
        Mutation(
            function="state/update.py:update",
            summary="do not try again",
            original_code="attempt == attempts - 1",
            replacement_code="attempt < attempts",
            expected_problem="failed to make its change",
        ),
    ),
    production_code="sampletool.state.update:update",
)
