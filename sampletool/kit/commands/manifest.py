"""Describe the commands as JSON, for programs that run them.

Each fact is stated once. The index names every command. The description of a command has what is
special about it. What all commands share (options, error codes, the form of a response) is in
`manifest --schema`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from ..command_folder import CommandFolder, first_line
from ..context import NO_WAIT_SECONDS, PATIENT_WAIT_SECONDS
from ..contract.command_spec import CommandSpec, errors_of_every_command, written_out
from ..contract.duration import say_duration
from ..contract.errors import CommandNotFound, category, did_you_mean
from ..contract.manifest import describe_errors, envelope_schema, schema_of
from ..contract.response import Format
from ..contract.table import Line, header_row
from ..effects import all_effects, danger_level
from ..environment import ENVIRONMENT
from ..global_options import described_options
from ..pages import AfterOption, LimitOption, Page, first_page, page_of
from ..program import PACKAGE, PROGRAM, __version__, env_variable
from ..settings.known import all_settings, find_setting

spec = CommandSpec(
    effect="nothing",
    errors=(CommandNotFound,),
    examples=(
        "manifest",
        "manifest config set",
        "manifest --schema",
        "manifest --tree",
        "manifest --all --limit 5",
        "manifest --skill",
    ),
)

Command = Any
"""A command that Typer has created, with the additions of command_folder.FileCommand."""
Commands = dict[str, Command]
"""Commands by their names, such as `config set`."""
Described = dict[str, Any]

_REQUIRED_PYTHON = ">=3.11"
"""The versions of Python that work. On an older one, the tool refuses to start (see start.py)."""

_OUTLINE = ("command", "summary", "effect", "danger_level")
"""The members of a command in the tree, in addition to its arguments and options."""


@dataclass(frozen=True)
class Entry:
    """A command in the index."""

    command: str
    summary: str
    effect: str


@dataclass(frozen=True)
class Index:
    """One page of the list of all commands."""

    commands: list[Entry]
    next: str
    """How to get more."""
    next_cursor: str | None
    total: int | None = None

    def lines(self) -> list[Line]:
        """Return a table with a row for each command."""
        lines: list[Line] = [header_row("command", "effect", "what it does")]
        for entry in self.commands:
            lines.append((entry.command, entry.effect, entry.summary))
        return lines


@dataclass(frozen=True)
class Description:
    """What was requested: descriptions of commands, what all commands share, or both."""

    commands: list[Described] | None = None
    options: list[Described] | None = None
    """The options of every command. They can be before or after its name."""
    answer: dict[str, Any] | None = None
    """The schema of a response. The schema of its `data` is with each command."""
    errors: dict[str, Any] | None = None
    """The errors that every command can end with, in addition to its own."""
    exit_statuses: dict[str, str] | None = None
    effects: dict[str, dict[str, Any]] | None = None
    """The words that say what a command changes. Every word has a `help`."""
    settings: dict[str, dict[str, Any]] | None = None
    """The settings of the tool, with the variable and the default of each."""
    environment: dict[str, str] | None = None
    """The environment variables that the tool reads, besides those of the settings."""
    requires: dict[str, str] | None = None
    """What has to be installed, with the versions that work."""
    next_cursor: str | None = None
    total: int | None = None

    def lines(self) -> list[str]:
        """Return the JSON, indented."""
        members = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value:
                members[field.name] = value
        return json.dumps(members, indent=2).split("\n")


@dataclass(frozen=True)
class Skill:
    """A text that tells an agent how to run the tool."""

    value: str
    default_format: ClassVar[Format] = "raw"

    def lines(self) -> list[str]:
        """Return the text."""
        return self.value.splitlines()


def find_commands(folder: CommandFolder, prefix: str = "") -> Iterator[tuple[str, Command]]:
    """Yield the name of each command in a folder and its sub-folders, and the command."""
    for name in folder.commands:
        command = folder.get_command(None, name)
        if isinstance(command, CommandFolder):
            yield from find_commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def describe(name: str, command: Command) -> Described:
    """Return what a caller has to know about one command, except for what all commands share."""
    spec: CommandSpec = command.spec
    summary, _, details = (command.help or "").partition("\n")
    arguments = []
    options = []
    for param in command.described:
        described_param = _without_usual_facts(_with_variable(param))
        if "flags" in param:
            options.append(described_param)
        else:
            arguments.append(described_param)
    described: Described = {
        "command": name,
        "usage": command.usage(f"{PROGRAM} {name}"),
        "summary": summary,
        "help": " ".join(details.split()),
        "effect": spec.effect,
        "danger_level": danger_level(spec),
        "reads": list(spec.reads),
        "required_scopes": spec.required_scopes(),
        "destroys": spec.destroys,
        "idempotent": spec.idempotent,
        "runs_what_it_is_given": spec.runs_what_it_is_given,
        "locks": _describe_locks(spec),
        "arguments": arguments,
        "options": options,
        "data": schema_of(command.hints.get("return")),
        "errors": describe_errors(spec.own_errors()),
        "before": [written_out(example) for example in spec.before],
        "examples": [written_out(example) for example in spec.examples],
    }
    if spec.needs_terminal:
        described["needs_terminal"] = True
    if spec.deprecated:
        described["deprecated"] = spec.deprecated
    if spec.former_names:
        described["former_names"] = list(spec.former_names)
    return described


def _outline(name: str, command: Command) -> Described:
    """Return how to call one command: the members of its description that a call needs."""
    described = describe(name, command)
    outline = {member: described[member] for member in _OUTLINE}
    for kind in ("arguments", "options"):
        outline[kind] = [_without_details(param) for param in described[kind]]
    return outline


def _without_details(param: Described) -> Described:
    """Return a parameter without the members that only a help page or a shell needs."""
    return {name: fact for name, fact in param.items() if name not in ("metavar", "completion")}


def _describe_locks(spec: CommandSpec) -> list[dict[str, str]]:
    """Return each lock of a command, and how long the command waits for it by default."""
    locks = []
    for lock in spec.locks:
        seconds = NO_WAIT_SECONDS if lock in spec.at_once else PATIENT_WAIT_SECONDS
        locks.append({"lock": lock, "waits": say_duration(seconds)})
    return locks


def _with_variable(param: Described) -> Described:
    """Return the parameter, with the environment variable that does the same as the option."""
    if "flags" not in param:
        return param
    name = param["name"]
    if env_variable(name) in ENVIRONMENT or find_setting(name) is not None:
        return {**param, "variable": env_variable(name)}
    return param


def _without_usual_facts(param: Described) -> Described:
    """Return the parameter without `required` and `repeatable` where they are false."""
    shortened = dict(param)
    for name in ("required", "repeatable"):
        if not shortened[name]:
            del shortened[name]
    return shortened


def describe_shared(commands: Commands) -> Description:
    """Return what all commands share."""
    settings = {}
    for name, known in all_settings().items():
        settings[name] = {"environment": env_variable(name), **known}
    return Description(
        options=[_without_usual_facts(_with_variable(option)) for option in described_options()],
        answer=envelope_schema({"type": ["object", "array"]}),
        errors=describe_errors(errors_of_every_command()),
        exit_statuses=_exit_statuses_of(commands),
        effects={name: dict(effect) for name, effect in all_effects().items()},
        settings=settings,
        environment=ENVIRONMENT,
        requires={"python": _REQUIRED_PYTHON},
    )


def _exit_statuses_of(commands: Commands) -> dict[str, str]:
    """Return the name of each exit code that one of the commands can end with."""
    codes = set()
    for command in commands.values():
        codes.update(command.spec.exit_statuses())
    return {str(code): category(code) for code in sorted(codes)}


def _choose(arguments: list[str], known: Commands) -> Commands:
    """Return the commands that the arguments name. The name of a group stands for its commands.

    The arguments are the words of one name, as in `manifest config set`, or several names. In
    these, dots stand for spaces, as in `meta.command`: `manifest config.set lock.list`.

    Raise CommandNotFound.
    """
    one_name = " ".join(arguments)
    commands = _within(one_name, known)
    if commands:
        return commands
    for argument in arguments:
        found = _within(argument.replace(".", " "), known)
        if not found:
            raise CommandNotFound(
                command=argument,
                suggestion=did_you_mean(one_name, list(known)),
            )
        commands |= found
    return commands


def _choose_or_all(words: list[str] | None, known: Commands, *, every: bool) -> Commands:
    """Return the commands that the words name, or all commands. Raise CommandNotFound."""
    if words and not every:
        return _choose(words, known)
    return known


def _within(group: str, known: Commands) -> Commands:
    """Return the command of this name, or the commands of the group of this name."""
    found = {}
    for name, command in known.items():
        if f"{name} ".startswith(f"{group} "):
            found[name] = command
    return found


def _index_page(known: Commands, limit: int, after: str | None) -> Index:
    entries = []
    for name, command in known.items():
        entry = Entry(
            command=name,
            summary=first_line(command.help),
            effect=command.spec.effect,
        )
        entries.append(entry)
    page = page_of(entries, limit, after, lambda entry: entry.command)
    return Index(
        commands=page.rows,
        next=(
            f"For details, run `{PROGRAM} manifest COMMAND...`, or pass --tree, --all or --schema."
        ),
        next_cursor=page.next_cursor,
        total=page.total,
    )


def _description_page(
    chosen: Commands,
    limit: int,
    last_name: str | None,
    describe_one: Callable[[str, Command], Described],
) -> Page[Described]:
    """Return a page of descriptions. It ends early if it would become too long."""
    descriptions = []
    for name in sorted(chosen):
        if last_name is None or name > last_name:
            descriptions.append(describe_one(name, chosen[name]))
    page = first_page(descriptions, limit, lambda described: described["command"])
    return replace(page, total=len(chosen))


def _skill(known: Mapping[str, Command]) -> Skill:
    """Return the kit's text for agents, with the names of this program and its commands."""
    about = first_line(import_module(PACKAGE).__doc__)
    template = (Path(__file__).parents[1] / "skill.md").read_text()
    text = template.replace("PROGRAM", PROGRAM).replace("ABOUT", about)
    text = text.replace("VERSION", __version__).replace("OTHER_STDOUT", _other_stdout(known))
    lines = ["| command | changes | what it does |", "| --- | --- | --- |"]
    for name, command in known.items():
        lines.append(f"| `{name}` | {command.spec.effect} | {first_line(command.help)} |")
    return Skill(text + "\n".join(lines))


