"""Add tasks to a queue: all of them, or none."""

from itertools import zip_longest
from typing import Annotated, NamedTuple

import typer

from ....kit.context import Context
from ....kit.contract.errors import InvalidValues, Mistake
from ....kit.contract.response import Effect
from ....kit.global_options import DryRunOption
from ...errors import TaskConflict
from ...protocol import NewTask, Once
from .. import _store
from .._values import parse_json, parse_value, read_input

spec = _store.changes(
    "task add mail 'to: ann' 'to: bob'",
    "task add mail 'to: ann' --id ann",
    """echo '{"body": "to: cid"}' | task add mail --from-file -""",
    errors=(TaskConflict,),
    idempotent=False,
    prints_value=True,
)


class Task(NamedTuple):
    effect: Effect
    id: str | None = None
    """In a forecast none, if it will get one of its own."""


class Added(NamedTuple):
    queue: str
    tasks: list[Task]
    effect: Effect
    replayed: bool = False

    def lines(self) -> list[str]:
        return [f"{task.id or 'a new id'}: {task.effect}" for task in self.tasks]


def read_tasks(words: list[str], ids: list[str], file: str | None, context: Context) -> list[NewTask]:
    """Bodies from the command line, each with its --id if there are any; behind them those of the file. All that is
    no task is in one answer."""
    if ids and len(ids) != len(words):
        problem = f"{len(ids)} --id for {len(words)} bodies: give one for each, or none"
        raise InvalidValues(Mistake("--id", "INVALID_VALUE", problem))
    tasks, mistakes = [], []
    for word, task in zip_longest(words, ids):
        try:
            tasks.append(NewTask(parse_value(word, context), task))
        except InvalidValues as error:
            mistakes += error.mistakes
    lines = [] if file is None else read_input(file, context.signals).split("\n")
    for number, line in enumerate(lines, 1):
        try:
            tasks += [_read_line(line)] if line.strip() else []
        except ValueError as error:
            mistakes.append(Mistake("--from-file", "INVALID_VALUE", f"line {number} of {file}: {error}", line[:80]))
    if not words and file is None:
        mistakes.append(Mistake("BODY", "MISSING", "there is nothing to add; give bodies, or --from-file"))
    if mistakes:
        raise InvalidValues(*mistakes[:20])
    return tasks


def _read_line(line: str) -> NewTask:
    fields = parse_json(line)
    members = fields.keys() if isinstance(fields, dict) else ()
    if not {"body"} <= set(members) <= {"body", "id"} or not isinstance(fields.get("id", ""), str):
        raise ValueError('it is not {"body": any JSON, "id": optional text}')
    return NewTask(**fields)


def command(
    ctx: typer.Context,
    queue: _store.QueueArgument,
    bodies: Annotated[
        list[str] | None, typer.Argument(metavar="[BODY...]", help="What is to be done: JSON, else text.")
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="ID", callback=_store.NAME, help="One for each body; again it changes nothing."),
    ] = None,
    from_file: Annotated[
        str | None, typer.Option(metavar="FILE", help='One {"body": …, "id": …} in each line; `-` is stdin.')
    ] = None,
    delay: _store.DelayOption = "0",  # type: ignore[assignment]
    idempotency_key: _store.KeyOption = None,
    fence: _store.FenceOption = None,
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> Added:
    """Add tasks to a queue, all of them or none.

    A known id with the same body is left as it is.
    """
    tasks = read_tasks(bodies or [], ids or [], from_file, ctx.obj)
    once = Once(idempotency_key, fence)
    added = _store.opened(ctx, store).task_add(queue, tasks, once, delay_ms=delay)
    is_forecast = dry_run and not added.replayed
    answers = zip(tasks, added.effects, strict=True)
    shown = [Task(effect, new.id if is_forecast else task) for new, (task, effect) in answers]
    effect: Effect = "created" if any(task.effect == "created" for task in shown) else "unchanged"
    return Added(queue, shown, effect, added.replayed)
