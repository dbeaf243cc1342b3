"""The errors of shared state. kit/contract/errors.py explains how a class describes an error."""

from ..kit.contract.errors import USUAL_RETRY_MS, ExitStatus, ExtraNotInstalled, ToolError
from ..kit.contract.file_errors import IoFailure, NoSpace, PermissionDenied, ReadOnly
from ..kit.contract.lock_held import estimate_retry_ms
from ..kit.program import env_variable
from .protocol import Repetition

_RETRY_AFTER_MS = 1000
"""How long to wait for a server that is unreachable. It may be starting."""


class TaskNotFound(ToolError):
    """No task has this id."""

    code, exit_status = "TASK_NOT_FOUND", ExitStatus.NOT_FOUND
    sentence = 'No task has the ID "{task}".'
    advice = "To list the tasks, run `{PROGRAM} task list`."


class TaskConflict(ToolError):
    """A task with this id exists, but with another body or in another queue."""

    code, exit_status = "TASK_CONFLICT", ExitStatus.CONFLICT
    sentence = (
        'A task with the id "{task}" exists, with another body or in another queue. '
        "Nothing was added."
    )  # fmt: skip
    advice = "Choose another id, or omit the id to get a random one."


class TaskNotFailed(ToolError):
    """Only a failed task can be retried by hand."""

    code, exit_status = "TASK_NOT_FAILED", ExitStatus.CONFLICT
    sentence = (
        'Cannot retry task "{task}": its status is {status}. Only failed tasks can be retried.'
    )  # fmt: skip
    advice = "To repeat the work, add a new task: `{PROGRAM} task add QUEUE BODY`."


class TaskEnded(ToolError):
    """A task that is done or failed cannot be cancelled."""

    code, exit_status = "TASK_ENDED", ExitStatus.CONFLICT
    sentence = 'Cannot cancel task "{task}": its status is {status}.'
    advice = "To remove tasks that have ended, run `{PROGRAM} task clean`."


class LeaseLost(ToolError):
    """The claim is no longer current. Another worker may have claimed the task."""

    code, exit_status = "LEASE_LOST", ExitStatus.CONFLICT
    sentence = (
        'Claim {task}:{generation} is not current. Task "{task}" is at generation '
        "{actual_generation}, and its status is {status}."
    )  # fmt: skip
    advice = "Discard your result, then claim another task: `{PROGRAM} task claim QUEUE`."

    def __init__(
        self,
        task: str,
        generation: int,
        actual_generation: int,
        actual_status: str,
    ) -> None:
        """Describe a claim, and its task as it is now.

        `task` and `generation` name the claim. `actual_generation` and `actual_status` are those
        of the task.
        """
        super().__init__(
            task=task,
            generation=generation,
            actual_generation=actual_generation,
            status=actual_status,
        )


class IdempotencyKeyReused(ToolError):
    """The idempotency key was already used with different arguments."""

    code, exit_status = "IDEMPOTENCY_KEY_REUSED", ExitStatus.CONFLICT
    sentence = (
        'The idempotency key "{key}" was already used with different arguments. '
        "Nothing was changed."
    )  # fmt: skip
    advice = (
        "Use a new --idempotency-key for each change. Reuse a key only to retry the same command."
    )  # fmt: skip


class FencedWriteRepeated(IdempotencyKeyReused):
    """A claim has already made this change with different arguments."""

    sentence = (
        "The claim {claim} has already made this change with different arguments: {change}. "
        "Nothing was changed."
    )  # fmt: skip
    advice = "To make it several times for one claim, pass another --idempotency-key each time."


class CounterRange(ToolError):
    """The sum would exceed the largest integer that JSON represents exactly."""

    code, exit_status = "COUNTER_RANGE", ExitStatus.CONFLICT
    sentence = (
        "{counter} is {value}. Adding {amount} would exceed the largest integer that JSON "
        "represents exactly (2^53-1)."
    )  # fmt: skip
    advice = "Count in larger units, or use a new counter."


class StoreBusy(ToolError):
    """Another program keeps the store locked, with a lock of the database."""

    code, exit_status = "LOCK_HELD", ExitStatus.LOCK_HELD
    retry_after_ms: int | None = USUAL_RETRY_MS
    sentence = "The store {store} is locked by another program, or by a client that is paused."
    advice = "Try again later. To wait for the lock, pass --lock-timeout 30s."

    def __init__(self, store: str, waited_ms: int) -> None:
        """Name the store, and say how long this process waited."""
        super().__init__(
            store=store,
            lock=f"store {store}",
            waited_ms=waited_ms,
            timeout_ms=waited_ms,
        )
        self.retry_after_ms = estimate_retry_ms(None, None)


class StoreReadOnly(ReadOnly):
    """The server of the store does not accept changes."""

    sentence = "{path} does not accept changes: it is a replica, or it is read-only."
    advice = "Use the primary server, which accepts changes."


