"""The store, as its commands promise, take and answer it."""

from typing import Annotated, Any, NamedTuple

import typer

from ...kit.completion import offering
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.duration import parse_duration
from ...kit.contract.errors import ToolError
from ...kit.contract.mistyped import check_name
from ...kit.contract.response import UNTRUSTED, Effect
from ...kit.global_options import checked_by
from ...kit.program import PROGRAM
from ..connect import store_of
from ..errors import ASKING, CHANGING
from ..protocol import Fence
from ..store import Store

_OFFERED = 1000
"""As many names at most, and from as many rows, when a shell completes a word."""


class Counter(NamedTuple):
    name: str
    value: int
    effect: Effect | None = None
    """Of adding to it."""
    replayed: bool | None = None

    def lines(self) -> list[str]:
        return [f"{self.name} = {self.value}" if self.effect else str(self.value)]


class ValueChanged(NamedTuple):
    key: str
    version: int
    """The one it has now; the one it had, if it was removed, 0 if there was none."""
    effect: Effect
    value: Annotated[Any | None, UNTRUSTED] = None
    replayed: bool = False

    def lines(self) -> list[str]:
        return [f"{self.key}: {self.effect}, version {self.version}"]


class TaskChanged(NamedTuple):
    id: str
    effect: Effect
    generation: int | None = None
    lease_expires_at: str | None = None

    def lines(self) -> list[str]:
        claim = self.id if self.generation is None else f"{self.id}:{self.generation}"
        return [f"{claim} until {self.lease_expires_at}" if self.lease_expires_at else f"{claim} {self.effect}"]


def opened(ctx: typer.Context, url: str | None) -> Store:
    return store_of(ctx.obj, url)


def reads(*examples: str, errors: tuple[type[ToolError], ...] = (), **more: Any) -> CommandSpec:
    return CommandSpec("nothing", (*ASKING, *errors), locks=("store",), reads=("store",), examples=examples, **more)


def changes(*examples: str, errors: tuple[type[ToolError], ...] = (), **more: Any) -> CommandSpec:
    return CommandSpec("store", (*CHANGING, *errors), locks=("store",), reads=("store",), examples=examples, **more)


A_CLAIM = ("task add mail 'to: ann' --id ann", "task claim mail")
"""What the examples of what is done with a claim need."""


def parse_fence(text: str) -> Fence:
    task, _, generation = text.rpartition(":")
    if not task or not generation.isdecimal():
        raise typer.BadParameter(f"{text!r} is not TASK:GENERATION, as `{PROGRAM} task claim` prints it")
    return Fence(task, int(generation))


def parse_ms(text: str) -> int:
    try:
        return round(parse_duration(text) * 1000)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def duration(help: str) -> Any:
    """For `Annotated`: in milliseconds."""
    return typer.Option(metavar="DURATION", parser=parse_ms, help=help)


counter_names = offering(lambda context: [name for name, _ in store_of(context).counter_list("", _OFFERED)])
state_keys = offering(lambda context: [value.key for value in store_of(context).state_list("", "", _OFFERED)])
queue_names = offering(lambda context: {task.queue for task in store_of(context).task_list(None, None, 0, _OFFERED)})
"""Of the oldest tasks: looking at all of them takes too long while a shell waits."""
NAME = checked_by(check_name)
StoreOption = Annotated[str | None, typer.Option(metavar="URL", help="Which store; without a password in it.")]
KeyOption = Annotated[
    str | None,
    typer.Option("--idempotency-key", metavar="KEY", callback=NAME, help="A retry with the same key changes nothing."),
]
FenceOption = Annotated[
    Fence | None,
    typer.Option(
        metavar="TASK:GENERATION", parser=parse_fence, help="Only while this claim is current, and once per task."
    ),
]
IfVersionOption = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="Only if it still has this version; 0: only if there is none.")
]
DelayOption = Annotated[int, duration("How long nobody may claim it.")]
MaxAttemptsOption = Annotated[int, typer.Option(min=0, metavar="N", help="Fail a task after so many tries; 0: never.")]
LeaseOption = Annotated[int, duration("How long the claim lasts.")]
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A new one is 0.", callback=NAME, autocompletion=counter_names)
]
ValueKeyArgument = Annotated[str, typer.Argument(metavar="KEY", callback=NAME, autocompletion=state_keys)]
QueueArgument = Annotated[str, typer.Argument(metavar="QUEUE", callback=NAME, autocompletion=queue_names)]
ClaimArgument = Annotated[
    Fence, typer.Argument(metavar="TASK:GENERATION", parser=parse_fence, help="Your claim, as `task claim` prints it.")
]
TaskIdArgument = Annotated[str, typer.Argument(metavar="TASK", callback=NAME, help="Its id.")]
