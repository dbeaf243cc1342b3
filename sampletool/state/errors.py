"""What can keep shared state from being read or changed, each as an expected failure."""

from typing import Any

from ..kit.contract.errors import USUAL_RETRY_MS, ExitStatus, ExtraNotInstalled, ToolError
from ..kit.contract.file_errors import ReadOnly
from ..kit.contract.lock_held import estimate_retry_ms
from ..kit.program import env_variable


class TaskNotFound(ToolError):
    """There is no task of that id."""

    code, exit_status = "TASK_NOT_FOUND", ExitStatus.NOT_FOUND
    sentence = "There is no task {task!r}."
    advice = "`{PROGRAM} task list` shows the tasks there are."


class TaskConflict(ToolError):
    """Adding is idempotent by id: the same id again has to mean the same task."""

    code, exit_status = "TASK_CONFLICT", ExitStatus.CONFLICT
    sentence = "The task {task!r} is already there with another body or in another queue; nothing was added."
    advice = "Choose another id, or leave it out to get a new one."


class TaskNotFailed(ToolError):
    """Only a failed task is tried again by hand; the others are, or will be, anyway."""

    code, exit_status = "TASK_NOT_FAILED", ExitStatus.CONFLICT
    sentence = "The task {task!r} is {status}, not failed; nothing was changed."
    advice = "Add it again under another id, if it is to be done once more."


class LeaseLost(ToolError):
    """This claim of the task is over; another one may have begun."""

    code, exit_status = "LEASE_LOST", ExitStatus.CONFLICT
    sentence = "Generation {generation} does not hold the task {task!r}: it is at {actual_generation} ({status})."
    advice = "Drop what you did for it; claim a task again."

    def __init__(self, task: str, generation: int, actual: int, status: str) -> None:
        super().__init__(task=task, generation=generation, actual_generation=actual, status=status)


class IdempotencyKeyReused(ToolError):
    """The idempotency key was already used, or the one that a fence implies, with other arguments."""

    code, exit_status = "IDEMPOTENCY_KEY_REUSED", ExitStatus.CONFLICT
    sentence = "The key {key!r} was already used, with other arguments; nothing was changed."
    advice = "Give every intended write an --idempotency-key of its own, and repeat it only with the same arguments."


class CounterRange(ToolError):
    """The sum would leave what JSON carries exactly."""

    code, exit_status = "COUNTER_RANGE", ExitStatus.CONFLICT
    sentence = "{counter} is {value}; adding {amount} would leave what JSON carries exactly (plus or minus 2**53-1)."
    advice = "Count in larger units, or in a new counter."


class StoreBusy(ToolError):
    """Another program keeps the store locked: not by our lock, but by the database's own."""

    code, exit_status = "LOCK_HELD", ExitStatus.LOCK_HELD
    retry_after_ms: int | None = USUAL_RETRY_MS
    sentence = "Another program, or a client that is paused, keeps the store {store} locked."
    advice = "Try again later. To wait for the lock, pass --lock-timeout 30s."

    def __init__(self, store: str, waited_ms: int) -> None:
        super().__init__(store=store, lock=f"store {store}", waited_ms=waited_ms, timeout_ms=waited_ms)
        self.retry_after_ms = estimate_retry_ms(None, None)


class StoreReadOnly(ReadOnly):
    """The server of the store takes no changes."""

    sentence = "{path} takes no changes: it is a replica, or set to be read-only."
    advice = "Name the server that takes changes, the primary."


class StateTooNew(ToolError):
    """A newer version of the tool wrote the store."""

    code, exit_status = "STATE_TOO_NEW", ExitStatus.PRECONDITION
    sentence = "{store} was written by a newer version of the tool (schema {found}; this one knows {known})."
    advice = "Use the newer version; nothing was changed."


class StoreUnsafe(ToolError):
    """The server is set up to lose what it has promised to keep."""

    code, exit_status = "STORE_UNSAFE", ExitStatus.PRECONDITION
    sentence = "{store} must not be used: {reason}."


class StoreUnavailable(ToolError):
    """The store cannot be reached. Retrying is safe unless a write may have happened before the connection broke."""

    code, exit_status = "STORE_UNAVAILABLE", ExitStatus.UNAVAILABLE
    retry_after_ms: int | None = 1000
    sentence = "{store} cannot be reached ({reason})."
    advice = "Retry; `{PROGRAM} doctor` tells more about the store."


class OutcomeUnknown(StoreUnavailable):
    """The connection broke after a write was sent that may not be repeated."""

    retry_after_ms = None
    sentence = "{store} cannot be reached ({reason}). Whether the change was made before that is unknown."
    advice = "Look before repeating it; with an --idempotency-key repeating is always safe."

    def __init__(self, **facts: Any) -> None:
        super().__init__(outcome="unknown", **facts)


class StoreAuthFailed(ToolError):
    """The store refused the password or the user."""

    code, exit_status = "STORE_AUTH_FAILED", ExitStatus.AUTH
    sentence = "{store} refused us: {reason}."
    advice = f"Put the right password into {env_variable('STORE')}, the settings, or the driver's own PGPASSWORD."


class TasksFailed(ToolError):
    """Some tasks used up their attempts."""

    code, exit_status = "TASKS_FAILED", ExitStatus.PARTIAL
    sentence = "{count} failed for good: {failed}."
    advice = "The data tells why; `{PROGRAM} task list --status failed` lists them."


ASKING = (StateTooNew, StoreUnsafe, StoreUnavailable, StoreAuthFailed, ExtraNotInstalled)
"""How whatever asks the store can end."""
CHANGING = (*ASKING, IdempotencyKeyReused, LeaseLost, TaskNotFound)
"""How whatever changes it can end."""
