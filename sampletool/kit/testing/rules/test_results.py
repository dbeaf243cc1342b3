"""Programs and people can read the result of each command."""

from collections.abc import Iterator
from typing import Any, get_args

from ...contract.response import Effect
from ..how_to import fail_if_any
from .own_code import own_commands

_HEADING = "Results"


def test_each_command_returns_a_result_with_lines() -> None:
    faults = []
    for command in own_commands():
        result = command.command.hints.get("return")
        # A command can return one of several types.
        for result_type in get_args(result) or [result]:
            if not hasattr(result_type, "lines"):
                name = getattr(result_type, "__name__", result_type)
                faults.append(f"{command.file}: the result, {name}, has no method `lines`.")

    what_to_do = "Return a frozen dataclass with a method `lines`, which returns what people see"
    fail_if_any(faults, what_to_do, _HEADING)


def test_an_effect_in_a_result_is_one_of_the_words_that_programs_know() -> None:
    words = set(get_args(Effect))
    faults = []
    for command in own_commands():
        # The manifest shows the effects of commands, which are other words.
        if command.name == "manifest":
            continue
        for effect in _members(command.described["data"], "effect"):
            if not set(effect.get("enum", ["any text"])) <= words:
                faults.append(f"{command.file}: the field `effect` has another type than Effect.")

    fail_if_any(faults, "Give the field the type `Effect`, or another name", _HEADING)


def _members(schema: dict[str, Any], wanted: str) -> Iterator[dict[str, Any]]:
    """Yield the schema of each member of this name, at any depth."""
    for name, member in schema.get("properties", {}).items():
        if name == wanted:
            yield member
        else:
            yield from _members(member, wanted)
    inner_schemas = [*schema.get("anyOf", [])]
    if "items" in schema:
        inner_schemas.append(schema["items"])
    for inner in inner_schemas:
        yield from _members(inner, wanted)
