"""A Typer group whose commands are the files of a folder, imported on demand.

The file name is the command name and a sub-folder is a group: adding a command is adding a file. A file provides
`promise` and `command`. All mistakes of a command line are collected, on every level, and told in one answer.
"""

import os
import re
import shlex
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from .contract.errors import CommandIncomplete, Mistake, UsageMistakes, did_you_mean
from .global_options import HelpAsked, global_options
from .program import PROGRAM

_MISTAKES = f"{__name__}.mistakes"
_HELP_WIDTH = 110
_NEGATIVE_NUMBER = re.compile(r"-[0-9.]+")


class _Collecting:
    """A command that takes the options of `global_options`, and goes on after a mistake to find the others."""

    params: Any

    def get_params(self, ctx: Any) -> Any:
        return [*self.params, *global_options()]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]  # type: ignore[misc]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """What every command takes is listed once, by the whole tool; else nobody would find a command's own."""
        is_root = ctx.parent is None
        sections = {
            "Arguments": [param for param in self.params if param.param_type_name == "argument"],
            "Options": [param for param in self.params if param.param_type_name == "option"],
            "Every command takes, before or after its name": global_options() if is_root else [],
        }
        for title, params in sections.items():
            if params:
                with formatter.section(title):
                    formatter.write_dl([param.get_help_record(ctx) for param in params])
        if not is_root:
            names = ", ".join(option.opts[0] for option in global_options())
            formatter.write_paragraph()
            formatter.write_text(f"Every command also takes {names}: see `{ctx.find_root().info_name} --help`.")
        if isinstance(self, TyperGroup):
            self.format_commands(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing:
            ctx.obj.command = ".".join(ctx.command_path.split()[1:])
        mistakes: list[Mistake] = ctx.meta.setdefault(_MISTAKES, [])
        usage = " ".join([ctx.command_path, *self.collect_usage_pieces(ctx)])  # now: reading on changes the parameters
        left = list(args)
        while True:
            try:
                rest: list[str] = super().parse_args(ctx, list(left))  # type: ignore[misc]
                break
            except typer.TyperException as error:
                mistake = _understand(error, self.get_params(ctx), ctx.command_path, left)
                if mistake.code != "EXTRA_ARGUMENT" or not any(m.code == "UNKNOWN_OPTION" for m in mistakes):
                    mistakes.append(mistake)
                without = _leave_out(error, left, mistake.param)
                if without is None:
                    rest = []
                    break
                left = without
        if mistakes and not isinstance(self, TyperGroup):
            is_about_arguments = any(mistake.code in ("MISSING", "EXTRA_ARGUMENT") for mistake in mistakes)
            raise UsageMistakes(mistakes, ctx.command_path, usage if is_about_arguments else "")
        return rest


class FileCommand(_Collecting, TyperCommand):
    """One command file."""

    spec: Any

    def invoke(self, ctx: Any) -> Any:
        ctx.obj.begin()
        return super().invoke(ctx)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Examples"):
            for example in self.spec.examples:
                formatter.write(f"  {PROGRAM} {example}\n")


class CommandFolder(_Collecting, TyperGroup):
    """One folder of command files."""

    def __init__(self, packages: list[str], name: str, extra_params: list[Any] | None = None) -> None:
        """The help of the first package is that of the group."""
        modules = [import_module(package) for package in packages]
        found = [
            (name, package) for package, module in zip(packages, modules, strict=True) for name in _names_in(module)
        ]
        self._package_of = dict(sorted(found))
        names: Any = dict.fromkeys(self._package_of)
        super().__init__(
            name=name,
            help=modules[0].__doc__,
            params=extra_params or [],
            add_help_option=False,
            rich_markup_mode=None,
            context_settings={"max_content_width": _HELP_WIDTH},
            commands=names,
        )

    def get_command(self, ctx: Any, name: str) -> Any:
        if name in self.commands and self.commands[name] is None:
            self.commands[name] = load(f"{self._package_of[name]}.{name.replace('-', '_')}", name)
        return self.commands.get(name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        command = self.get_command(ctx, args[0])
        if command is None and not ctx.resilient_parsing:
            self._fail(ctx, "UNKNOWN_COMMAND", f"No such command: {ctx.command_path} {args[0]}", args[0])
        return args[0] if command else None, command, args[1:]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.TyperException as error:
            if not hasattr(error, "ctx") or error.ctx is not ctx:
                raise
            if ctx.parent is None and not ctx.meta[_MISTAKES]:
                raise HelpAsked(ctx.get_help()) from None
            self._fail(ctx, "MISSING", f"A command is missing after `{ctx.command_path}`")

    def _fail(self, ctx: Any, code: str, message: str, typed: str | None = None) -> NoReturn:
        known = list(self.commands)
        all_of_them = f"The commands are {', '.join(known)}; see `{ctx.command_path} --help`."
        suggestion = did_you_mean(typed or "", known) or all_of_them
        mistake = Mistake("COMMAND", code, message, typed, suggestion)
        raise UsageMistakes([*ctx.meta[_MISTAKES], mistake], ctx.command_path)


def load(module_name: str, name: str) -> FileCommand | CommandFolder:
    module = import_module(module_name)
    if hasattr(module, "__path__"):
        return CommandFolder([module_name], name)
    missing = [part for part in ("spec", "command") if not hasattr(module, part)]
    if missing:
        raise CommandIncomplete(module_name.replace(".", "/") + ".py", missing)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=FileCommand, add_help_option=False)(module.command)
    command = get_command(app)
    assert isinstance(command, FileCommand)
    command.spec = module.spec
    for param in command.params:
        param.metavar = param.metavar or _metavar(param)
    return command


def _metavar(param: Any) -> str:
    """What a person would write for a value, not the name of its type."""
    if choices := getattr(param.type, "choices", None):
        return "|".join(choices)
    if param.param_type_name == "argument":
        return f"{param.name.upper()}{'...' if param.nargs == -1 else ''}"
    return "N" if param.type.name.startswith(("int", "float")) else "TEXT"


def _names_in(package: Any) -> list[str]:
    files = os.listdir(package.__path__[0])
    names = (name.removesuffix(".py") for name in files if name.endswith(".py") or "." not in name)
    return [name.replace("_", "-") for name in names if not name.startswith("_")]


def _understand(error: Any, params: list[Any], command: str, words: list[str]) -> Mistake:
    """What Typer says about one mistake, in our words."""
    option = getattr(error, "option_name", None)
    param = getattr(error, "param", None)
    message = error.format_message().rstrip(".")
    if option is not None and hasattr(error, "possibilities"):
        if _NEGATIVE_NUMBER.fullmatch(option):
            suggestion = f"If {option} is the start of a value, write `--` before it"
            suggestion += f": {command} -- {shlex.join(words)}" if len(words) == 2 else "."
        else:
            suggestion = did_you_mean(option, error.possibilities or [])
        return Mistake(option, "UNKNOWN_OPTION", f"No such option: {option}", suggestion=suggestion or None)
    if option is not None:
        metavar = next((each.metavar for each in params if option in each.opts and not each.is_flag), None)
        return Mistake(option, "INVALID_VALUE", message, suggestion=f"Write {option} {metavar}." if metavar else None)
    if param is not None:
        code = "MISSING" if type(error).__name__ == "MissingParameter" else "INVALID_VALUE"
        name = param.opts[0] if param.param_type_name == "option" else param.human_readable_name
        return Mistake(name, code, message)
    return Mistake("ARGUMENTS", "EXTRA_ARGUMENT", message)


def _leave_out(error: Any, args: list[str], name: str) -> list[str] | None:
    """The command line without this mistake, to look for the next; None when there is nothing left to look at."""
    param = getattr(error, "param", None)
    if param is not None:
        param.required, param.callback, param.type = False, None, TyperOption(param_decls=["--text"]).type
        return args
    behind = args.index("--") if "--" in args else len(args)
    for position, token in enumerate(args[:behind]):
        in_cluster = len(name) == 2 and name[0] == "-" != token[1:2] and token[:1] == "-" and name[1] in token[1:]
        if token.split("=")[0] == name or in_cluster:
            return args[:position] + args[position + 1 :]
    return None
