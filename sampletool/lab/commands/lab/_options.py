"""The options that several commands of the lab share, and their meaning."""

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
    """Return the spec of a command that runs scenarios."""
    return CommandSpec(
        effect="scratch", errors=(ScenarioNotFound, UnexpectedOutcome), examples=examples
    )


def complete_variant(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a variant of the scenario that the command line names."""

    def variants_of_scenario(_context: Context) -> list[str]:
        # While the shell completes an option without its value, the name is no parameter yet.
        name = ctx.params["name"] or ctx.args[0]
        return list(find(name).variants)

    return offering(variants_of_scenario)(ctx, incomplete)


NameArgument = Annotated[
    str | None,
    typer.Argument(
        help=f"The name of a scenario: `{PROGRAM} lab list` shows them.",
        autocompletion=offering(lambda _: names()),
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="Run all scenarios.")]


def chosen(name: str | None, every: bool, usual: Sequence[str] = ()) -> Sequence[str]:
    """Return the scenarios to run: the named one, all of them, or the usual ones.

    Raise InvalidValues if there is none, or both a name and --all.
    """
    wanted = usual
    if every:
        wanted = names()
    elif name is not None:
        wanted = [name]
    if not wanted or (every and name is not None):
        hint = f"Name a scenario; `{PROGRAM} lab list` shows them."
        raise InvalidValues(
            Mistake("NAME", "MISSING", "name one scenario, or give --all", name, hint)
        )
    return wanted


def one_by_one(context: Context, wanted: Sequence[str]) -> Iterator[str]:
    """Yield each scenario. If there are several, report which one is next."""
    for number, name in enumerate(wanted, 1):
        if len(wanted) > 1:
            context.progress(f"{name}: {number} of {len(wanted)}")
        yield name
