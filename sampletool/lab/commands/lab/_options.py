"""What the commands of the lab share: what they promise, and which scenarios they run."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from ....kit.completion import offering
from ....kit.context import Context
from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.errors import InvalidValues, Mistake
from ....kit.program import PROGRAM
from ...errors import ScenarioNotFound, UnexpectedOutcome
from ...scenario import find, names


def spec_with(*examples: str) -> CommandSpec:
    return CommandSpec(
        effect="scratch", errors=(ScenarioNotFound, UnexpectedOutcome), examples=examples
    )


def ways_of_that(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ways of the scenario that is named. Before an option without its value it is no parameter yet."""
    return offering(lambda _: find(ctx.params["name"] or ctx.args[0]).ways)(ctx, incomplete)


NameArgument = Annotated[
    str | None,
    typer.Argument(
        help=f"The name of a scenario, see `{PROGRAM} lab list`.",
        autocompletion=offering(lambda _: names()),
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="All scenarios.")]


def chosen(name: str | None, every: bool, usual: Sequence[str] = ()) -> Sequence[str]:
    """`usual` where neither is given."""
    wanted = names() if every else usual if name is None else [name]
    if not wanted or (every and name is not None):
        hint = f"Name a scenario; `{PROGRAM} lab list` shows them."
        raise InvalidValues(
            Mistake("NAME", "MISSING", "name one scenario, or give --all", name, hint)
        )
    return wanted


def one_by_one(context: Context, wanted: Sequence[str]) -> Iterator[str]:
    """Several take a while: it is said which one comes now."""
    for number, name in enumerate(wanted, 1):
        if len(wanted) > 1:
            context.progress(f"{name}: {number} of {len(wanted)}")
        yield name
