"""Add tasks to a queue: all of them, or none."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ....kit.context import Context
from ....kit.contract.errors import InvalidValues, Mistake
from ....kit.contract.response import Effect
from ....kit.global_options import DryRunOption
from ...errors import TaskConflict
from ...protocol import Added, NewTask, Once
from .. import _store
from .._values import parse_json, parse_value, read_input

spec = _store.changes(
    "task add mail 'to: ann' 'to: bob'",
    "task add mail 'to: ann' --id ann",
    """echo '{"body": "to: cid"}' | task add mail --from-file -""",
    errors=(TaskConflict,),
    stdin_arguments=("from_file",),
    idempotent=False,
    prints_value=True,
)

_MAX_MISTAKES = 20
"""How many wrong tasks are reported. A file can have thousands of them."""

_MAX_SHOWN_CHARACTERS = 80


@dataclass(frozen=True)
class AddedTask:
    """What happened to one task."""

    effect: Effect
    id: str | None = None
    """The id. None in a forecast, if the task would get a random one."""


@dataclass(frozen=True)
class AddedTasks:
    """What happened to the tasks, in the order in which they were given."""

    queue: str
    tasks: list[AddedTask]
    effect: Effect
    replayed: bool = False

    def lines(self) -> list[str]:
        """Return a line for each task."""
        lines = []
        for task in self.tasks:
            name = "a new id" if task.id is None else task.id
            lines.append(f"{name}: {task.effect}")
        return lines


def read_tasks(
    bodies: list[str],
    ids: list[str],
    file: str | None,
    context: Context,
    *,
    allow_empty: bool = False,
) -> list[NewTask]:
    """Return the tasks of the command line, and then those of the file.

    Each body on the command line has an id, if there are any. Raise InvalidValues with all
    mistakes. Raise it also if stdin contains no tasks, unless `allow_empty` is true.
    """
    if ids and len(ids) != len(bodies):
        problem = f"{len(ids)} ids for {len(bodies)} bodies: pass --id for each body, or not at all"
        raise InvalidValues(Mistake("--id", "INVALID_VALUE", problem))
    if not bodies and file is None:
        problem = "there is nothing to add. Give a body, or pass --from-file"
        raise InvalidValues(Mistake("BODY", "MISSING", problem))
    tasks, mistakes = _parse_bodies(bodies, ids, context)
    if file is not None:
        content = read_input(file, context.signals)
        tasks_of_file, mistakes_of_file = _parse_lines(content, file)
        if file == "-" and not content.strip() and not allow_empty:
            mistakes_of_file.append(_no_tasks_on_stdin())
        tasks += tasks_of_file
        mistakes += mistakes_of_file
    if mistakes:
        raise InvalidValues(*mistakes[:_MAX_MISTAKES])
    return tasks


def _parse_bodies(
    bodies: list[str],
    ids: list[str],
    context: Context,
) -> tuple[list[NewTask], list[Mistake]]:
    """Return the tasks of the command line, and the mistakes in them."""
    tasks = []
    mistakes: list[Mistake] = []
    given_ids: list[str] | list[None] = ids if ids else [None] * len(bodies)
    for body, task_id in zip(bodies, given_ids, strict=True):
        try:
            tasks.append(NewTask(parse_value(body, context), task_id))
        except InvalidValues as error:
            mistakes += error.mistakes
    return tasks, mistakes


def _no_tasks_on_stdin() -> Mistake:
    """Return the mistake for a stdin that contains no tasks."""
    # Probably, the program that should have written them has failed.
    return Mistake(
        param="--from-file",
        code="INVALID_VALUE",
        message="stdin contains no tasks",
        value="-",
        suggestion="If there may be none, pass --allow-empty.",
    )


def _parse_lines(content: str, file: str) -> tuple[list[NewTask], list[Mistake]]:
    """Return the tasks of a file, and the mistakes in it. Empty lines are skipped."""
    tasks = []
    mistakes = []
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            tasks.append(_parse_line(line))
        except ValueError as error:
            problem = f"line {number} of {file}: {error}"
            start_of_line = line[:_MAX_SHOWN_CHARACTERS]
            mistakes.append(Mistake("--from-file", "INVALID_VALUE", problem, start_of_line))
    return tasks, mistakes


def _parse_line(line: str) -> NewTask:
    """Return the task that one line of a file describes. Raise ValueError if it does not."""
    value = parse_json(line)
    if not _is_task(value):
        raise ValueError('it is not {"body": any JSON, "id": optional text}')
    return NewTask(body=value["body"], id=value.get("id"))


def _is_task(value: Any) -> bool:
    """Return whether a JSON value is an object with a body, perhaps an id, and nothing else."""
    if not isinstance(value, dict):
        return False
    if "body" not in value or not value.keys() <= {"body", "id"}:
        return False
    # An id can be missing, but not be null or a number.
    return "id" not in value or isinstance(value["id"], str)


def _describe_added_tasks(added: Added) -> list[AddedTask]:
    """Return the id of each task, and what happened to it."""
    return [AddedTask(effect=effect, id=task_id) for task_id, effect in added.effects]


def _describe_forecast(added: Added, tasks: list[NewTask]) -> list[AddedTask]:
    """Return what would happen to each task.

    The random id of a task without an id is left out: without --dry-run, it will be another one.
    """
    if added.replayed:
        # The store would add nothing, and return the tasks of an earlier command with the same key.
        # These can be other tasks than `tasks`, and their ids are known.
        return _describe_added_tasks(added)
    forecast = []
    for task, (_random_id, effect) in zip(tasks, added.effects, strict=True):
        forecast.append(AddedTask(effect=effect, id=task.id))
    return forecast


def command(
    ctx: typer.Context,
    queue: _store.QueueArgument,
    bodies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BODY...]",
            callback=_store.CHECK_TEXT,
            help=(
                "Description of each task, for the worker. Valid JSON is stored as JSON, and "
                "anything else as text."
            ),
        ),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="ID",
            callback=_store.CHECK_NAME,
            help="Set the ID of the task. To add several tasks, repeat this option for each body.",
        ),
    ] = None,
    from_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help=(
                'Also add the tasks in FILE, which has a JSON object such as {"body": …, "id": …} '
                "on each line. Use `-` to read from stdin."
            ),
        ),
    ] = None,
    allow_empty: Annotated[
        bool,
        typer.Option("--allow-empty", help="Accept that stdin contains no tasks."),
    ] = False,
    delay: _store.DelayOption = "0",  # type: ignore[assignment]
    max_attempts: _store.NewMaxAttemptsOption = None,
    idempotency_key: _store.KeyOption = None,
    fence: _store.FenceOption = None,
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> AddedTasks:
    """Add one or more tasks to a queue.

    If you add several tasks, either all of them are added or none are. A task that already exists
    with the same ID, queue and body is left as it is.
    """
    tasks = read_tasks(bodies or [], ids or [], from_file, ctx.obj, allow_empty=allow_empty)
    once = Once(idempotency_key, fence)
    added = _store.connect(ctx, store).task_add(
        queue,
        tasks,
        once,
        delay_ms=delay,
        max_attempts=max_attempts,
    )
    if dry_run:
        described_tasks = _describe_forecast(added, tasks)
    else:
        described_tasks = _describe_added_tasks(added)
    has_created = any(task.effect == "created" for task in described_tasks)
    return AddedTasks(
        queue=queue,
        tasks=described_tasks,
        effect="created" if has_created else "unchanged",
        replayed=added.replayed,
    )
