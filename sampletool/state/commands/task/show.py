"""Show one task, with its result and its failures."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ....kit.contract.response import UNTRUSTED, value_text
from ...errors import TaskNotFound
from ...protocol import TaskState
from .. import _store

spec = _store.reads(
    "task show ann",
    errors=(TaskNotFound,),
    before=("task add mail 'to: ann' --id ann",),
)


@dataclass(frozen=True)
class ShownTask:
    """A task, its result, and what is known of its failed attempts."""

    task: TaskState
    max_attempts: int
    """0 means that there is no limit."""

    result: Annotated[Any | None, UNTRUSTED]
    exit_codes: list[int]
    """The exit codes of failed attempts, the oldest first."""

    failure_tail: Annotated[str | None, UNTRUSTED]
    """The end of the output of the last failed attempt."""

    def lines(self) -> list[str]:
        """Return a line for each fact, and then the end of the last output."""
        task = self.task
        lines = [
            f"task:     {task.id}",
            f"queue:    {task.queue}",
            f"status:   {task.status}",
            f"attempts: {task.attempts}",
            f"body:     {value_text(task.body)}",
        ]
        if task.claimed_by is not None:
            lines.append(f"worker:   {task.claimed_by}, since {task.claimed_at}")
        if self.result is not None:
            lines.append(f"result:   {value_text(self.result)}")
        if self.exit_codes:
            codes = ", ".join(str(code) for code in self.exit_codes)
            lines.append(f"failed with exit codes: {codes}")
        if self.failure_tail:
            lines += ["last output of a failed attempt:", *self.failure_tail.splitlines()]
        return lines


def command(
    ctx: typer.Context,
    task: _store.TaskIdArgument,
    store: _store.StoreOption = None,
) -> ShownTask:
    """Show a task, with its result and its failed attempts.

    If an attempt has failed, this includes the end of its output.
    """
    details = _store.connect(ctx, store).task_show(task)
    return ShownTask(
        task=details.task,
        max_attempts=details.max_attempts,
        result=details.result,
        exit_codes=details.exit_codes,
        failure_tail=details.failure_tail,
    )
