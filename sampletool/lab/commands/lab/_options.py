"""Define the arguments and options that several commands of the lab share."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from ....kit.completion import offering
from ....kit.context import Context
from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.errors import InvalidValues, Mistake
from ....kit.program import PROGRAM
from ...errors import ScenarioNotFound, UnexpectedOutcome
from ...scenario import find_scenario, scenario_names


def spec_with(*examples: str) -> CommandSpec:
    """Return the spec of a command that runs scenarios."""
    return CommandSpec(
        effect="scratch", errors=(ScenarioNotFound, UnexpectedOutcome), examples=examples
    )


def complete_variant(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the variants that complete the typed text, for the scenario on the command line."""

    def variants_of_scenario(_context: Context) -> list[str]:
        # If the shell completes an option without a value, Typer has not parsed the name yet.
        name = ctx.params["name"] or ctx.args[0]
        return list(find_scenario(name).variants)

    return offering(variants_of_scenario)(ctx, incomplete)


NameArgument = Annotated[
    str | None,
    typer.Argument(
        help=f"Race to use, for example torn-write. `{PROGRAM} lab list` shows all.",
        autocompletion=offering(lambda _: scenario_names()),
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="Run all races.")]


def select_scenarios(name: str | None, every: bool, default: Sequence[str] = ()) -> Sequence[str]:
    """Return the names of the scenarios to run: the named one, all with --all, or the default.

    Raise InvalidValues if there is no scenario, or both a name and --all.
    """
    selected = default
    if every:
        selected = scenario_names()
    elif name is not None:
        selected = [name]
    has_both = every and name is not None
    if not selected or has_both:
        hint = f"Name a scenario; `{PROGRAM} lab list` shows them."
        raise InvalidValues(
            Mistake("NAME", "MISSING", "name one scenario, or give --all", name, hint)
        )
    return selected


def with_progress(context: Context, names: Sequence[str]) -> Iterator[str]:
    """Yield the name of each scenario. If there are several, report the progress."""
    for number, name in enumerate(names, start=1):
        if len(names) > 1:
            context.progress(f"{name}: {number} of {len(names)}")
        yield name
