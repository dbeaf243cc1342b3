"""List the races of the lab by level, each with its rule."""

from dataclasses import dataclass

import typer

from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.table import Line, header_row
from ....kit.pages import AfterOption, LimitOption, first_page, read_number
from ....kit.program import PROGRAM
from ...levels import level_of, names_in_order
from ...scenario import find_scenario

spec = CommandSpec(effect="nothing", examples=("lab list",))


@dataclass(frozen=True)
class ListedScenario:
    """One race in the list."""

    name: str
    level: str
    title: str
    subtitle: str
    rule: str
    ways: list[str]
    happened: str
    link: str


@dataclass(frozen=True)
class Listing:
    """A page of the list."""

    scenarios: list[ListedScenario]
    next_cursor: str | None = None

    def lines(self) -> list[Line]:
        """Return the list as a table, with a heading for each level."""
        lines: list[Line] = [header_row("name", "race")]
        previous_level = ""
        for scenario in self.scenarios:
            if scenario.level != previous_level:
                lines.append((f"{scenario.level}:", ""))
            lines.append((f"  {scenario.name}", scenario.title))
            previous_level = scenario.level
        lines += [
            "",
            f"Watch a race: {PROGRAM} lab run lost-config-update",
            f"Watch all of them: {PROGRAM} lab run --all",
        ]
        return lines


def _position_of(numbered_name: tuple[int, str]) -> int:
    """Return the position of a scenario in the list, from a pair of its position and its name."""
    position, _name = numbered_name
    return position


def command(ctx: typer.Context, limit: LimitOption = 1000, after: AfterOption = None) -> Listing:
    """List the races of the lab, from easy to hard.

    A race is a fault that appears only if several processes run at the same time. The list has the
    level, the name and the title of each race. With JSON output, it also has a rule that prevents
    the fault, and a link to a case in which it really happened.
    """
    # The cursor is the position of the last race of a page, because the order is not alphabetical.
    last_position = read_number(after)
    numbered_names = list(enumerate(names_in_order(), start=1))
    page = first_page(numbered_names[last_position:], limit, _position_of)
    listed = []
    for _, name in page.rows:
        scenario = find_scenario(name)
        happened, link = scenario.happened
        listed.append(
            ListedScenario(
                name=name,
                level=level_of(name),
                title=scenario.title,
                subtitle=scenario.subtitle,
                rule=scenario.rule,
                ways=list(scenario.variants),
                happened=happened,
                link=link,
            )
        )
    return Listing(listed, page.next_cursor)
