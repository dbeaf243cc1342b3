"""The race conditions of the lab, each with its rule."""

from dataclasses import dataclass

import typer

from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.table import Line, header_row
from ....kit.pages import AfterOption, LimitOption, page_of
from ....kit.program import PROGRAM
from ...scenario import find, names

spec = CommandSpec(effect="nothing", examples=("lab list",))


@dataclass(frozen=True)
class Listed:
    name: str
    title: str
    rule: str
    ways: list[str]
    happened: str
    link: str


@dataclass(frozen=True)
class Listing:
    scenarios: list[Listed]
    next_cursor: str | None = None

    def lines(self) -> list[Line]:
        rows = [(scenario.name, scenario.title) for scenario in self.scenarios]
        hint = f"See one happen: {PROGRAM} lab run lost-config-update"
        return [header_row("scenario", "what goes wrong"), *rows, "", hint, f"See all of them: {PROGRAM} lab run --all"]


def command(ctx: typer.Context, limit: LimitOption = 1000, after: AfterOption = None) -> Listing:
    """List the race conditions there are.

    What goes wrong; in JSON also the rule that prevents it, and where it really happened.
    """
    page = page_of(names(), limit, after, str)
    listed = []
    for name in page.rows:
        one = find(name)
        listed.append(Listed(name, one.title, one.rule, list(one.ways), *one.happened))
    return Listing(listed, page.next_cursor)
