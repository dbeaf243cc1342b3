"""The command tree as data, for programs that call this one: an index, or whole descriptions."""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ..command_folder import CommandFolder, first_line
from ..context import AT_ONCE, PATIENT_SECONDS, Context
from ..contract.command_spec import Changes, CommandSpec, written_out
from ..contract.duration import say_duration
from ..contract.errors import CommandNotFound, category, did_you_mean
from ..contract.manifest import describe_errors, envelope_schema, schema_of
from ..contract.table import Line, heads
from ..global_options import described_options
from ..pages import AfterOption, LimitOption, page_of
from ..program import PACKAGE, PROGRAM, variable
from ..settings.known import all_known, find_known

_EXAMPLES = ("manifest", "manifest config set", "manifest --skill", "manifest --schema", "manifest --all")
spec = CommandSpec(effect="nothing", errors=(CommandNotFound,), examples=_EXAMPLES)

_ENVIRONMENT = {
    variable("SESSION_ID"): "As --session-id.",
    variable("TIMEOUT"): "As --timeout.",
    variable("TRACE_ID"): "Given back in meta.trace_id.",
    variable("CONFIG_DIR"): "Where your own settings lie.",
    variable("STATE_DIR"): "Where the store and the locks of outputs lie outside a workspace.",
    variable("CEILING_DIRECTORIES"): "Do not search these directories, or any above them, for a workspace.",
    "TMPDIR": "Where sessions lie.",
    "CI": "Set: answers are JSON also at a terminal.",
    "NO_COLOR": "Set: no colour.",
    "FORCE_COLOR": "Set: colour also in a pipe.",
}


class Entry(NamedTuple):
    command: str
    summary: str
    effect: Changes


class Index(NamedTuple):
    commands: list[Entry]
    next: str

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
    settings: dict[str, dict[str, Any]] | None = None
    """A flag wins over the environment, that over the workspace's file, that over yours, that over the default."""
    environment: dict[str, str] | None = None
    """The variables that count besides those of the settings."""

    def lines(self) -> list[str]:
        return json.dumps({name: value for name, value in self._asdict().items() if value}, indent=2).split("\n")


class Skill(NamedTuple):
    """How to call the tool, in words for an agent."""

    value: str

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
    }


def _with_variable(param: dict[str, Any]) -> dict[str, Any]:
    """An option of the name of a setting can be given by a variable."""
    name = param["name"]
    has_variable = "flags" in param and (variable(name) in _ENVIRONMENT or find_known(name))
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
        environment=_ENVIRONMENT,
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
    context: Context = ctx.obj
    context.size.is_full |= every
    folder = ctx.find_root().command
    assert isinstance(folder, CommandFolder)
    known = dict(find_commands(folder))
    if as_skill:
        context.options.setdefault("format", "raw")
        return skill(known)
    chosen = _chosen(words or [], known)
    if every or not (words or schema):
        chosen = dict(page_of(context, known.items(), limit, after, lambda item: item[0]))
    if not (words or every or schema):
        entries = [Entry(name, first_line(one.help), one.spec.effect) for name, one in chosen.items()]
        return Index(entries, f"`{PROGRAM} manifest COMMAND...` describes these; --schema what all answers share.")
    shared = _shared(known) if every or schema else Description()
    return shared._replace(commands=[describe(name, one) for name, one in chosen.items()] or None)
