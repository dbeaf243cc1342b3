"""Show why a setting has its value."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ...context import Context
from ...contract.command_spec import CommandSpec
from ...contract.errors import KeyNotFound
from ...contract.excerpt import excerpt, excerpt_text
from ...contract.response import UNTRUSTED
from ...settings.known import find_setting, full_help
from ...settings.precedence import SourceName
from ...settings.toml_key import show_key
from ._options import read_current_key
from ._showing import RevealOption, key_to_show, value_to_show
from .get import KeyArgument

spec = CommandSpec(
    effect="nothing",
    errors=(KeyNotFound,),
    reads=("settings",),
    examples=("config explain jobs",),
)


@dataclass(frozen=True)
class Candidate:
    """A source that gives the key a value. The first one wins."""

    source: SourceName
    where: str
    value: Annotated[Any, UNTRUSTED]
    """The value. Of one with more than 200 characters, this is the start of its text."""
    length: int | None
    """The number of characters of a value that is not shown whole."""
    wins: bool
    former_name: str | None
    """The former name of the setting, if the source uses this name."""

    def line(self) -> str:
        """Return the source with its value, and an arrow if it wins."""
        arrow = "->" if self.wins else "  "
        origin = self.where
        if self.former_name is not None:
            origin = f"{self.where}, as {self.former_name}"
        return f"{arrow} {self.source}: {excerpt_text(self.value, self.length)}  ({origin})"


@dataclass(frozen=True)
class Explanation:
    """The value of a key, and all its sources."""

    key: str
    value: Annotated[Any, UNTRUSTED]
    """The value, or the start of a long one."""
    length: int | None
    source: SourceName
    sources: list[Candidate]
    help: str | None
    deprecated: str | None
    """What to use instead of a deprecated setting."""

    def lines(self) -> list[str]:
        """Return the value, what the setting is for, and a line for each source."""
        lines = [f"{self.key} = {excerpt_text(self.value, self.length)}"]
        if self.help is not None:
            lines.append(self.help)
        if self.deprecated is not None:
            lines.append(f"Deprecated. {self.deprecated}")
        for candidate in self.sources:
            lines.append(candidate.line())
        return lines


def command(
    ctx: typer.Context,
    key: KeyArgument,
    reveal: RevealOption = False,
) -> Explanation:
    """Show where the value of a key comes from.

    The output lists every place that sets the key, such as a settings file or an environment
    variable, and marks the one that wins.

    Each value is shortened to 200 characters. `config get` shows the whole value.
    """
    context: Context = ctx.obj
    path = read_current_key(context, key)
    winner = context.settings.find(path)
    candidates = []
    for source in context.settings.sources(path):
        shown = excerpt(value_to_show(path, source.value, reveal=reveal))
        candidate = Candidate(
            source=source.name,
            where=source.where,
            value=shown.value,
            length=shown.length,
            wins=source == winner,
            former_name=source.former_name,
        )
        candidates.append(candidate)
    name = show_key(path)
    known = find_setting(name)
    return Explanation(
        key=key_to_show(path),
        value=candidates[0].value,
        length=candidates[0].length,
        source=winner.name,
        sources=candidates,
        help=full_help(known) if known is not None else None,
        deprecated=known.get("deprecated") if known is not None else None,
    )
