"""sampletool/mcp/parameters.py: the names, types and descriptions of a tool's parameters."""

from typing import Any

import pytest

from sampletool.kit.app import root_command
from sampletool.kit.commands.manifest import find_commands
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.global_options import described_options
from sampletool.kit.testing.failing import outcome_of
from sampletool.mcp.parameters import Parameter, parameters_of

VALUE: dict[str, Any] = {
    "name": "value",
    "type": "string",
    "required": True,
    "repeatable": False,
    "help": "The value. `-` reads it from stdin. It is kept.",
}
IN_USER_FILE: dict[str, Any] = {
    "name": "in_user_file",
    "flags": ["--global", "-g"],
    "type": "boolean",
    "required": False,
    "repeatable": False,
    "help": "Use the file of the user.",
}


def parameters(spec: CommandSpec) -> dict[str, Parameter]:
    found = outcome_of(lambda: parameters_of([VALUE, IN_USER_FILE], described_options(), spec))
    assert isinstance(found, list), repr(found)
    return {parameter.name: parameter for parameter in found}


def parameter_of(description: dict[str, Any]) -> Parameter:
    """Return the only parameter of a command that the manifest describes so."""
    spec = CommandSpec(effect="files")
    found = outcome_of(lambda: parameters_of([description], [], spec))
    assert isinstance(found, list), repr(found)
    assert len(found) == 1
    parameter: Parameter = found[0]
    return parameter


def test_a_parameter_is_named_like_its_option() -> None:
    found = parameters(CommandSpec(effect="files", stdin_arguments=("value",)))

    common = {"cwd", "session_id", "lock_timeout", "timeout"}
    assert found.keys() == {"value", "global"} | common
    assert found["global"] == Parameter(
        name="global",
        aliases=frozenset({"in_user_file"}),
        flag="--global",
        type="boolean",
        is_required=False,
        is_list=False,
        reads_stdin=False,
        schema={"type": "boolean", "description": "Use the file of the user."},
        is_shown=True,
    )
    assert found["value"] == Parameter(
        name="value",
        aliases=frozenset(),
        flag=None,
        type="string",
        is_required=True,
        is_list=False,
        reads_stdin=True,
        schema={"type": "string", "description": "The value. It is kept."},
        is_shown=True,
    )


@pytest.mark.parametrize(
    "name",
    ["json", "format", "fields", "quiet", "verbose", "color", "help", "raw", "allow_empty"],
)
def test_an_option_about_the_output_is_no_parameter(name: str) -> None:
    own = [{**IN_USER_FILE, "name": name, "flags": [f"--{name}"]}]

    assert parameters_of(own, [], CommandSpec(effect="files")) == []


def test_the_store_is_described_in_the_instructions_and_not_in_each_schema() -> None:
    parameter = parameter_of(
        {**IN_USER_FILE, "name": "store", "flags": ["--store"], "type": "path"}
    )

    assert (parameter.name, parameter.type, parameter.is_shown) == ("store", "string", False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cwd", "Run in this directory."),
        ("session_id", "The same for all calls of one task."),
        ("lock_timeout", "Wait this long for locks: 30s."),
        ("timeout", "Stop after this long."),
        ("dry_run", "Only show what would change."),
    ],
)
def test_a_parameter_of_many_tools_has_a_short_text(name: str, text: str) -> None:
    assert parameter_of({**VALUE, "name": name}).schema["description"] == text


def test_a_schema_has_the_limits_the_default_and_the_choices_of_the_option() -> None:
    described = {
        **VALUE,
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "default": 5,
        "choices": [1, 5, 9],
    }

    parameter = parameter_of(described)

    assert parameter.schema == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "default": 5,
        "enum": [1, 5, 9],
        "description": "The value. It is kept.",
    }


@pytest.mark.parametrize(
    ("described_type", "shown_type"),
    [
        ("integer", "integer"),
        ("number", "number"),
        ("boolean", "boolean"),
        ("string", "string"),
        # JSON Schema has no such types.
        ("path", "string"),
        ("duration", "string"),
    ],
)
def test_a_type_that_json_does_not_have_is_a_string(
    described_type: str,
    shown_type: str,
) -> None:
    parameter = parameter_of({**VALUE, "type": described_type})

    assert (parameter.type, parameter.schema["type"]) == (shown_type, shown_type)


def test_a_list_has_the_schema_of_its_values_inside() -> None:
    parameter = parameter_of({**VALUE, "repeatable": True})

    assert parameter.is_list
    assert parameter.schema == {
        "type": "array",
        "items": {"type": "string"},
        "description": "The value. It is kept.",
    }


def test_the_parameters_that_all_tools_take_have_short_texts_and_do_not_read_stdin() -> None:
    found = parameters(CommandSpec(effect="files", locks=("store",)))

    common = {name: found[name] for name in ("cwd", "session_id", "lock_timeout", "timeout")}
    assert not any(parameter.reads_stdin for parameter in common.values())
    assert all(len(parameter.schema["description"]) <= 40 for parameter in common.values())
    assert common["timeout"].schema["default"] == "10m"


def test_a_description_has_no_sentence_about_stdin() -> None:
    found = parameters(CommandSpec(effect="files", stdin_arguments=("value",)))

    assert found["value"].schema["description"] == "The value. It is kept."
    assert found["value"].reads_stdin
    assert not found["global"].reads_stdin


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        (CommandSpec(effect="nothing"), {"cwd"}),
        (CommandSpec(effect="nothing", locks=("store",)), {"cwd", "lock_timeout"}),
        (CommandSpec(effect="files"), {"cwd", "session_id", "timeout"}),
    ],
)
def test_a_schema_names_only_the_common_parameters_that_matter(
    spec: CommandSpec,
    shown: set[str],
) -> None:
    found = parameters(spec)

    names = {name for name, parameter in found.items() if parameter.is_shown}
    assert names == shown | {"value", "global"}
    assert found.keys() >= {"cwd", "session_id", "lock_timeout", "timeout"}


def test_each_parameter_that_reads_stdin_is_declared() -> None:
    """An undeclared one would store an empty value if a tool gets `-`."""
    for name, command in find_commands(root_command()):
        about_stdin = set()
        for described in command.described:
            text = described.get("help", "")
            if "stdin" in text and "`-`" in text:
                about_stdin.add(described["name"])
        assert set(command.spec.stdin_arguments) == about_stdin, name
