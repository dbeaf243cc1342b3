"""What the commands of the lab share: what they promise, and which scenarios they run on which store."""

import os
from collections.abc import Iterator
from importlib import import_module
from typing import Annotated

import typer

from sampletool.kit.completion import offering
from sampletool.kit.context import Context
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.lab.errors import ScenarioNotFound, UnexpectedOutcome
from sampletool.lab.scenario import SCENARIOS, STORE_VARIABLE, find, names


def runs_scenarios(*examples: str) -> CommandSpec:
    return CommandSpec(effect="scratch", errors=(ScenarioNotFound, UnexpectedOutcome), examples=examples)


def ways_of_that(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ways of the scenario that is named. Before an option without its value it is no parameter yet."""
    return offering(lambda _: find(ctx.params["name"] or ctx.args[0]).ways)(ctx, incomplete)


def _use_store(ctx: typer.Context, url: str | None) -> None:
    """From now on, for this process and the workers that it starts."""
    if url is None or ctx.resilient_parsing:
        return
    try:
        import_module(f"{SCENARIOS}.state._stores").refuse_password(url)
    except ModuleNotFoundError:
        raise InvalidValues(Mistake("--store", "INVALID_VALUE", "no scenario here needs a store", url)) from None
    os.environ[STORE_VARIABLE] = url


NameArgument = Annotated[
    str | None,
    typer.Argument(help="A scenario; `tool lab list` lists them.", autocompletion=offering(lambda _: names())),
]
AllOption = Annotated[bool, typer.Option("--all", help="All scenarios.")]
StoreOption = Annotated[
    str | None,
    typer.Option(metavar="URL", callback=_use_store, help="A store to try it on; what is added stays there."),
]


def chosen(name: str | None, every: bool) -> list[str]:
    if every == (name is not None):
        hint = "Name a scenario; `tool lab list` shows them."
        raise InvalidValues(Mistake("NAME", "MISSING", "name one scenario, or give --all", name, hint))
    return names() if name is None else [name]


def one_by_one(context: Context, wanted: list[str]) -> Iterator[str]:
    """Several take a while: it is said which one comes now."""
    for number, name in enumerate(wanted, 1):
        if len(wanted) > 1:
            context.tell(f"{name}: {number} of {len(wanted)}")
        yield name