def _other_stdout(known: Mapping[str, Command]) -> str:
    """Return a sentence about the commands that use stdout for something else, or ""."""
    names = [f"`{name}`" for name, command in known.items() if command.spec.takes_stdout]
    if not names:
        return ""
    return (
        f"\n  Exceptions: {', '.join(names)}. Once such a command has written something else to "
        "stdout,\n  its response is the last line of stderr."
    )


def command(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND...]",
            help="Commands or groups to describe, for example `config set`.",
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Describe every command in full."),
    ] = False,
    tree: Annotated[
        bool,
        typer.Option("--tree", help="List every command with its arguments and options."),
    ] = False,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Describe what all commands have in common, such as global options.",
        ),
    ] = False,
    as_skill: Annotated[
        bool,
        typer.Option(
            "--skill",
            help="Print a SKILL.md file that teaches AI agents to use these commands.",
        ),
    ] = False,
    limit: LimitOption = 100,
    after: AfterOption = None,
) -> Index | Description | Skill:
    """Describe the commands in JSON, for scripts and AI agents.

    Without arguments, this lists the names of all commands. Pass the name of a command to get its
    arguments, options, errors and examples, and the schema of its output. Pass --tree to get the
    arguments and options of all commands at once. Pass --schema to get what all commands have in
    common, such as the global options, error codes and settings.

    A response has at most 64 KiB, so --all takes several pages, whatever the --limit. If
    `meta.next_cursor` is present, pass it to --after to get the next page.
    """
    folder = ctx.find_root().command
    assert isinstance(folder, CommandFolder)
    known = dict(find_commands(folder))
    if as_skill:
        return _skill(known)
    describes_commands = words or every or tree
    if not (describes_commands or schema):
        return _index_page(known, limit, after)

    description = Description()
    if schema:
        description = describe_shared(known)
    if describes_commands:
        chosen = _choose_or_all(words, known, every=every)
        describe_one = _outline if tree else describe
        page = _description_page(chosen, limit, after, describe_one)
        description = replace(
            description,
            commands=page.rows,
            next_cursor=page.next_cursor,
            total=page.total,
        )
    return description
