"""sampletool/kit/lenient_parsing.py: one response has all mistakes in a command line."""

import json
import shlex
from typing import Any

import pytest

from sampletool.kit.app import run_in_process
from sampletool.kit.lenient_parsing import position_of_option
from sampletool.kit.safety.signals import Signals


def mistakes_in(words: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the command that a command line names, and its mistakes."""
    response = json.loads(run_in_process(shlex.split(words), Signals()))
    mistakes: list[dict[str, Any]] = response["error"].get("errors", [])
    return response["meta"]["command"], mistakes


# Where an option is


@pytest.mark.parametrize(
    ("flag", "words", "position"),
    [
        ("--max", "a --max 5", 1),
        ("--max", "a --max=5", 1),
        ("--max", "--maximum --max", 1),
        ("--max", "a -- --max", None),
        ("--max", "", None),
        ("--max", "-max", None),
        ("-x", "a -x", 1),
        ("-x", "-x5", 0),
        ("-x", "--ax -qx", 1),
        ("-x", "-- -x", None),
        ("-x", "x --x", None),
        ("-x", "-q", None),
    ],
)
def test_an_option_is_found_by_its_flag(flag: str, words: str, position: int | None) -> None:
    assert position_of_option(flag, words.split()) == position


# All mistakes


@pytest.mark.parametrize(
    ("words", "params"),
    [
        # The value of an unknown option looks like an argument too many.
        ("config path --nope x", ["--nope"]),
        ("config path x --nope", ["--nope"]),
        ("config path x --color=red", ["--color", "ARGUMENTS"]),
        ("--nope config get", ["--nope", "KEY"]),
        ("config list --nope --limit=x -y", ["--nope", "-y", "--limit"]),
        ("config list --limit=x --color=red", ["--limit", "--color"]),
        ("config set k 1 -qx", ["-x"]),
        ("config set k 1 -xq --limti", ["-x", "--limti"]),
        ("config get --nope --nope jobs", ["--nope", "--nope"]),
        ("config set a 1 --nope", ["--nope"]),
    ],
)
def test_all_mistakes_are_found_and_each_only_once(words: str, params: list[str]) -> None:
    _, mistakes = mistakes_in(words)

    assert [mistake["param"] for mistake in mistakes] == params


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("--nope config path", "config.path"),
        ("config path --nope", "config.path"),
        ("config --nope", "config"),
        ("confg path", ""),
    ],
)
def test_the_response_names_the_command_as_far_as_it_is_known(words: str, command: str) -> None:
    assert mistakes_in(words)[0] == command
