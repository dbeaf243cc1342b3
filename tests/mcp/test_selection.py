"""sampletool/mcp/selection.py: which commands a server offers."""

from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.kit.app import root_command
from sampletool.kit.commands.manifest import find_commands
from sampletool.kit.testing.failing import outcome_of
from sampletool.mcp.selection import (
    OFFERED_BY_DEFAULT,
    _parts_with_commands,
    parse_parts,
    part_of,
    select_commands,
)


def all_commands() -> dict[str, Any]:
    return dict(find_commands(root_command()))


def test_each_command_that_the_table_names_exists() -> None:
    commands = all_commands()

    for part, names in OFFERED_BY_DEFAULT.items():
        for name in names:
            if part in {part_of(command) for command in commands.values()}:
                assert name in commands, f"selection.py names the command {name}"
                assert part_of(commands[name]) == part


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("kit", {"status", "config get", "config list", "config set", "lock list"}),
        ("sample", {"build", "test", "process"}),
        (
            "state",
            {
                *("counter add", "state get", "state set", "task add", "task claim"),
                *("task finish", "task list", "task release", "task renew", "task show"),
            },
        ),
    ],
)
def test_by_default_an_agent_gets_the_commands_of_its_daily_work(
    part: str,
    names: set[str],
) -> None:
    """Another project may lack some parts."""
    commands = all_commands()
    of_part = {name for name, command in commands.items() if part_of(command) == part}

    assert select_commands(commands).keys() & of_part == names & of_part


def test_all_commands_of_a_part_that_the_table_does_not_name_are_offered() -> None:
    """A project that adds a part need not change the table."""
    command = SimpleNamespace(callback=SimpleNamespace(__module__="sampletool.stock.commands.add"))

    assert outcome_of(lambda: select_commands({"add": command})) == {"add": command}
    assert outcome_of(lambda: select_commands({"add": command}, only=["state"])) == {}


@pytest.mark.parametrize("part", ["lab", "audit", "fork", "mcp"])
def test_a_part_that_is_for_people_offers_nothing_by_default(part: str) -> None:
    module = f"sampletool.{part}.commands.add"
    commands = {"add": SimpleNamespace(callback=SimpleNamespace(__module__=module))}

    assert select_commands(commands) == {}
    assert select_commands(commands, only=[part]) == commands


def test_only_selects_all_commands_of_parts() -> None:
    selected = select_commands(all_commands(), only=["kit"])

    assert "config unset" in selected
    assert {part_of(command) for command in selected.values()} == {"kit"}


def test_every_selects_all_commands() -> None:
    commands = all_commands()

    assert select_commands(commands, offer_all=True) == commands


def test_the_names_of_parts_are_separated_by_commas() -> None:
    for name in ("kit", "mcp"):
        assert name in _parts_with_commands()
    assert parse_parts("kit, mcp") == ["kit", "mcp"]


def test_a_part_without_commands_is_refused_with_the_name_that_was_meant() -> None:
    with pytest.raises(ValueError, match=r"there is no part 'kti'\. Did you mean 'kit'"):
        parse_parts("mcp,kti")
    with pytest.raises(ValueError, match=r"The parts are .*kit"):
        parse_parts("zzzzzz")
