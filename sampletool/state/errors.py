"""What can keep shared state from being read or changed, each as an expected failure."""

from typing import Any

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.exit_status import ExitStatus


class TaskNotFound(ToolError):
    """There is no task of that id."""

    code, exit_status = "TASK_NOT_FOUND", ExitStatus.NOT_FOUND

    def __init__(self, task: str) -> None:
        super().__init__(f"There is no task {task!r}.", "`tool task list` shows the tasks there are.", task=task)


class TaskConflict(ToolError):
    """Adding is idempotent by id: the same id again has to mean the same task."""

    code, exit_status = "TASK_CONFLICT", ExitStatus.CONFLICT

    def __init__(self, task: str) -> None:
        super().__init__(
            f"The task {task!r} is already there with another body or in another queue; nothing was added.",
            "Choose another id, or leave it out to get a new one.",
            task=task,
        )


class LeaseLost(ToolError):
    """Whoever says so no longer holds the task; somebody else may."""

    code, exit_status = "LEASE_LOST", ExitStatus.CONFLICT

    def __init__(self, task: str, generation: int, actual: int, status: str) -> None:
        found = f"{status} now" if generation == actual else f"at generation {actual} ({status})"
        was = generation <= actual
        super().__init__(
            f"Generation {generation} of the task {task!r} {'is over' if was else 'has never been'}: it is {found}.",
            "Drop what you did for it; claim a task again." if was else "Pass the generation that your claim told.",
            task=task,
            generation=generation,
            actual_generation=actual,
            status=status,
        )


class IdempotencyKeyReused(ToolError):
    """The idempotency key was already used, with other arguments."""

    code, exit_status = "IDEMPOTENCY_KEY_REUSED", ExitStatus.CONFLICT

    def __init__(self, key: str, *, is_fenced: bool) -> None:
        what = "this task has already written to this name" if is_fenced else f"the key {key!r} was already used"
        super().__init__(
            f"{what[0].upper()}{what[1:]}, with other arguments; nothing was changed.",
            "Give every intended write an --idempotency-key of its own, and repeat it only with the same arguments.",
            key=key,
        )


class CounterRange(ToolError):
    """The sum would leave what JSON carries exactly."""

    code, exit_status = "COUNTER_RANGE", ExitStatus.CONFLICT

    def __init__(self, counter: str, value: int, amount: int) -> None:
        super().__init__(
            f"{counter} is {value}; adding {amount} would leave what JSON carries exactly (plus or minus 2**53-1).",
            "Count in larger units, or in a new counter.",
            counter=counter,
            value=value,
        )


class StateTooNew(ToolError):
    """A newer version of the tool wrote the store."""

    code, exit_status = "STATE_TOO_NEW", ExitStatus.PRECONDITION

    def __init__(self, store: str, found: int, known: int) -> None:
        super().__init__(
            f"{store} was written by a newer version of the tool (schema {found}; this one knows {known}).",
            "Use the newer version; nothing was changed.",
            store=store,
            found=found,
            known=known,
        )


class StoreUnsafe(ToolError):
    """The server is set up to lose what it has promised to keep."""

    code, exit_status = "STORE_UNSAFE", ExitStatus.PRECONDITION

    def __init__(self, store: str, reason: str, suggestion: str) -> None:
        super().__init__(f"{store} must not be used: {reason}.", suggestion, store=store)


class StoreUnavailable(ToolError):
    """The store cannot be reached. Retrying is safe unless a write may have happened before the connection broke."""

    code, exit_status, retryable = "STORE_UNAVAILABLE", ExitStatus.UNAVAILABLE, True

    def __init__(self, store: str, reason: str, *, is_outcome_unknown: bool = False) -> None:
        super().__init__(
            f"{store} cannot be reached ({reason})."
            + (" Whether the change was made before that is unknown." if is_outcome_unknown else ""),
            "Look before repeating it; with an --idempotency-key repeating is always safe."
            if is_outcome_unknown
            else "Retry; `tool doctor` tells more about the store.",
            store=store,
            outcome="unknown" if is_outcome_unknown else None,
        )
        self.retry_after_ms = None if is_outcome_unknown else 1000


class StoreAuthFailed(ToolError):
    """The store refused the password or the user."""

    code, exit_status = "STORE_AUTH_FAILED", ExitStatus.AUTH

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(
            f"{store} refused us: {reason}.",
            "Put the right password into TOOL_STORE, the settings or the driver's own variables, such as PGPASSWORD.",
            store=store,
        )


class ExtraNotInstalled(ToolError):
    """It needs a Python package that is optional and not installed."""

    code, exit_status = "EXTRA_NOT_INSTALLED", ExitStatus.PRECONDITION

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the extra {extra!r}, which is not installed.",
            f"Install it: pip install 'sampletool[{extra}]'.",
            extra=extra,
        )


class TasksFailed(ToolError):
    """Some tasks used up their attempts."""

    code, exit_status = "TASKS_FAILED", ExitStatus.PARTIAL

    def __init__(self, failed: list[str], data: Any) -> None:
        super().__init__(
            f"{len(failed)} failed for good: {', '.join(failed[:10])}{', …' if len(failed) > 10 else ''}.",
            "The data tells why; `tool task list --status failed` lists them.",
            data=data,
            failed=failed,
        )
