"""The command tree as data, for programs that call this one: an index, or whole descriptions."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import typer

from ..command_folder import CommandFolder, first_line
from ..context import AT_ONCE, PATIENT_SECONDS
from ..contract.answer import Format
from ..contract.command_spec import Changes, CommandSpec, written_out
from ..contract.duration import say_duration
from ..contract.errors import CommandNotFound, category, did_you_mean
from ..contract.manifest import describe_errors, envelope_schema, schema_of
from ..contract.table import Line, heads
from ..environment import ENVIRONMENT
from ..global_options import described_options
from ..pages import AfterOption, LimitOption, page_of
from ..program import PACKAGE, PROGRAM, variable
from ..settings.known import all_known, find_known

_EXAMPLES = ("manifest", "manifest config set", "manifest --skill", "manifest --schema", "manifest --all")
spec = CommandSpec(effect="nothing", errors=(CommandNotFound,), examples=_EXAMPLES)


class Entry(NamedTuple):
    command: str
    summary: str
    effect: Changes


class Index(NamedTuple):
    commands: list[Entry]
    next: str
    next_cursor: str | None = None

    def lines(self) -> list[Line]:
        return [heads("command", "effect", "what it does"), *((one[0], one[2], one[1]) for one in self.commands)]


class Description(NamedTuple):
    """Of commands, and of what all commands share: each only where it was asked for."""

    commands: list[dict[str, Any]] | None = None
    options: list[dict[str, Any]] | None = None
    """What every command takes, before or after its name."""
    answer: dict[str, Any] | None = None
    """The schema of the envelope, with `meta` and `error`; that of `data` is with each command."""
    exit_statuses: dict[str, str] | None = None
    settings: dict[str, dict[str, str]] | None = None
    """A flag wins over the environment, that over the workspace's file, that over yours, that over the default."""
    environment: dict[str, str] | None = None
    """The variables that count besides those of the settings."""
    next_cursor: str | None = None

    def lines(self) -> list[str]:
        return json.dumps({name: value for name, value in self._asdict().items() if value}, indent=2).split("\n")


@dataclass(frozen=True)
class Skill:
    """How to call the tool, in words for an agent."""

    value: str
    default_format: ClassVar[Format] = "raw"

    def lines(self) -> list[str]:
        return self.value.splitlines()


def skill(known: dict[str, Any]) -> Skill:
    """The text of the kit for this program, and a list of its commands."""
    about = first_line(import_module(PACKAGE).__doc__)
    text = (Path(__file__).parents[1] / "skill.md").read_text().replace("PROGRAM", PROGRAM).replace("ABOUT", about)
    rows = [f"| `{name}` | {one.spec.effect} | {first_line(one.help)} |" for name, one in known.items()]
    return Skill("\n".join([f"{text}| command | changes | what it does |", "| --- | --- | --- |", *rows]))


def find_commands(folder: CommandFolder, above: str = "") -> Iterator[tuple[str, Any]]:
    """Every command below a folder, in the order of their names."""
    for name in folder.commands:
        command = folder.get_command(None, name)
        if isinstance(command, CommandFolder):
            yield from find_commands(command, f"{above}{name} ")
        else:
            yield f"{above}{name}", command


def describe(name: str, command: Any) -> dict[str, Any]:
    """All that a caller has to know of one command, and nothing else."""
    spec: CommandSpec = command.spec
    summary, _, more = (command.help or "").partition("\n")
    described = [_with_variable(param) for param in command.described]
    waits = {lock: AT_ONCE if lock in spec.at_once else PATIENT_SECONDS for lock in spec.locks}
    return {
        "command": name,
        "usage": command.usage(f"{PROGRAM} {name}"),
        "summary": summary,
        "help": " ".join(more.split()),
        "effect": spec.effect,
        "reads": list(spec.reads),
        "destroys": spec.destroys,
        "idempotent": spec.idempotent,
        "locks": [{"lock": lock, "waits": say_duration(seconds)} for lock, seconds in waits.items()],
        "arguments": [param for param in described if "flags" not in param],
        "options": [param for param in described if "flags" in param],
        "data": schema_of(command.hints.get("return")),
        "errors": describe_errors(spec),
        "exit_statuses": _statuses(spec),
        "before": [written_out(call) for call in spec.before],
        "examples": [written_out(example) for example in spec.examples],
        **_history(spec),
    }


def _history(spec: CommandSpec) -> dict[str, Any]:
    """Return the marks of a command that is deprecated, or that had other names."""
    marks: dict[str, Any] = {}
    if spec.deprecated:
        marks["deprecated"] = spec.deprecated
    if spec.former_names:
        marks["former_names"] = list(spec.former_names)
    return marks


def _with_variable(param: dict[str, Any]) -> dict[str, Any]:
    """An option of the name of a setting can be given by a variable."""
    name = param["name"]
    has_variable = "flags" in param and (variable(name) in ENVIRONMENT or find_known(name))
    return {**param, "variable": variable(name)} if has_variable else param


def _chosen(words: list[str], known: dict[str, Any]) -> dict[str, Any]:
    """One command or group, or several: `config.set`, as `meta.command` has it, is one word."""
    found: dict[str, Any] = {}
    joined = " ".join(words)
    for word in [joined] if _within(joined, known) else words:
        some = _within(word.replace(".", " "), known)
        if not some:
            raise CommandNotFound(command=word, suggestion=did_you_mean(joined, list(known)))
        found |= some
    return found


def _within(group: str, known: dict[str, Any]) -> dict[str, Any]:
    return {name: command for name, command in known.items() if f"{name} ".startswith(f"{group} ")}


def _statuses(*some: CommandSpec) -> dict[str, str]:
    return {str(status): category(status) for status in sorted({n for spec in some for n in spec.exit_statuses()})}


def _shared(commands: dict[str, Any]) -> Description:
    """What is the same for all commands."""
    return Description(
        exit_statuses=_statuses(*(one.spec for one in commands.values())),
        options=[_with_variable(option) for option in described_options()],
        answer=envelope_schema({"type": ["object", "array"]}),
        settings={name: {"environment": variable(name), **one} for name, one in all_known().items()},
        environment=ENVIRONMENT,
    )


def command(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND...]", help="Describe these, whole.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Describe all commands, and what they share.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Describe what the answers of all commands share.")] = False,
    as_skill: Annotated[bool, typer.Option("--skill", help="Print what an agent should know, as a SKILL.md.")] = False,
    limit: LimitOption = 1000,
    after: AfterOption = None,
) -> Index | Description | Skill:
    """Describe the commands as JSON, for programs.

    An index; or of the commands that are named arguments, options, locks, errors, examples and the schema of the data.
    With --schema the options that every command takes, and the schema of the envelope, of `meta` and of `error`.
    """
    folder = ctx.find_root().command
    assert isinstance(folder, CommandFolder)
    known = dict(find_commands(folder))
    if as_skill:
        return skill(known)
    chosen = _chosen(words or [], known)
    next_cursor = None
    if every or not (words or schema):
        page = page_of(known.items(), limit, after, lambda item: item[0])
        chosen, next_cursor = dict(page.rows), page.next_cursor
    if not (words or every or schema):
        entries = [Entry(name, first_line(one.help), one.spec.effect) for name, one in chosen.items()]
        hint = f"`{PROGRAM} manifest COMMAND...` describes these; --schema what all answers share."
        return Index(entries, hint, next_cursor)
    shared = _shared(known) if every or schema else Description()
    return shared._replace(
        commands=[describe(name, one) for name, one in chosen.items()] or None, next_cursor=next_cursor
    )
