"""List every setting that has a value."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ...context import Context
from ...contract.command_spec import CommandSpec
from ...contract.errors import InvalidValues
from ...contract.excerpt import excerpt, excerpt_text
from ...contract.response import UNTRUSTED
from ...contract.table import Line, header_row
from ...pages import AfterOption, LimitOption, page_of
from ...settings.known import find_setting
from ...settings.precedence import Key, Settings, SourceName
from ._options import ReadUserFileOption, settings_of
from ._showing import RevealOption, key_to_show, value_to_show

spec = CommandSpec(
    effect="nothing",
    reads=("settings",),
    examples=("config list", "config list --show-origin"),
)


@dataclass(frozen=True)
class ListedSetting:
    """One key of the list, with the start of its value."""

    key: Annotated[str, UNTRUSTED]
    value: Annotated[Any, UNTRUSTED]
    """The value. Of one with more than 200 characters, this is the start of its text."""
    source: SourceName
    version: str
    """The version of the file that `config set` would change. Pass it to --if-version."""
    length: int | None
    """The number of characters of a value that is not shown whole."""
    origin: str | None
    """The file, the variable or the option that the value comes from."""


@dataclass(frozen=True)
class Listing:
    """One page of settings."""

    settings: list[ListedSetting]
    version: str
    next_cursor: str | None
    total: int | None = None

    @property
    def truncated(self) -> bool:
        """Whether a value is not shown whole."""
        return any(setting.length is not None for setting in self.settings)

    def lines(self) -> list[Line]:
        """Return a table. It has a column for the origins if they were requested."""
        if not self.settings:
            return ["No key has a value."]
        has_origins = self.settings[0].origin is not None
        titles = ["key", "value", "source"]
        if has_origins:
            titles.append("origin")
        rows = [header_row(*titles)]
        for setting in self.settings:
            cells = [setting.key, excerpt_text(setting.value, setting.length), setting.source]
            if setting.origin is not None:
                cells.append(setting.origin)
            rows.append(tuple(cells))
        return rows


def _list_setting(
    settings: Settings,
    key: Key,
    *,
    reveal: bool,
    show_origin: bool,
) -> ListedSetting:
    source = settings.find(key)
    shown = excerpt(value_to_show(key, source.value, reveal=reveal))
    return ListedSetting(
        key=key_to_show(key),
        value=shown.value,
        source=source.name,
        version=settings.version,
        length=shown.length,
        origin=source.where if show_origin else None,
    )


def _warn_of_invalid_values(context: Context, settings: Settings) -> None:
    """Warn of each setting of the tool that has an invalid value."""
    for name in settings.names():
        if find_setting(name) is None:
            continue
        try:
            settings.value(name)
        except InvalidValues as error:
            context.warn("INVALID_VALUE", error.message)


def command(
    ctx: typer.Context,
    in_user_file: ReadUserFileOption = False,
    show_origin: Annotated[
        bool,
        typer.Option(
            "--show-origin",
            help="Also show the file, variable or option that each value comes from.",
        ),
    ] = False,
    reveal: RevealOption = False,
    limit: LimitOption = 100,
    after: AfterOption = None,
) -> Listing:
    """List all settings and their values.

    Values longer than 200 characters are cut off. To see one of them in full, use `config get`. If
    a built-in setting has an invalid value, the output includes a warning.
    """
    context: Context = ctx.obj
    settings = settings_of(context, in_user_file)
    _warn_of_invalid_values(context, settings)
    listed = []
    keys = settings.keys()
    for key in keys:
        setting = _list_setting(settings, key, reveal=reveal, show_origin=show_origin)
        listed.append(setting)
    page = page_of(listed, limit, after, lambda setting: setting.key)
    return Listing(
        settings=page.rows,
        version=settings.version,
        next_cursor=page.next_cursor,
        total=page.total,
    )
