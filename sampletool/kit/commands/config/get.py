"""Show the value of one setting, and where it comes from."""

from typing import Annotated, Any, NamedTuple

import typer

from ...context import Context
from ...contract.command_spec import CommandSpec
from ...contract.errors import KeyNotFound
from ...contract.excerpt import excerpt, excerpt_text
from ...contract.response import UNTRUSTED
from ...global_options import MaxCharsOption, RawOption
from ...settings.precedence import SourceName
from ...settings.toml_key import show_key
from ._options import ReadUserFileOption, read_current_key, setting_keys, settings_of
from ._showing import RevealOption, value_to_show

spec = CommandSpec(
    effect="nothing",
    errors=(KeyNotFound,),
    reads=("settings",),
    before=("config set key1 val1",),
    examples=("config get key1", "config get key1 --raw"),
)

KeyArgument = Annotated[
    str,
    typer.Argument(
        metavar="KEY",
        help="Key to look up, for example jobs or build.target.",
        autocompletion=setting_keys,
    ),
]


class Setting(NamedTuple):
    """The value of one key."""

    key: str
    value: Annotated[Any, UNTRUSTED]
    source: SourceName
    version: str
    """The version of the file that `config set` would change. Pass it to --if-version."""
    length: int | None = None
    """The number of characters of a value that --max-chars has shortened."""

    @property
    def truncated(self) -> bool:
        """Whether the value is not shown whole."""
        return self.length is not None

    def lines(self) -> list[str]:
        """Return the value."""
        return [excerpt_text(self.value, self.length)]


def command(
    ctx: typer.Context,
    key: KeyArgument,
    in_user_file: ReadUserFileOption = False,
    reveal: RevealOption = False,
    raw: RawOption = False,
    max_chars: MaxCharsOption = None,
) -> Setting:
    """Show the value of a key.

    If a key is set in several places, the first of these wins: command-line option, environment
    variable, workspace settings, personal settings, default.
    """
    context: Context = ctx.obj
    settings = settings_of(context, in_user_file)
    path = read_current_key(context, key)
    source = settings.find(path)
    shown = excerpt(value_to_show(path, source.value, reveal=reveal), max_chars)
    return Setting(
        key=show_key(path),
        value=shown.value,
        source=source.name,
        version=settings.version,
        length=shown.length,
    )
