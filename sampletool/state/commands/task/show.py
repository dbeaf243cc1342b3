"""Show one task, with its result and its failures."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from ....kit.contract.excerpt import excerpt, excerpt_text
from ....kit.contract.response import UNTRUSTED
from ....kit.global_options import MaxCharsOption
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

    body_length: int | None = None
    """The number of characters of a body that --max-chars has shortened."""

    result_length: int | None = None
    """The number of characters of a result that --max-chars has shortened."""

    @property
    def truncated(self) -> bool:
        """Whether the body or the result is not shown whole."""
        return self.body_length is not None or self.result_length is not None

    def lines(self) -> list[str]:
        """Return a line for each fact, and then the end of the last output."""
        task = self.task
        lines = [
            f"task:     {task.id}",
            f"queue:    {task.queue}",
            f"status:   {task.status}",
            f"attempts: {task.attempts}",
            f"body:     {excerpt_text(task.body, self.body_length)}",
        ]
        if task.claimed_by is not None:
            lines.append(f"worker:   {task.claimed_by}, since {task.claimed_at}")
        if self.result is not None:
            lines.append(f"result:   {excerpt_text(self.result, self.result_length)}")
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
    max_chars: MaxCharsOption = None,
) -> ShownTask:
    """Show a task, with its result and its failed attempts.

    If an attempt has failed, this includes the end of its output.
    """
    details = _store.connect(ctx, store).task_show(task)
    body = excerpt(details.task.body, max_chars)
    result = excerpt(details.result, max_chars)
    return ShownTask(
        task=replace(details.task, body=body.value),
        max_attempts=details.max_attempts,
        result=result.value,
        exit_codes=details.exit_codes,
        failure_tail=details.failure_tail,
        body_length=body.length,
        result_length=result.length,
    )