class StoreFull(NoSpace):
    """The server of the store has no space left, on its disk or in its memory."""

    sentence = "{path} cannot save the change: the server has no space left."
    advice = "Free up space on the server, then run the command again. Nothing was changed."


class StoreForbidden(PermissionDenied):
    """The server does not allow this user to do what the command needs."""

    sentence = "{path} does not allow this: {reason}."
    advice = "Ask the administrator of the server to grant the permission."


class StoreFailure(IoFailure):
    """The server of the store reported an error."""

    sentence = "{path} reported an error: {reason}."
    advice = "Check the log of the server. To check the store, run `{PROGRAM} doctor`."


class StateTooNew(ToolError):
    """A newer version of the tool has written the store."""

    code, exit_status = "STATE_TOO_NEW", ExitStatus.PRECONDITION
    sentence = (
        "A newer version of the tool has written {store}: it has schema {found}, and this version "
        "knows up to {known}. Nothing was changed."
    )  # fmt: skip
    advice = "Use the newer version of the tool."


class StoreUnsafe(ToolError):
    """The server is configured so that it can lose what it has acknowledged."""

    code, exit_status = "STORE_UNSAFE", ExitStatus.PRECONDITION
    sentence = "{store} is not safe to use: {reason}."


class StoreMisconfigured(ToolError):
    """The URL or the settings of the connection can never work, so a retry cannot help."""

    code, exit_status = "STORE_MISCONFIGURED", ExitStatus.PRECONDITION
    sentence = "Cannot connect to {store}: {reason}."
    advice = "Correct the URL of the store, or the settings and certificates of the server."


class StoreUnavailable(ToolError):
    """The store is unreachable."""

    code, exit_status = "STORE_UNAVAILABLE", ExitStatus.UNAVAILABLE
    retry_after_ms: int | None = _RETRY_AFTER_MS
    sentence = "Cannot reach {store}: {reason}. Nothing was changed."
    advice = "Try again later. To check the store, run `{PROGRAM} doctor`."


_REPEAT_WITH = (
    "Run the same command again, with the same {option}. "
    "If the change was saved, this changes nothing."
)  # fmt: skip

_CHECK_FIRST = (
    "Check the current value before you run the command again. "
    "To make retries safe, pass --idempotency-key."
)  # fmt: skip

_HINT_BY_REPETITION: dict[Repetition, str] = {
    "harmless": "Run the same command again. It is safe to repeat.",
    "same key": _REPEAT_WITH.format(option="--idempotency-key"),
    "same fence": _REPEAT_WITH.format(option="--fence"),
    "unsafe": _CHECK_FIRST,
}
"""What to do if it is unknown whether a change was made. The keys are in protocol.py."""


class OutcomeUnknown(StoreUnavailable):
    """The connection was lost after a change was sent, and before the reply arrived."""

    sentence = (
        "Lost the connection to {store}: {reason}. The change may or may not have been saved."
    )  # fmt: skip

    def __init__(self, store: str, reason: str, repetition: Repetition) -> None:
        """Give the hint that fits what happens if the store gets the same change twice."""
        super().__init__(
            suggestion=_HINT_BY_REPETITION[repetition],
            store=store,
            reason=reason,
            outcome="unknown",
        )
        if repetition == "unsafe":
            # A program must not repeat this by itself: the change could be made twice.
            self.retry_after_ms = None


class StoreAuthFailed(ToolError):
    """The store refused the user or the password."""

    code, exit_status = "STORE_AUTH_FAILED", ExitStatus.AUTH
    sentence = "Cannot log in to {store}: {reason}."
    advice = (
        f"Check the user name and the password in {env_variable('STORE')}, in the `store` setting, "
        "or in PGPASSWORD (PostgreSQL only)."
    )  # fmt: skip


class TasksFailed(ToolError):
    """Some tasks have used up their attempts."""

    code, exit_status = "TASKS_FAILED", ExitStatus.PARTIAL
    sentence = "{count} tasks failed and are not tried again: {failed}."
    advice = "To list them, run `{PROGRAM} task list --status failed`."


class TasksFailedElsewhere(TasksFailed):
    """Some tasks have used up their attempts, and others had claimed some of these."""

    sentence = (
        "{count} tasks failed and are not tried again. Others had claimed {elsewhere} of them."
    )  # fmt: skip


class NotAllCancelled(ToolError):
    """Some tasks were cancelled, and others could not be."""

    code, exit_status = "NOT_ALL_CANCELLED", ExitStatus.PARTIAL
    sentence = "These tasks could not be cancelled: {failed}. The others were."
    advice = "To see the status of each task, run `{PROGRAM} task list`."


ERRORS_OF_READS = (
    StateTooNew,
    StoreUnsafe,
    StoreMisconfigured,
    StoreUnavailable,
    StoreAuthFailed,
    ExtraNotInstalled,
)
"""The errors of every command that reads from the store."""

ERRORS_OF_WRITES = (*ERRORS_OF_READS, IdempotencyKeyReused, LeaseLost, TaskNotFound)
"""The errors of every command that changes the store."""
