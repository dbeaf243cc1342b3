"""The page of one command."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...contract.command_spec import CommandSpec
from ...contract.help_page import option_item
from ...effects import all_effects
from ...program import PROGRAM, WORKSPACE_FILE
from .markdown import bullets, code_block, folded_json, page, table

Described = dict[str, Any]
"""A command, an option or an argument, as the manifest describes it."""


_ABOUT_WORKSPACES = (
    f"A *workspace* is a directory that contains the file `{WORKSPACE_FILE}`. "
    "The directories inside it belong to the workspace, too."
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command, as the code and the manifest describe it."""

    name: str
    """The name without the program, for example `config set`."""
    part: str
    spec: CommandSpec
    described: Described

    @property
    def title(self) -> str:
        """Return the name as a user types it."""
        return f"{PROGRAM} {self.name}"

    @property
    def link(self) -> str:
        """Return a link to the page of the command, from another page of the reference."""
        return f"[{self.title}]({page_name(self.name)})"


def page_name(command: str) -> str:
    """Return the file name of a command's page: `config-set.md` for `config set`."""
    return f"{command.replace(' ', '-')}.md"


def command_page(command: Command) -> str:
    """Return the content of the page."""
    return page(command.title, _blocks(command))


def _blocks(command: Command) -> Iterator[str]:
    described = command.described
    yield f"{described['summary']} {described['help']}".strip()
    yield code_block("text", described["usage"])
    if _mentions_workspaces(described):
        yield _ABOUT_WORKSPACES

    yield "## Examples"
    yield code_block("sh", "\n".join([*described["before"], *described["examples"]]))

    if described["arguments"]:
        yield "## Arguments"
        for argument in described["arguments"]:
            yield from param_blocks(argument)

    yield "## Options"
    for option in described["options"]:
        yield from param_blocks(option)
    yield "You can also use [the options of every command](options.md)."

    yield "## What the command does"
    yield bullets(_facts(command))

    members = described["data"].get("properties", {})
    if members:
        yield "## Output"
        yield _about_output(members)
        yield folded_json("JSON schema of <code>data</code>", described["data"])

    yield "## Errors"
    yield "Besides [the errors of every command](errors.md), this command can fail with these:"
    yield _error_table(command)


def _mentions_workspaces(described: Described) -> bool:
    """Return whether a reader of the page has to know what a workspace is."""
    texts = [described["summary"], described["help"]]
    texts += [param["help"] for param in described["arguments"] + described["options"]]
    texts += described["errors"]
    return any("workspace" in text.lower() for text in texts)


def param_blocks(param: Described) -> Iterator[str]:
    """Yield the heading of an option or an argument, and a paragraph about it."""
    item = option_item({"required": False, **param})
    yield f"### `{item.name}`"
    sentences = [item.meaning, *_remarks(param)]
    yield " ".join(sentence for sentence in sentences if sentence)


def _remarks(param: Described) -> Iterator[str]:
    """Yield what to know about the values of an option or an argument, as sentences."""
    if param.get("required") and "flags" in param:
        yield "Required."
    if "shown_default" in param:
        yield f"Default: {param['shown_default']}."
    elif "default" in param:
        yield f"Default: `{param['default']}`."
    minimum = param.get("minimum")
    maximum = param.get("maximum")
    if minimum is not None and maximum is not None:
        yield f"The value must be from {minimum} to {maximum}."
    elif minimum is not None:
        yield f"The value must be at least {minimum}."
    if "variable" in param:
        yield f"Variable: `{param['variable']}`."
    for flag in param.get("deprecated_flags", ()):
        yield f"The former name `{flag}` is deprecated."


def _facts(command: Command) -> Iterator[str]:
    """Yield what to know about a command besides its options."""
    described = command.described
    changes = all_effects()[described["effect"]]["help"]
    yield f"**Changes:** {changes.rstrip('.')}"
    if described["reads"]:
        yield f"**Depends on:** {', '.join(described['reads'])}"
    if described["destroys"]:
        yield f"**Cannot be undone:** {described['destroys'].rstrip('.')}"
    for lock in described["locks"]:
        yield f"**Lock:** `{lock['lock']}`. The command {_wait(lock['waits'])}."
    if described["idempotent"]:
        yield "**Idempotent:** a second run changes nothing more"
    else:
        yield "**Not idempotent:** every run makes another change"
    if described["runs_what_it_is_given"]:
        yield "**Runs a program** that you name"


def _wait(duration: str) -> str:
    if duration in ("0", "0s", "0ms"):
        return "fails right away if another process holds it"
    return f"waits up to {duration} for it"


def _about_output(members: dict[str, Any]) -> str:
    names = ", ".join(f"`{name}`" for name in members)
    return f"The member `data` of [the JSON output](output.md) has these members: {names}."


def _error_table(command: Command) -> str:
    rows = []
    for code, error in sorted(command.described["errors"].items()):
        link = f"[`{code}`](errors.md#{code.lower()})"
        rows.append([link, str(int(error["exit_status"])), error["meaning"]])
    return table("error", "exit code", "meaning", rows=rows)
