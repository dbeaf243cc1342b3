"""Build the help pages of the tool, of its groups and of its commands."""

from typing import Any

from .contract.command_spec import CommandSpec, written_out
from .contract.help_page import (
    CommandSection,
    Item,
    ItemSection,
    Page,
    Section,
    TextSection,
    option_item,
)
from .global_options import described_options
from .help_topics import TOPICS
from .program import DOCUMENTATION, PROGRAM

Described = list[dict[str, Any]]
"""What the manifest says about parameters."""


def usage_line(command_path: str, described: Described, *, is_group: bool) -> str:
    """Return the usage of a command, such as `tool config get [OPTIONS] KEY`."""
    words = [command_path, "[OPTIONS]"]
    for argument in described:
        if "flags" in argument:
            continue
        metavar: str = argument["metavar"]
        if argument["required"] or metavar.startswith("["):
            words.append(metavar)
        else:
            words.append(f"[{metavar}]")
    if is_group:
        words.append("COMMAND [ARGS]...")
    return " ".join(words)


def tool_page(about: str, described: Described, commands: list[ItemSection]) -> Page:
    """Return the page of the whole tool. `commands` has a section for each part."""
    options = [option_item(option) for option in (*described_options(), *described)]
    footer = [
        f"For help on a command or a topic, run `{PROGRAM} help NAME`.",
        f"Help topics: {', '.join(TOPICS)}.",
    ]
    if DOCUMENTATION:
        footer.append(f"Documentation: {DOCUMENTATION}")
    return Page(
        usage=usage_line(PROGRAM, described, is_group=True),
        about=about,
        sections=[*commands, ItemSection("Global options, before or after the command", options)],
        footer=tuple(footer),
    )


def group_page(command_path: str, about: str, commands: ItemSection) -> Page:
    """Return the page of a group of commands."""
    return Page(
        usage=usage_line(command_path, [], is_group=True),
        about=about,
        sections=[commands, _global_options()],
    )


def command_page(command_path: str, about: str, described: Described, spec: CommandSpec) -> Page:
    """Return the page of a command."""
    arguments = [option_item(param) for param in described if "flags" not in param]
    options = [option_item(param) for param in described if "flags" in param]
    examples = [written_out(example) for example in spec.examples]
    return Page(
        usage=usage_line(command_path, described, is_group=False),
        about="\n\n".join([about, *_history(command_path, spec)]),
        sections=[
            ItemSection("Arguments", arguments),
            ItemSection("Options", options),
            CommandSection("Examples", examples),
            _global_options(),
        ],
    )


def command_item(name: str, about: str, spec: CommandSpec | None) -> Item:
    """Return the row for a command in the list of its group. A group has no spec."""
    summary = about.partition("\n")[0]
    if spec is not None and spec.deprecated:
        return Item(name, summary, note="[deprecated]")
    return Item(name, summary)


def _global_options() -> Section:
    """Return the section that only names the global options. Otherwise they would hide the rest."""
    names = ", ".join(option["flags"][0] for option in described_options())
    return TextSection(f"Global options, described in `{PROGRAM} --help`", names)


def _history(command_path: str, spec: CommandSpec) -> list[str]:
    """Return paragraphs about a command that is deprecated, or that had other names."""
    paragraphs = []
    if spec.deprecated:
        paragraphs.append(f"Deprecated. {spec.deprecated}")
    if spec.former_names:
        group = command_path.rpartition(" ")[0]
        names = " and ".join(f"`{group} {name}`" for name in spec.former_names)
        paragraphs.append(f"Formerly {names}. Old names still work, but cause a warning.")
    return paragraphs
