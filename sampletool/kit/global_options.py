"""The options that every command takes, before or after its name; and --dry-run, of all that change something.

The former are parameters of every command and group, so that one parser sees them all: lifting them out of argv first
would misread `--message --json` and everything behind `--`. The innermost one given wins.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Annotated, Any

import typer
from typer.core import TyperOption

from .contract.duration import parse_duration, parse_limit
from .contract.render import FORMATS
from .program import __version__
from .settings.known import read_as


class HelpAsked(Exception):
    """Not an answer: text for a person."""


@cache
def global_options() -> list[TyperOption]:
    return [
        _flag("--json", keep=_keep_json, help="Answer in one line of JSON."),
        _value(
            "--format",
            metavar="|".join(FORMATS),
            check=partial(read_as, "format"),
            help="How to answer; text is for a terminal.",
        ),
        _flag("--quiet", "-q", help="Print nothing on stderr."),
        _flag("--verbose", "-v", help="Print on stderr what happens to locks."),
        _value("--session-id", metavar="ID", help="Keep outputs together with calls of the same id."),
        _value("--cwd", "-C", metavar="DIR", help="Run as if started in this directory."),
        _value(
            "--lock-timeout",
            metavar="DURATION",
            check=parse_duration,
            help="How long to wait for a lock: 0, 500ms, 5s.",
        ),
        _value("--timeout", metavar="DURATION", check=parse_limit, help="Stop the call after this long: 30s, 5m."),
        _flag("--help", "-h", keep=_show_help, is_eager=True, help="Show this text."),
    ]


def version_option() -> TyperOption:
    """Of the whole tool only."""
    return _flag("--version", keep=_show_version, is_eager=True, help="Show the version.")


def _rehearse(ctx: typer.Context, is_asked: bool) -> bool:
    if is_asked and not ctx.resilient_parsing:
        ctx.obj.meta["dry_run"] = True
    return is_asked


JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", "-j", metavar="N", min=1, help="How many at once.  [default: one for each processor]"),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", callback=_rehearse, help="Say what would change; change nothing.")
]


def _keep(ctx: typer.Context, param: Any, value: Any) -> None:
    source = ctx.get_parameter_source(param.name)
    if source is not None and source.name != "DEFAULT":
        ctx.obj.options[param.name] = value


def _keep_json(ctx: typer.Context, _param: Any, value: Any) -> None:
    if value:
        ctx.obj.options["format"] = "json"


def _show_help(ctx: typer.Context, _param: Any, value: Any) -> None:
    if value and not ctx.resilient_parsing:
        raise HelpAsked(ctx.get_help())


def _show_version(_ctx: typer.Context, _param: Any, value: Any) -> None:
    if value:
        raise HelpAsked(__version__)


def _flag(*names: str, help: str, keep: Callable[..., None] = _keep, is_eager: bool = False) -> TyperOption:
    return TyperOption(
        param_decls=list(names), is_flag=True, expose_value=False, callback=keep, is_eager=is_eager, help=help
    )


def _value(*names: str, metavar: str, help: str, check: Callable[[str], object] = str) -> TyperOption:
    def checked(ctx: typer.Context, param: Any, value: Any) -> None:
        try:
            if value is not None:
                check(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        _keep(ctx, param, value)

    return TyperOption(param_decls=list(names), expose_value=False, callback=checked, metavar=metavar, help=help)
