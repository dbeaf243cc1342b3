"""What the commands of shared state have in common: options, arguments, results and specs."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ...kit.completion import offering
from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec, ErrorTypes, Reads
from ...kit.contract.duration import parse_duration
from ...kit.contract.mistyped import check_name, check_text
from ...kit.contract.response import UNTRUSTED, Effect
from ...kit.global_options import checked_by
from ...kit.program import PROGRAM
from ..connect import connect_for_command
from ..errors import ERRORS_OF_READS, ERRORS_OF_WRITES
from ..protocol import Fence
from ..store import Store

_MAX_COMPLETIONS = 1000
"""How many names a shell is offered, and how many rows are read to find them."""

PREPARE_A_CLAIM = ("task add mail 'to: ann' --id ann", "task claim mail")
"""The commands that prepare the examples of what is done with a claim."""


# Results


@dataclass(frozen=True)
class Counter:
    """A counter. After a change, also what happened."""

    name: str
    value: int
    effect: Effect | None = None
    replayed: bool | None = None

    def lines(self) -> list[str]:
        """Return the value, after a change with the name."""
        if self.effect is None:
            return [str(self.value)]
        return [f"{self.name} = {self.value}"]


@dataclass(frozen=True)
class ValueChanged:
    """What happened to a value."""

    key: str
    version: int
    """The version that it has now. If it was removed, the version that it had, or 0."""

    effect: Effect
    value: Annotated[Any | None, UNTRUSTED] = None
    replayed: bool = False

    def lines(self) -> list[str]:
        """Return the key, the effect and the version."""
        return [f"{self.key}: {self.effect}, version {self.version}"]


@dataclass(frozen=True)
class TaskChanged:
    """What happened to a task."""

    id: str
    effect: Effect
    generation: int | None = None
    """The generation of the claim. None if the command was not about a claim."""

    lease_expires_at: str | None = None

    def lines(self) -> list[str]:
        """Return the task or the claim, and what happened."""
        name = self.id
        if self.generation is not None:
            name = f"{self.id}:{self.generation}"
        if self.lease_expires_at is not None:
            return [f"{name} until {self.lease_expires_at}"]
        return [f"{name} {self.effect}"]


# The store and the specs


def connect(ctx: typer.Context, store_url: str | None) -> Store:
    """Return the store that a command uses.

    `store_url` is the option --store. If it is None, the variable TOOL_STORE or the setting `store`
    names the store. The store obeys --dry-run, which the kit has read from the command line.
    """
    return connect_for_command(ctx.obj, store_url)


def reads(*examples: str, errors: ErrorTypes = (), **more: Any) -> CommandSpec:
    """Return the spec of a command that reads from the store.

    The `errors` are those that only this command raises. `more` are other members of CommandSpec.
    """
    return CommandSpec(
        effect="nothing",
        errors=(*ERRORS_OF_READS, *errors),
        locks=("store",),
        reads=("store",),
        examples=examples,
        **more,
    )


def changes(*examples: str, errors: ErrorTypes = (), **more: Any) -> CommandSpec:
    """Return the spec of a command that changes the store.

    The `errors` are those that only this command raises. `more` are other members of CommandSpec.
    """
    what_it_reads: tuple[Reads, ...] = ("store",)
    if "stdin_arguments" in more:
        what_it_reads = ("store", "stdin")
    return CommandSpec(
        effect="store",
        errors=(*ERRORS_OF_WRITES, *errors),
        locks=("store",),
        reads=what_it_reads,
        examples=examples,
        **more,
    )


# Parsers


def parse_claim(text: str) -> Fence:
    """Return the claim that `TASK:GENERATION` names."""
    # A task id may contain colons.
    task, _colon, generation = text.rpartition(":")
    # isdecimal() alone also accepts the digits of other scripts.
    is_number = generation.isascii() and generation.isdecimal()
    if not task or not is_number:
        problem = f"{text!r} is not a claim, such as ann:1, as printed by `{PROGRAM} task claim`"
        raise typer.BadParameter(problem)
    return Fence(task, int(generation))


def parse_milliseconds(text: str) -> int:
    """Return a duration such as `30s` in milliseconds."""
    try:
        return round(parse_duration(text) * 1000)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def duration_option(help: str) -> Any:
    """Return an option for `Annotated[int, …]` whose value is a duration in milliseconds."""
    return typer.Option(metavar="DURATION", parser=parse_milliseconds, help=help)


# Completion


def _counter_names(context: Context) -> list[str]:
    counters = connect_for_command(context).counter_list("", _MAX_COMPLETIONS)
    return [name for name, _value in counters]


def _state_keys(context: Context) -> list[str]:
    values = connect_for_command(context).state_list("", "", _MAX_COMPLETIONS)
    return [value.key for value in values]


def _queue_names(context: Context) -> set[str]:
    # Only of the oldest tasks: looking at all of them takes too long while a shell waits.
    tasks = connect_for_command(context).task_list(None, None, 0, _MAX_COMPLETIONS)
    return {task.queue for task in tasks}


queue_names = offering(_queue_names)


# Options and arguments

CHECK_NAME = checked_by(check_name)
CHECK_TEXT = checked_by(check_text)

# Without --store, its value is None. See `connect` for what the store is then.
StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help=(
            "Use the store at this URL, for example redis://localhost:6379. "
            "The URL must not contain a password."
        ),
        show_default="the `store` setting, or a local SQLite file",
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="KEY",
        callback=CHECK_NAME,
        help=(
            "Make it safe to repeat this command. If you run it again with the same KEY within "
            "24 hours, it returns the first result and changes nothing."
        ),
    ),
]
FenceOption = Annotated[
    Fence | None,
    typer.Option(
        metavar="TASK:GENERATION",
        parser=parse_claim,
        help=(
            "Make the change only while this claim of a task is current, and only once for each "
            "task. `task claim` prints the claim."
        ),
    ),
]
IfVersionOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help=(
            "Make the change only if the current version is N. Use 0 if the key must not have a "
            "value yet."
        ),
        show_default="any version",
    ),
]
DelayOption = Annotated[
    int, duration_option("Let workers claim the task only after this time, for example 30s.")
]
NewMaxAttemptsOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help=(
            "Mark these tasks as failed after N attempts. This overrides --max-attempts of the "
            "worker. Use 0 for no limit."
        ),
        show_default="the limit of the worker",
    ),
]
_MAX_ATTEMPTS_HELP = (
    "Mark a task as failed after N attempts, unless it was added with a limit of its own. "
    "Use 0 for no limit."
)
MaxAttemptsOption = Annotated[
    int,
    typer.Option(min=0, metavar="N", help=_MAX_ATTEMPTS_HELP),
]
LeaseOption = Annotated[
    int,
    duration_option(
        "Let the claim expire after this time, unless it is renewed. Another worker can then claim "
        "the task."
    ),
]
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name of the counter, for example builds.",
        callback=CHECK_NAME,
        autocompletion=offering(_counter_names),
    ),
]
ValueKeyArgument = Annotated[
    str,
    typer.Argument(
        metavar="KEY",
        help="Key of the value, for example plan.",
        callback=CHECK_NAME,
        autocompletion=offering(_state_keys),
    ),
]
QueueArgument = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE",
        help="Name of the queue, for example mail.",
        callback=CHECK_NAME,
        autocompletion=queue_names,
    ),
]
ClaimArgument = Annotated[
    Fence,
    typer.Argument(
        metavar="TASK:GENERATION",
        parser=parse_claim,
        help="Claim, as printed by `task claim`, for example ann:1.",
    ),
]
TaskIdArgument = Annotated[
    str,
    typer.Argument(metavar="TASK", callback=CHECK_NAME, help="ID of the task, for example ann."),
]
